"""The named queries both databases read, and the way from their rows to the slices' words and back."""

from __future__ import annotations

from tempa.adapters.stores.sql.account_rows import account_from, account_row
from tempa.adapters.stores.sql.delivery_rows import (
    attempt_from,
    claimed_from,
    dead_group_from,
    delivery_from,
    message_text,
)
from tempa.adapters.stores.sql.endpoint_rows import (
    endpoint_from,
    endpoint_wishes,
    new_endpoint_row,
    secrets_from,
    statuses_from,
    subscription_from,
)
from tempa.adapters.stores.sql.job_rows import (
    admitted_job,
    error_text,
    event_from,
    file_from,
    job_from,
    job_row,
    request_from,
    result_text,
)
from tempa.adapters.stores.sql.json_text import decode, encode
from tempa.adapters.stores.sql.key_rows import key_from, key_row
from tempa.adapters.stores.sql.queries import load_queries

__all__ = [
    "account_from",
    "account_row",
    "admitted_job",
    "attempt_from",
    "claimed_from",
    "dead_group_from",
    "decode",
    "delivery_from",
    "encode",
    "endpoint_from",
    "endpoint_wishes",
    "error_text",
    "event_from",
    "file_from",
    "job_from",
    "job_row",
    "key_from",
    "key_row",
    "load_queries",
    "message_text",
    "new_endpoint_row",
    "request_from",
    "result_text",
    "secrets_from",
    "statuses_from",
    "subscription_from",
]
