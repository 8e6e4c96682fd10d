"""A Geyser gRPC server (Yellowstone, Dragon's Mouth and what is compatible with them) as a source."""
