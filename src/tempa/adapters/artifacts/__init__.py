"""Where result and input files lie."""
