"""The one place where objects meet."""
