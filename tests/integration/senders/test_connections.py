"""Connections and descriptors: kept, found dead, given up, never leaked."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from tempa.adapters.senders.curl.multi import CurlThread
from tempa.adapters.senders.curl.transfer import Transfer
from tempa.testing.receiver import Receiver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tempa.adapters.senders.curl import CurlSender
    from tempa.adapters.senders.curl.exchange import Rules

Send = Any  # a protocol of conftest.py, which cannot be imported


def out_of_memory(*_: object) -> NoReturn:
    raise MemoryError


def open_descriptors() -> set[int]:
    return {int(entry.name) for entry in Path("/proc/self/fd").iterdir()}


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


@contextlib.contextmanager
def idle_descriptors(count: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, count + 1000)), hard))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(count)]
    try:
        yield
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_a_connection_is_kept(send: Send, receiver: Receiver) -> None:
    for _ in range(5):
        await send("/ok")
    assert [(request.connection, request.turn) for request in receiver.requests] == [
        (1, n) for n in range(1, 6)
    ]


async def test_as_many_connections_are_kept_as_were_needed(send: Send, receiver: Receiver) -> None:
    for turn in (1, 2):
        sends = [asyncio.ensure_future(send("/hold")) for _ in range(20)]
        await asyncio.to_thread(receiver.wait_for, 20 * turn)
        receiver.release()
        await asyncio.gather(*sends)
    assert {request.connection for request in receiver.requests} == set(range(1, 21))


async def test_a_second_answer_nobody_asked_for_is_dropped_with_its_connection(
    send: Send, receiver: Receiver
) -> None:
    assert (await send("/surplus")).status == 200
    assert (await send("/ok")).status == 200  # and not the smuggled 500
    first, second = receiver.requests
    assert first.connection != second.connection


async def test_a_receiver_that_closes_after_each_answer_costs_no_attempt(
    send: Send, receiver: Receiver
) -> None:
    for _ in range(10):
        assert (await send("/close")).status == 200
    assert len(receiver.requests) == 10


async def test_eight_kept_connections_found_dead_in_a_row_cost_no_attempt(
    send: Send, receiver: Receiver
) -> None:
    """Libcurl gives up after five."""
    held = [asyncio.ensure_future(send("/hold")) for _ in range(8)]
    await asyncio.to_thread(receiver.wait_for, 8)
    receiver.release()
    assert {answer.status for answer in await asyncio.gather(*held)} == {200}
    answer = await send("/mute-reuse")  # resets on every connection that was used before
    assert (answer.status, receiver.requests[-1].turn) == (200, 1)


async def test_a_receiver_that_resets_new_connections_too_is_not_asked_for_ever(
    send: Send, receiver: Receiver
) -> None:
    await send("/ok")
    assert (await send("/reset")).error == "reset"
    assert [(request.path, request.turn) for request in receiver.requests] == [
        ("/ok", 1),
        ("/reset", 2),
        ("/reset", 1),
    ]


async def test_two_hundred_at_once(send: Send, receiver: Receiver) -> None:
    sends = [asyncio.ensure_future(send("/hold")) for _ in range(200)]
    await asyncio.to_thread(receiver.wait_for, 200)  # all are under way at the same time
    receiver.release()
    assert [answer.status for answer in await asyncio.gather(*sends)] == [200] * 200


async def test_canceling_drops_the_exchange_and_its_connection(send: Send, receiver: Receiver) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        task = asyncio.ensure_future(
            send(f"http://127.0.0.1:{listener.getsockname()[1]}/", timeout_seconds=60.0)
        )
        connection, _ = await asyncio.to_thread(listener.accept)
        with connection:
            connection.settimeout(10)
            assert connection.recv(65_536).startswith(b"POST / ")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            rest = await asyncio.to_thread(connection.recv, 65_536)
            while rest:  # the body may come apart from the head
                rest = await asyncio.to_thread(connection.recv, 65_536)
    assert (await send("/ok")).status == 200


async def test_canceling_before_it_began_and_after_it_ended_is_harmless(
    send: Send, receiver: Receiver
) -> None:
    tasks = [asyncio.ensure_future(send("/ok")) for _ in range(50)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(end, asyncio.CancelledError) for end in ended[::2])
    assert all(not isinstance(end, BaseException) and end.status == 200 for end in ended[1::2])


async def test_connect_refused_is_told(send: Send) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert (await send(f"http://127.0.0.1:{port}/")).error == "connect_refused"


async def test_a_receiver_that_never_reads_is_cut_at_the_deadline(send: Send) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        answer = await send(url, body=bytes(30_000_000), timeout_seconds=0.5)
    assert answer.error == "timeout"
    assert 0.45 < answer.timings["total"] < 1.5


async def test_running_out_of_descriptors_is_our_fault_and_said_so(
    send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    def starved(*_: object) -> socket.socket:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("tempa.adapters.senders.curl.transfer.socket.socket", starved)
    assert (await send("http://127.0.0.1:9/")).error == "transport"


async def test_beyond_two_thousand_descriptors_it_works_and_does_not_spin(send: Send) -> None:
    """With select() a wait beyond 1,023 descriptors returns at once: a whole core for nothing."""
    with idle_descriptors(2000):
        assert (await send("/ok")).status == 200
        started = time.process_time()
        assert (await send("/half-open", timeout_seconds=1.0)).error == "timeout"
        assert time.process_time() - started < 0.3


async def test_three_hundred_exchanges_beyond_two_thousand_descriptors_all_end(
    send: Send, receiver: Receiver
) -> None:
    with idle_descriptors(2000):
        sends = [asyncio.ensure_future(send("/hold")) for _ in range(300)]
        await asyncio.to_thread(receiver.wait_for, 300)
        receiver.release()
        assert [answer.status for answer in await asyncio.gather(*sends)] == [200] * 300


async def test_an_endless_body_costs_no_memory(send: Send) -> None:
    await asyncio.gather(*(send("/huge-body") for _ in range(64)))  # buffers that are kept anyway
    before = resident_bytes()
    for _ in range(4):
        await asyncio.gather(*(send("/huge-body") for _ in range(64)))
    assert resident_bytes() - before < 20_000_000


async def test_thousands_of_exchanges_leave_memory_where_it_was(send: Send) -> None:
    async def many(count: int) -> None:
        for _ in range(count // 50):
            await asyncio.gather(*(send("/ok" if number % 2 else "/close") for number in range(50)))

    await many(500)
    before = resident_bytes()
    await many(2000)
    assert resident_bytes() - before < 15_000_000  # 2,000 handles would be 40 MB


async def test_nothing_is_left_open(make_sender: Callable[..., CurlSender], send: Send) -> None:
    await asyncio.to_thread(int)  # let asyncio make its thread
    before, threads = open_descriptors(), threading.active_count()
    with Receiver() as receiver:
        sender = make_sender()
        paths = ["/ok", "/close", "/reset", "/half-open", "/huge-body", "/switch", "/drip-headers"] * 10
        sends = [
            asyncio.ensure_future(send(receiver.url(path), sender, timeout_seconds=0.3)) for path in paths
        ]
        sends[3].cancel()
        await asyncio.gather(*sends, return_exceptions=True)
        await send("http://127.0.0.1:1/", sender)
        await sender.close()
    assert open_descriptors() == before
    assert threading.active_count() == threads


async def test_child_processes_inherit_no_connection(send: Send, receiver: Receiver) -> None:
    held = asyncio.ensure_future(send("/hold"))
    await asyncio.to_thread(receiver.wait_for, 1)
    inherited = [fd for fd in open_descriptors() if _is_socket(fd) and os.get_inheritable(fd)]
    receiver.release()
    assert (await held).status == 200
    assert inherited == []


async def test_closing_gives_up_what_is_under_way(
    make_sender: Callable[..., CurlSender], send: Send, receiver: Receiver
) -> None:
    sender = make_sender()
    task = asyncio.ensure_future(send("/half-open", sender))
    await asyncio.to_thread(receiver.wait_for, 1)
    await sender.close()
    with pytest.raises(RuntimeError, match="closed before the answer"):
        await task
    with pytest.raises(RuntimeError, match="sender is closed"):
        await send("/ok", sender)
    await sender.close()


@pytest.mark.parametrize("step", ["__init__", "load", "answer", "unload"])
async def test_a_fault_of_our_own_in_one_exchange_ends_that_one_only(
    send: Send, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    under_way = asyncio.ensure_future(send("/hold"))
    await asyncio.to_thread(receiver.wait_for, 1)
    with monkeypatch.context() as patch:
        patch.setattr(Transfer, step, out_of_memory)
        broken = await asyncio.gather(send("/ok"), send("/ok"))
    if step != "unload":  # by then the answer is known
        assert [(answer.status, answer.error) for answer in broken] == [(None, "transport")] * 2
    receiver.release()
    assert (await under_way).status == 200
    assert (await send("/ok")).status == 200


async def test_a_loop_that_breaks_leaves_nobody_waiting_and_the_next_request_starts_it_anew(
    send: Send, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way = asyncio.ensure_future(send("/half-open", timeout_seconds=60.0))
    await asyncio.to_thread(receiver.wait_for, 1)
    with monkeypatch.context() as patch:
        patch.setattr(CurlThread, "_collect", out_of_memory)
        answers = await asyncio.gather(send("/ok"), under_way)
    assert [answer.error for answer in answers] == ["transport"] * 2
    assert (await send("/ok")).status == 200


async def test_a_loop_that_breaks_at_once_is_not_started_over_and_over(
    send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempa.adapters.senders.curl.sender._RESTART_SECONDS", 3600.0)
    monkeypatch.setattr(CurlThread, "_collect", out_of_memory)
    threads: list[CurlThread] = []

    def a_thread(rules: Rules) -> CurlThread:
        threads.append(CurlThread(rules))
        return threads[-1]

    monkeypatch.setattr("tempa.adapters.senders.curl.sender.CurlThread", a_thread)
    answers = [await send("/ok") for _ in range(5)]
    assert {answer.error for answer in answers} == {"transport"}
    assert len(threads) == 1


def _is_socket(descriptor: int) -> bool:
    with contextlib.suppress(OSError):
        return str(Path(f"/proc/self/fd/{descriptor}").readlink()).startswith("socket:")
    return False
