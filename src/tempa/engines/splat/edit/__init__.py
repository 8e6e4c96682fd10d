"""Changing clouds of Gaussians: leaving some out (`keep`), making fewer of many (`decimate`)."""
