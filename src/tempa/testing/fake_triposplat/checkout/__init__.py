"""The two files of the stand-in's checkout; `write` copies them."""
