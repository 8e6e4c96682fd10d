"""Doorbells: within one process, and between several."""
