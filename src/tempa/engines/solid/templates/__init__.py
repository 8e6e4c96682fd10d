"""Parametric templates: their parameters, their rules, and what their volume must be. No kernel."""
