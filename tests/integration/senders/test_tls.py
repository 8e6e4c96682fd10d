"""TLS: what is trusted, and which error says what went wrong."""

from __future__ import annotations

import ipaddress
import socket
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509

from tests.integration.senders.certificates import certificate, secure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tempa.adapters.senders.curl import CurlSender
    from tempa.testing.receiver import Receiver

Send = Any  # a protocol of conftest.py, which cannot be imported


@pytest.fixture
def pem(tmp_path: Path) -> Path:
    return certificate(
        tmp_path, x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("hook.example")
    )


@pytest.fixture
def secure_receiver(pem: Path) -> Iterator[Receiver]:
    with secure(pem) as receiver:
        yield receiver


async def test_a_trusted_certificate_is_accepted_and_its_phase_timed(
    make_sender: Callable[..., CurlSender], send: Send, secure_receiver: Receiver, pem: Path
) -> None:
    sender = make_sender(ca_file=str(pem), resolve=lambda _: ["127.0.0.1"])
    for host in (None, "hook.example"):
        answer = await send(secure_receiver.url("/ok", host), sender)
        assert answer.status == 200
        assert answer.timings["connect"] < answer.timings["tls"] < answer.timings["first_byte"]


async def test_an_unknown_certificate_is_refused_before_a_byte_is_sent(
    send: Send, secure_receiver: Receiver
) -> None:
    assert (await send(secure_receiver.url("/ok"))).error == "tls"
    assert secure_receiver.requests == []


async def test_a_certificate_for_another_host_is_refused(
    make_sender: Callable[..., CurlSender], send: Send, secure_receiver: Receiver, pem: Path
) -> None:
    sender = make_sender(ca_file=str(pem), resolve=lambda _: ["127.0.0.1"])
    assert (await send(secure_receiver.url("/ok", "other.example"), sender)).error == "tls"
    assert secure_receiver.requests == []


async def test_an_expired_certificate_is_refused(
    make_sender: Callable[..., CurlSender], send: Send, tmp_path: Path
) -> None:
    path = certificate(tmp_path, x509.IPAddress(ipaddress.ip_address("127.0.0.1")), days=-1)
    with secure(path) as receiver:
        assert (await send(receiver.url("/ok"), make_sender(ca_file=str(path)))).error == "tls"


async def test_a_handshake_that_stalls_ends_at_the_connect_timeout(send: Send) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        answer = await send(f"https://127.0.0.1:{listener.getsockname()[1]}/", timeout_seconds=30.0)
    assert answer.error == "tls"
    assert 0.9 < answer.timings["total"] < 3  # the sender's connect_timeout_seconds is 1


async def test_a_receiver_that_does_not_speak_tls_is_told(send: Send, receiver: Receiver) -> None:
    assert (await send(receiver.url("/ok").replace("http:", "https:"))).error == "tls"


async def test_the_certificates_end_is_told_once_of_a_connection(
    make_sender: Callable[..., CurlSender], send: Send, tmp_path: Path
) -> None:
    path = certificate(tmp_path, x509.IPAddress(ipaddress.ip_address("127.0.0.1")), days=9)
    ends_at = x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc
    with secure(path) as receiver:
        sender = make_sender(ca_file=str(path))
        first, second = [await send(receiver.url("/ok"), sender) for _ in range(2)]

    assert (first.status, first.certificate_expires_at) == (200, ends_at)
    assert "tls" not in second.timings  # on the kept connection
    assert second.certificate_expires_at is None


async def test_a_certificate_with_any_bytes_for_a_name_does_no_harm(
    make_sender: Callable[..., CurlSender], send: Send, tmp_path: Path
) -> None:
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    path = certificate(tmp_path, address, x509.OtherName(x509.ObjectIdentifier("1.2.3"), b"\x0c\x02\xff\xfe"))
    with secure(path) as receiver:
        answer = await send(receiver.url("/ok"), make_sender(ca_file=str(path)))

    assert answer.status == 200
    assert answer.certificate_expires_at is not None


async def test_without_tls_there_is_no_certificate(send: Send) -> None:
    assert (await send("/ok")).certificate_expires_at is None
