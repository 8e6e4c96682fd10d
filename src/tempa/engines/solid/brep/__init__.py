"""Boundary representations laid face by face, from exact curves, without booleans or fillet calls."""
