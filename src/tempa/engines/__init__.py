"""Engines: plug-ins by family, each telling what it is apart from how it runs."""
