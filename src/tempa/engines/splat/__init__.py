"""Gaussian splats from a picture, a mesh or a file. What an engine is stays apart from how it runs."""
