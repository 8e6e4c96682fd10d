"""Our bytes are those of Protocol Buffers: protoc, with our `geyser.proto`, is the judge of both halves."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_tools import protoc
from hypothesis import given
from hypothesis import strategies as st

from tempa.adapters.payments import geyser as room
from tempa.adapters.payments.geyser import wire
from tempa.core import base58
from tempa.testing.devchain import geyser_wire as served

PROTO = Path(room.__file__).with_name("geyser.proto")
U64 = st.integers(0, 2**64 - 1)
ADDRESS = st.binary(min_size=32, max_size=32).map(base58.encode)
SIGNATURE = st.binary(min_size=64, max_size=64)

# Facts of the Yellowstone interface: a number that moves is another field to every server there is.
NUMBERS = {
    "SubscribeRequest": {"slots": 2, "commitment": 6, "ping": 9, "transactions_status": 10, "from_slot": 11},
    "SlotFilter": {"filter_by_commitment": 1},
    "TransactionFilter": {"vote": 1, "failed": 2, "account_include": 3},
    "Ping": {"id": 1},
    "SubscribeUpdate": {"slot": 3, "transaction": 4, "ping": 6, "pong": 9, "transaction_status": 10},
    "Slot": {"slot": 1, "parent": 2, "status": 3},
    "Transaction": {"transaction": 1, "slot": 2},
    "TransactionInfo": {"signature": 1},
    "TransactionStatus": {"slot": 1, "signature": 2},
}


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The messages of the file, as the official runtime has them."""
    out = tmp_path_factory.mktemp("proto") / "geyser.bin"
    told = ["protoc", f"-I{PROTO.parent}", f"--descriptor_set_out={out}", str(PROTO)]
    assert protoc.main(told) == 0
    described = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in described.file:
        pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"geyser.{name}"))
        for name in NUMBERS
    }


def test_the_numbers_are_those_of_the_servers(made: dict[str, Any]) -> None:
    fields = {
        name: {field.name: field.number for field in message.DESCRIPTOR.fields}
        for name, message in made.items()
    }
    assert fields == NUMBERS


def asked(made: dict[str, Any], addresses: list[str], from_slot: int | None) -> Any:
    request = made["SubscribeRequest"](commitment=2, from_slot=from_slot)
    request.slots["tempa"].filter_by_commitment = False
    request.transactions_status["tempa"].vote = False
    request.transactions_status["tempa"].account_include.extend(addresses)
    return request


@given(addresses=st.lists(ADDRESS, max_size=5), from_slot=st.none() | U64)
def test_a_subscription_is_written_as_the_compiler_writes_it(
    made: dict[str, Any], addresses: list[str], from_slot: int | None
) -> None:
    expected = asked(made, addresses, from_slot).SerializeToString(deterministic=True)
    assert wire.subscription(addresses, "finalized", from_slot) == expected


@given(addresses=st.lists(ADDRESS, max_size=5), from_slot=st.none() | U64)
def test_the_development_chain_reads_what_the_compiler_writes(
    made: dict[str, Any], addresses: list[str], from_slot: int | None
) -> None:
    request = served.request_of(asked(made, addresses, from_slot).SerializeToString())
    status = served.Filter(whole=False, vote=False, include=frozenset(addresses))
    assert request == served.Request(
        slots={"tempa": False},
        transactions={"tempa": status},
        commitment="finalized",
        from_slot=from_slot,
    )


def test_a_ping_is_answered_with_a_ping(made: dict[str, Any]) -> None:
    answer = made["SubscribeRequest"](ping=made["Ping"](id=1)).SerializeToString()
    assert wire.answer_to_ping() == answer
    assert served.request_of(answer).is_ping
    assert served.ping_update() == made["SubscribeUpdate"](ping=made["Ping"]()).SerializeToString()
    assert served.pong_update() == made["SubscribeUpdate"](pong=made["Ping"](id=1)).SerializeToString()


