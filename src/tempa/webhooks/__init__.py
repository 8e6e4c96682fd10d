"""Slice: event to delivery; and `verify`, for those who receive one."""

from tempa.webhooks.verifier import WebhookVerificationError, verify

__all__ = ["WebhookVerificationError", "verify"]
