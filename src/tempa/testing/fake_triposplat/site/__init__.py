"""Modules that stand for installed packages: this folder goes before everything else on the import path."""
