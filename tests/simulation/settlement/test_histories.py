"""Invariants I1 to I7 and I9 of settlement, over random histories on both stores.

    I1  receipts less outflows are the chain's balance of every treasury account
    I2  a transaction's gain of an account is credited at most once, whatever dies, doubles or is restored
    I3  nothing is credited that is not final or has failed
    I4  every gain is in the ledger once all is quiet, if no push ever comes: given to a quote, or waiting
    I5  every entry of the journal sums to zero, and their hashes hang together
    I6  a quote has the seconds that all of its payments buy together; no rental becomes shorter
    I7  what is paid for a quote goes to its owner alone, whoever pays, names or tells of it
    I9  a node of three that lies changes nothing

What is right is reckoned from the accounts' bytes on the chain (oracle.py). To play one again:
`python -m tests.simulation.settlement.plays SEED`. I8 (refunds) is tested beside refunds, I10 (a poisoned
entry) in test_incidents.py.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.simulation.settlement.plays import Played, play, play_in_files
from tests.simulation.settlement.server import COMMANDS, DatabaseShelf

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tempa.testing.postgres import PostgresCluster

HISTORIES = 2_000
CHUNKS = 10
POSTGRES_HISTORIES = 40
LONG_HISTORIES = 100_000
LONG_POSTGRES_HISTORIES = 1_000
_SLICE = 20

# What a hundred histories have to show, or they prove nothing. Half of what was counted over 2,000.
PER_HUNDRED = {
    "credits": 200,
    "late credits": 12,
    "rollbacks": 250,
    "re-landings": 100,
    "drops": 10,
    "lies": 40,
    "duplicate deliveries": 100,
    "restores": 1,
    "given by hand": 3,
    "suspended": 20,
    "rentals ended": 2,
    "redriven credited": 2,
    "strays shown": 3,
    "lookup: credited": 100,
    "lookup: suspended": 100,
    "lookup: nodes_disagree": 5,
    "lookup: not_found_yet": 50,
    "lookup: transaction_failed": 10,
    "lookup: account_delegated": 5,
    "waits: instance_rented": 10,
    "waits: dust": 5,
}


def silence() -> None:
    """In a process of the pool: what goes wrong in a history is meant to."""
    logging.getLogger("tempa").setLevel(logging.CRITICAL)


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    cores = len(os.sched_getaffinity(0))
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(cores, mp_context=spawn, initializer=silence) as made:
        yield made


def play_many(pool: ProcessPoolExecutor, seeds: range) -> Played:
    played = Played()
    slices = [seeds[at : at + _SLICE] for at in range(0, len(seeds), _SLICE)]
    for some in pool.map(play_in_files, slices):
        played.add(some)
    return played


def judge(played: Played, *, can_restore: bool = True) -> None:
    assert not played.failures, "\n".join(played.failures)
    hundreds = played.seen["histories"] / 100
    least = {what: count * hundreds for what, count in PER_HUNDRED.items()}
    least["restores"] *= can_restore
    missing = {what: played.seen[what] for what in least if played.seen[what] < least[what]}
    assert not missing, f"hardly happened: {missing}"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_books_are_the_chains(pool: ProcessPoolExecutor, chunk: int) -> None:
    size = HISTORIES // CHUNKS
    played = play_many(pool, range(chunk * size, (chunk + 1) * size))
    judge(played)
    dead = {what.split()[-1] for what in played.seen if what.startswith("died")}
    assert dead >= {"take_in", "claim_inbox", "settle_inbox", "post_credits", "advance_cursor"}


def test_the_books_are_the_chains_on_postgres(cluster: PostgresCluster, template: str) -> None:
    seeds = range(1_000_000, 1_000_000 + POSTGRES_HISTORIES)
    played = play(seeds, lambda seed: DatabaseShelf(cluster, template))
    assert not played.failures, "\n".join(played.failures)
    assert played.seen["credits"] > 0
    assert played.seen["rollbacks"] > 0


@pytest.mark.chaos
def test_the_books_are_the_chains_for_long(pool: ProcessPoolExecutor) -> None:
    played = play_many(pool, range(HISTORIES, HISTORIES + LONG_HISTORIES))
    judge(played)
    deaths = {what.removeprefix("died ") for what in played.seen if what.startswith("died")}
    assert deaths == {f"{when} {command}" for when in ("before", "after") for command in COMMANDS}


@pytest.mark.chaos
def test_the_books_are_the_chains_on_postgres_for_long(cluster: PostgresCluster, template: str) -> None:
    seeds = range(2_000_000, 2_000_000 + LONG_POSTGRES_HISTORIES)
    judge(play(seeds, lambda seed: DatabaseShelf(cluster, template)), can_restore=False)
