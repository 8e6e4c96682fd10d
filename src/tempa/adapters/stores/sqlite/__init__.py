"""The embedded store: one file, one writer thread with group commit, a few readers."""
