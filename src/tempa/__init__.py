"""Tempa: a durable job server for geometry that takes minutes."""
