from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tempa.engines.host.protocol import (
    FRAME_BYTES_MAX,
    Done,
    Exited,
    Fault,
    Fork,
    Forked,
    Frames,
    Kill,
    MessageTooLarge,
    ProtocolError,
    Raised,
    Ready,
    Refused,
    Stage,
    Task,
    Unable,
    decode,
    encode,
    frame,
)

if TYPE_CHECKING:
    from tempa.engines.host.protocol import Message

numbers = st.integers(0, 2**53)
seconds = st.floats(0, 1e6)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
objects = st.dictionaries(st.text(), json_values)
messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(Fork, numbers),
    st.builds(Kill, numbers),
    st.builds(Ready, numbers),
    st.builds(Unable, st.text()),
    st.builds(Forked, numbers, numbers),
    st.builds(Refused, numbers, st.booleans(), st.text()),
    st.builds(Exited, numbers, st.integers(-64, 255), seconds, numbers),
    st.builds(Task, objects, st.text(), numbers, numbers, numbers),
    st.builds(Stage, st.text(), st.none() | st.floats(0, 1) | st.integers(0, 1)),
    st.builds(Done, st.lists(objects), objects, seconds, numbers, st.booleans()),
    st.builds(
        Raised, st.text(), st.text(), st.booleans(), st.none() | st.text(), objects, st.none() | seconds
    ),
    st.builds(Fault, st.text(), seconds),
)


@settings(deadline=None, max_examples=50)
@given(messages)
def test_a_message_survives_the_wire(message: Message) -> None:
    assert decode(encode(message)) == message


@settings(deadline=None, max_examples=50)  # drawing the messages is slow, not what is tested
@given(st.lists(messages, max_size=3), st.data())
def test_frames_come_whole_out_of_any_pieces(sent: list[Message], data: st.DataObject) -> None:
    stream = b"".join(frame(message) for message in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    frames = Frames()
    received: list[Message] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        received += frames.feed(stream[start:end])
    assert received == sent


@given(st.binary(max_size=200))
def test_garbage_is_a_protocol_error_and_nothing_else(garbage: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode(garbage)


@given(st.dictionaries(st.sampled_from(["kind", "attempt", "pid", "stage", "fraction"]), json_values))
def test_json_that_is_no_message_is_a_protocol_error(body: dict[str, object]) -> None:
    try:
        message = decode(json.dumps(body).encode())
    except ProtocolError:
        return
    assert json.loads(encode(message)) == body


@pytest.mark.parametrize(
    "payload",
    [
        b'{"kind":"fork"}',
        b'{"kind":"fork","attempt":"1"}',
        b'{"kind":"fork","attempt":1,"more":2}',
        b'{"kind":"Fork","attempt":1}',
        b'{"kind":"stage","stage":"mesh","fraction":NaN}',
        b'{"kind":"done","files":{},"measurements":{},"wall_seconds":0.5,"peak_rss_bytes":1,"alone":true}',
        b'{"kind":"done","files":[],"measurements":{},"wall_seconds":0.5,"peak_rss_bytes":1,"alone":1}',
        b'{"kind":["fork"],"attempt":1}',
        b"[" * 100_000,
        b'"fork"',
        b"\xff",
    ],
)
def test_a_message_with_the_wrong_fields_is_refused(payload: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode(payload)


def test_messages_in_front_of_garbage_are_still_heard() -> None:
    stream = frames_of(Stage("a", None), Stage("b", 0.5)) + struct.pack(">I", 2) + b"no"
    heard: list[Message] = []
    with pytest.raises(ProtocolError):
        heard.extend(Frames().feed(stream))
    assert heard == [Stage("a", None), Stage("b", 0.5)]


def test_a_frame_that_announces_too_much_is_refused_before_it_is_awaited() -> None:
    with pytest.raises(MessageTooLarge):
        list(Frames().feed(struct.pack(">I", FRAME_BYTES_MAX + 1)))


def test_a_message_may_fill_a_frame_to_the_last_byte() -> None:
    room = FRAME_BYTES_MAX - len(encode(Unable("")))
    (message,) = Frames().feed(frame(Unable("x" * room)))
    assert message == Unable("x" * room)
    with pytest.raises(MessageTooLarge):
        frame(Unable("x" * (room + 1)))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_json_cannot_say_is_not_sent(value: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode(Done([], {"volume": value}, 0.1, 1, alone=True))


def frames_of(*sent: Message) -> bytes:
    return b"".join(frame(message) for message in sent)
