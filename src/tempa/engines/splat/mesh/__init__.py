"""Meshes from files, and the Gaussians that lie on them."""
