"""The journal: double entries in a chain of hashes. What stands in it is never changed; it is added to."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tempa.core.canonical import canonical

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

GENESIS = "0" * 64
"""What the first entry takes for the hash before it."""

UNALLOCATED = "liab:unallocated"
OUTSIDE = "chain:outside"
FEES = "expense:fees"
REFUNDS = "liab:refunds"


def treasury_account(asset: str) -> str:
    """What the treasury holds of an asset."""
    return f"chain:treasury:{asset}"


def customer_account(account: str) -> str:
    """What an account has paid: negative, for it is owed to it, in time on a GPU."""
    return f"liab:customer:{account}"


class Posting(NamedTuple):
    """One line of an entry: positive is debit, negative is credit. Base units."""

    account: str
    asset: str
    amount: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An entry before it has its place. `key`: what happened, once; `at_ms` in Unix milliseconds."""

    kind: str
    key: str
    at_ms: int
    postings: tuple[Posting, ...]
    detail: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """An entry in its place."""

    number: int
    draft: Draft
    previous_hash: str
    hash: str


def is_balanced(postings: Iterable[Posting]) -> bool:
    """Whether they sum to zero in each asset."""
    sums: dict[str, int] = defaultdict(int)
    for posting in postings:
        sums[posting.asset] += posting.amount
    return not any(sums.values())


def seal(draft: Draft, number: int, previous_hash: str) -> JournalEntry:
    """The entry behind the one with `previous_hash`."""
    assert is_balanced(draft.postings), f"{draft.key}: debits and credits differ"
    return JournalEntry(
        number=number, draft=draft, previous_hash=previous_hash, hash=_hash(draft, previous_hash)
    )


def first_broken(entries: Iterable[JournalEntry], previous_hash: str = GENESIS) -> int | None:
    """The number of the first entry that is not what was written behind its predecessor; None: all are."""
    for entry in entries:
        follows = entry.previous_hash == previous_hash and entry.hash == _hash(entry.draft, previous_hash)
        if not follows or not is_balanced(entry.draft.postings):
            return entry.number
        previous_hash = entry.hash
    return None


def _hash(draft: Draft, previous_hash: str) -> str:
    """SHA-256 of the RFC 8785 form. Amounts as text: beyond 2**53 JSON's readers disagree on numbers."""
    body = {
        "previous": previous_hash,
        "kind": draft.kind,
        "key": draft.key,
        "at_ms": draft.at_ms,
        "postings": [[line.account, line.asset, str(line.amount)] for line in draft.postings],
        "detail": draft.detail,
    }
    return hashlib.sha256(canonical(body)).hexdigest()