@given(slot=U64, parent=st.none() | U64, status=st.integers(0, 6))
def test_a_slot_is_read_as_it_was_meant(
    made: dict[str, Any], slot: int, parent: int | None, status: int
) -> None:
    update = made["SubscribeUpdate"](slot=made["Slot"](slot=slot, parent=parent, status=status))
    assert wire.read(update.SerializeToString()) == wire.Slot(slot, parent, status)


@given(slot=U64, signature=SIGNATURE)
def test_a_transaction_is_read_as_it_was_meant_in_either_form(
    made: dict[str, Any], slot: int, signature: bytes
) -> None:
    status = made["TransactionStatus"](slot=slot, signature=signature)
    whole = made["Transaction"](slot=slot, transaction=made["TransactionInfo"](signature=signature))
    meant = wire.Transaction(base58.encode(signature), slot)
    assert wire.read(made["SubscribeUpdate"](transaction_status=status).SerializeToString()) == meant
    assert wire.read(made["SubscribeUpdate"](transaction=whole).SerializeToString()) == meant


@pytest.mark.parametrize("failed", [False, True])
@given(slot=U64, parent=U64, index=U64, signature=SIGNATURE, raw=st.binary(max_size=50))
def test_the_development_chain_writes_what_the_compiler_reads(
    made: dict[str, Any], *, slot: int, parent: int, index: int, signature: bytes, failed: bool, raw: bytes
) -> None:
    read = made["SubscribeUpdate"].FromString
    step = read(served.slot_update(["a", "b"], slot, parent, "finalized")).slot
    assert (step.slot, step.parent, step.status) == (slot, parent, 2)
    status = read(served.status_update(["a"], slot, signature, index, failed=failed)).transaction_status
    assert (status.slot, status.signature) == (slot, signature)
    whole = read(served.transaction_update(["a"], slot, signature, index, raw)).transaction
    assert (whole.slot, whole.transaction.signature) == (slot, signature)


def test_pings_are_read_and_what_nobody_asked_for_is_nothing(made: dict[str, Any]) -> None:
    assert wire.read(served.ping_update()) == wire.Ping()
    assert wire.read(served.pong_update()) is None
    assert wire.read(b"") is None
    assert wire.read(b"\x2a\x03abc") is None  # a block


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_in_one_way(data: bytes) -> None:
    with contextlib.suppress(wire.MalformedError):
        wire.read(data)


@pytest.mark.parametrize(
    "data",
    [
        b"\x1a\x05\x08",  # longer than it is
        b"\x18\x01",  # a number where a slot belongs
        b"\x1a\x02\x0a\x00",  # bytes where its number belongs
        b"\x52\x04\x12\x02ab",  # a signature of two bytes
        b"\x32\x01\x0b",  # a group
        b"\x00\x00",  # field 0
        b"\x1a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # a length of more than 64 bits
        b"\x80",
    ],
)
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(wire.MalformedError):
        wire.read(data)


@pytest.mark.parametrize(
    ("wanted", "admitted"),
    [
        ({}, True),
        ({"include": {"a", "z"}}, True),
        ({"include": {"z"}}, False),
        ({"exclude": {"b"}}, False),
        ({"required": {"a", "b"}}, True),
        ({"required": {"a", "z"}}, False),
        ({"failed": False}, True),
        ({"failed": True}, False),
        ({"vote": False}, True),
        ({"vote": True}, False),
    ],
)
def test_the_development_chain_filters_as_it_is_asked(wanted: dict[str, Any], *, admitted: bool) -> None:
    made: dict[str, Any] = {
        name: frozenset(value) if isinstance(value, set) else value for name, value in wanted.items()
    }
    assert served.Filter(whole=False, **made).admits(frozenset({"a", "b"}), failed=False) is admitted


def test_the_development_chain_says_what_it_does_not_serve() -> None:
    with pytest.raises(served.BadRequest, match="accounts are not served"):
        served.request_of(b"\x0a\x00")
