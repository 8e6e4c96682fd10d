"""Files of Gaussians: what each format is (`table`, light to import); how all are read and written (`files`).

How a format's bytes are made and taken apart is in the file of its name; its axes are in `axes`.
"""
