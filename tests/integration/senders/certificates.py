"""Receivers with certificates of their own making: good, expired, for another host."""

from __future__ import annotations

import ssl
import warnings
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tempa.testing.receiver import Receiver

if TYPE_CHECKING:
    from pathlib import Path


def certificate(folder: Path, *names: x509.GeneralName, days: int = 1, name: str = "receiver") -> Path:
    """A self-signed certificate with its key, in one file; expired if `days` is negative."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
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
    path = folder / f"{name}.pem"
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


def secure(path: Path, *, newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> Receiver:
    """A receiver with this certificate. `newest`: the newest TLS that it speaks."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    if newest < ssl.TLSVersion.TLSv1_2:
        context.set_ciphers("DEFAULT@SECLEVEL=0")  # OpenSSL would not offer it at all
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        context.minimum_version = min(newest, ssl.TLSVersion.TLSv1_2)
        context.maximum_version = newest
    return Receiver(tls=context)
