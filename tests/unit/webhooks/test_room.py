"""The rule of the slots: what one account or host can take, and what it can never take."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tempa.webhooks.room import Room, Standing, host_of, standing_after

QUICK, NEW, SLOW = Standing
SLOTS = 1024
HOSTS = [f"h{number}" for number in range(4)]

asks = st.tuples(st.sampled_from(HOSTS), st.sampled_from([NEW, SLOW]), st.integers(1, 400))


def crowd(room: Room, standing: Standing, hosts: int, account: str = "acme") -> int:
    """So many hosts ask in turn until none is admitted; how many slots they got."""
    before = room.free
    while [host for host in range(hosts) if ask(room, account, f"h{host}", standing)]:
        pass
    return before - room.free


def ask(room: Room, account: str, host: str, standing: Standing, times: int = 1) -> bool:
    """Whether the last of so many attempts was admitted."""
    admitted = False
    for _ in range(times):
        admitted = room.admits(account, host, standing)
        if admitted:
            room.enter(account, host)
    return admitted


@pytest.mark.parametrize(
    ("standing", "hosts", "slots"),
    [
        # h at one host while weight * 2h < 1024 - h: 1024/3, 1024/5, 1024/9, rounded up
        (QUICK, 1, 342), (NEW, 1, 205), (SLOW, 1, 114),
        # a of an account, at a host each, while weight * a < 1024 - a: 1024/2, 1024/3, 1024/5
        (QUICK, 1100, 512), (NEW, 1100, 342), (SLOW, 1100, 205),
    ],
)  # fmt: skip
def test_an_account_alone_gets_a_part(standing: Standing, hosts: int, slots: int) -> None:
    assert crowd(Room(SLOTS), standing, hosts) == slots


@pytest.mark.parametrize("slots", [1, 2, 3, 8])
@pytest.mark.parametrize("standing", Standing)
def test_whoever_holds_nothing_is_let_in_while_anything_is_free(slots: int, standing: Standing) -> None:
    room = Room(slots)
    for number in range(slots):
        assert ask(room, f"account {number}", "h", standing)
    assert not ask(room, "one more", "h", QUICK)


@given(st.lists(asks))
def test_no_account_keeps_another_out(asked: list[tuple[str, Standing, int]]) -> None:
    room = Room(SLOTS)
    for host, standing, times in asked:
        ask(room, "acme", host, standing, times)
    for standing in Standing:
        assert room.admits("globex", HOSTS[0], standing)


@given(st.lists(asks), st.integers(0, 600))
def test_what_hangs_keeps_no_quick_endpoint_out_at_any_host(
    asked: list[tuple[str, Standing, int]], strays: int
) -> None:
    """Whatever new and slow endpoints took, and however many other hosts hang."""
    room = Room(SLOTS)
    for host, standing, times in asked:
        ask(room, "acme", host, standing, times)
    for number in range(strays):
        ask(room, "acme", f"stray {number}", NEW)
    for host in (*HOSTS, "elsewhere"):
        assert room.admits("acme", host, QUICK)


@given(st.lists(asks.map(lambda ask: (ask[0], SLOW, ask[2]))), st.integers(0, 600))
def test_what_is_slow_keeps_no_new_endpoint_out_at_any_host(
    asked: list[tuple[str, Standing, int]], strays: int
) -> None:
    room = Room(SLOTS)
    for host, standing, times in asked:
        ask(room, "acme", host, standing, times)
    for number in range(strays):
        ask(room, "acme", f"stray {number}", SLOW)
    for host in (*HOSTS, "elsewhere"):
        assert room.admits("acme", host, NEW)


@pytest.mark.parametrize("hosts", [1, 2, 10, 100, 300])
def test_hosts_that_hang_at_their_first_attempt_keep_no_new_host_out(hosts: int) -> None:
    room = Room(SLOTS)
    crowd(room, NEW, hosts)
    assert room.admits("acme", "elsewhere", NEW)


def test_accounts_that_crowd_one_after_the_other_leave_something_to_the_next() -> None:
    room = Room(SLOTS)
    for number in range(9):
        assert crowd(room, QUICK, 1100, f"account {number}") > 0
    assert room.admits("the tenth", "h", QUICK)


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(HOSTS)), max_size=40))
def test_full_is_where_nothing_more_is_admitted(entered: list[tuple[str, str]]) -> None:
    room = Room(40)
    for account, host in entered:
        room.enter(account, host)
    accounts, hosts = set(room.full_accounts()), set(room.full_hosts())

    for account, host in set(entered):
        for standing in Standing:
            assert ((standing, account, host) in hosts) is not room.admits(account, host, standing)
            assert ((standing, account) in accounts) is not room.admits(account, "another", standing)
    assert {account for _, account in accounts} | {account for _, account, _ in hosts} <= {
        account for account, _ in entered
    }


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(HOSTS)), max_size=40))
def test_a_copy_goes_its_own_way_and_what_all_have_left_is_empty(entered: list[tuple[str, str]]) -> None:
    room = Room(40)
    for account, host in entered:
        room.enter(account, host)
    copy = room.copy()
    for account, host in entered:
        copy.leave(account, host)

    assert (room.free, copy.free) == (40 - len(entered), 40)
    assert [*copy.full_hosts(), *copy.full_accounts()] == []
    copy.enter("c", "h")
    assert (room.free, copy.free) == (40 - len(entered), 39)


@pytest.mark.parametrize(
    ("duration_ms", "standing"), [(0, QUICK), (2000, QUICK), (2001, SLOW), (30_000, SLOW)]
)
def test_two_seconds_are_slow(duration_ms: int, standing: Standing) -> None:
    assert standing_after(duration_ms) is standing


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://Hooks.Example/a?b=c", "hooks.example"),
        ("http://127.0.0.1:8080/a", "127.0.0.1:8080"),
        ("https://user:word@hooks.example:444/", "hooks.example:444"),
        ("https://[2001:DB8::1]:8443/x", "[2001:db8::1]:8443"),
        ("https://hooks.example?a/b", "hooks.example"),
        ("not a url", ""),
        ("http://[broken/", ""),
    ],
)
def test_a_host_is_a_name_with_its_port(url: str, host: str) -> None:
    assert host_of(url) == host
    assert "/" not in host  # the store's keys of full hosts rely on it
