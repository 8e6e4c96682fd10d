"""The command line. One file a group of commands; what is heavy is imported when its command runs."""
