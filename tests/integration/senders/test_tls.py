"""TLS: what is trusted, and which error says what went wrong."""

from __future__ import annotations

import ipaddress
import socket
import ssl
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tempa.testing.receiver import Receiver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tempa.adapters.senders.curl import CurlSender

Send = Any  # a protocol of conftest.py, which cannot be imported


def certificate(folder: Path, *names: x509.GeneralName, days: int = 1) -> Path:
    """A self-signed certificate with its key, in one file; expired if `days` is negative."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "receiver")])
    begin = datetime.now(UTC) - timedelta(days=10)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(datetime.now(UTC) + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / "receiver.pem"
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


def secure(path: Path) -> Receiver:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return Receiver(tls=context)


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
