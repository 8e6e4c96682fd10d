"""Readers of picture headers, by format: a few kilobytes of the file, no pixels, no library.

They run in the server's own process on whatever was sent. Pillow would do for some formats, but it hands
the whole of an AVIF, WebP or HEIC file to a C parser as it opens it, and its pixel limit is a global
variable of the process, as are the warnings that enforce it: not for a process with threads.
"""
