"""SIGTERM and SIGHUP while something has to be cleared away."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

import pytest

from tempa.cli.signals import ExitSignals

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def before() -> Iterator[list[int]]:
    """Handlers that note what is heard outside of the blocks; without them a signal would end the tests."""
    heard: list[int] = []
    kept = {
        number: signal.signal(number, lambda number, _: heard.append(number))
        for number in (signal.SIGTERM, signal.SIGHUP)
    }
    yield heard
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_the_block_and_the_handlers_come_back(
    before: list[int], number: signal.Signals, code: int
) -> None:
    went_on = False

    def block() -> None:
        nonlocal went_on
        with ExitSignals() as signals:
            signals.release()
            signal.raise_signal(number)
            went_on = True

    with pytest.raises(SystemExit) as caught:
        block()
    assert not went_on
    assert caught.value.code == code
    signal.raise_signal(number)
    assert before == [number]


def test_a_second_one_does_not_disturb_the_clearing(before: list[int]) -> None:
    cleared = []

    def block() -> None:
        with ExitSignals() as signals:
            try:
                signals.release()
                signal.raise_signal(signal.SIGTERM)
            finally:
                signal.raise_signal(signal.SIGTERM)
                cleared.append("all")

    with pytest.raises(SystemExit):
        block()
    assert cleared == ["all"]
    assert before == []


def test_held_it_waits_for_the_release() -> None:
    done = []

    def block() -> None:
        with ExitSignals() as signals:
            signal.raise_signal(signal.SIGTERM)
            done.append("held")
            signals.release()
            done.append("released")

    with pytest.raises(SystemExit):
        block()
    assert done == ["held"]


def test_or_for_the_end_of_the_block() -> None:
    with pytest.raises(SystemExit) as caught, ExitSignals():
        signal.raise_signal(signal.SIGHUP)

    assert caught.value.code == 129


def test_what_nohup_asked_for_stays() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)

    with ExitSignals() as signals:
        signals.release()
        os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


def test_beside_the_main_thread_signals_are_left_alone() -> None:
    entered = threading.Event()

    def block() -> None:
        with ExitSignals() as signals:
            signals.release()
            entered.set()

    thread = threading.Thread(target=block)
    thread.start()
    thread.join(10)

    assert entered.is_set()
