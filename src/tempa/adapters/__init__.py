"""Plug-ins by port: the folder is the port, a file in it an implementation. None knows another."""
