"""Rings between processes: what PostgreSQL carries, and what happens when it cannot."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tempa.adapters.wakes.postgres import PAYLOAD_BYTES_MAX, PostgresWake
from tempa.testing.postgres import running_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tempa.testing.postgres import PostgresCluster

PATIENCE_SECONDS = 20.0


async def test_a_ring_is_heard_in_the_other_process(cluster: PostgresCluster) -> None:
    here, there = PostgresWake(cluster.url()), PostgresWake(cluster.url())
    async with here.running(), there.running():
        with there.listen("lane:cpu") as bell:
            assert await bell.wait(PATIENCE_SECONDS)  # connected: what was missed is rung
            here.ring("lane:cpu")

            assert await bell.wait(PATIENCE_SECONDS)


async def test_more_topics_than_one_message_holds_all_arrive(cluster: PostgresCluster) -> None:
    here, there = PostgresWake(cluster.url()), PostgresWake(cluster.url())
    topics = [f"job:cad_{number:026}" for number in range(PAYLOAD_BYTES_MAX // 10)]
    async with here.running(), there.running():
        with there.listen(topics[0]) as first, there.listen(topics[-1]) as last:
            assert await first.wait(PATIENCE_SECONDS)
            assert await last.wait(PATIENCE_SECONDS)
            here.ring(*topics)

            assert await first.wait(PATIENCE_SECONDS)
            assert await last.wait(PATIENCE_SECONDS)


@pytest.fixture
def own_cluster() -> Iterator[PostgresCluster]:
    with running_cluster() as running:
        yield running


async def test_after_an_outage_everybody_is_rung_once_and_heard_again(own_cluster: PostgresCluster) -> None:
    here, there = PostgresWake(own_cluster.url()), PostgresWake(own_cluster.url())
    async with here.running(), there.running():
        with there.listen("feed") as bell:
            assert await bell.wait(PATIENCE_SECONDS)
            await asyncio.to_thread(own_cluster.crash)
            here.ring("feed")  # lost: a ring is a hint
            await asyncio.to_thread(own_cluster.start)

            assert await bell.wait(PATIENCE_SECONDS)
