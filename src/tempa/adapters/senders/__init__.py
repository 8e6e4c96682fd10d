"""Implementations of `tempa.webhooks.ports.Sender`."""
