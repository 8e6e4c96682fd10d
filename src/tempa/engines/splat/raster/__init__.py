"""Drawing Gaussians on the CPU: elliptical weighted averages, tile by tile, the same to the bit."""
