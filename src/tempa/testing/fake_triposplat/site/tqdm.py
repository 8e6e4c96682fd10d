"""Asked for by the engine; the stand-in shows no bars."""

__version__ = "0.0+stand-in"
