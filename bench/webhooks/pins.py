"""The versions of what webhooks are sent by beside us."""

from __future__ import annotations

AIOHTTP = ("aiohttp==3.14.5",)
REQUESTS = ("requests==2.34.2",)
