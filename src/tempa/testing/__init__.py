"""Helpers for tests of what is built on Tempa. Part of the product: stable, documented, tested."""
