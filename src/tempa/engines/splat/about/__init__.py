"""What the engines of this family are, one file each. Importing them loads no NumPy: the server does."""
