"""Words every room may use. No I/O; stdlib, pydantic and rfc8785 only."""
