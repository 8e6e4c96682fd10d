"""The HTTP API: statuses, headers and bodies. What they mean is decided in the slices."""
