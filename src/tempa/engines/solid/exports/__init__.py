"""File formats: each module writes one, byte for byte the same each time, and reads it back to check it."""
