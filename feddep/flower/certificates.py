"""Certificates of a federation: one of the SuperLink, which is its own authority, and a key
for each SuperNode.
"""

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_DAYS = 30
"""How long a certificate is valid."""


def make_certificate(key_file: Path, certificates: Sequence[Path]) -> None:
    """Make a private key, and a certificate for it that is valid for 127.0.0.1.

    Args:
        key_file: where the private key goes.
        certificates: where the certificate goes, PEM: to the SuperLink, and to all who are to trust
            it and nothing else.
    """
    key = ec.generate_private_key(ec.SECP384R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "FedDEP bench SuperLink")])
    names = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=_DAYS))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA384())
    )
    for path in certificates:
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    _write_private(key_file, key, serialization.PrivateFormat.TraditionalOpenSSL)


def make_node_key(private: Path, public: Path) -> None:
    """Make a SuperNode's key pair (P-384, OpenSSH's formats)."""
    key = ec.generate_private_key(ec.SECP384R1())
    _write_private(private, key, serialization.PrivateFormat.OpenSSH)
    public.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
        )
    )


def _write_private(
    path: Path, key: ec.EllipticCurvePrivateKey, form: serialization.PrivateFormat
) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    )
