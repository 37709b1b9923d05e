"""Certificates that a TLS client takes, and only with the authority that made them."""

import socket
import ssl
import threading

import pytest

pytest.importorskip("cryptography", reason="Flower is not installed")

from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key

from feddep.deployment.certificates import make_authority, make_node_key


def connect(folder, authority):
    """Greet a server that has the folder's certificate; returns what it says."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "server.pem", folder / "server.key")
    client = ssl.create_default_context(cafile=str(authority))
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            try:
                with server.wrap_socket(listener.accept()[0], server_side=True) as connection:
                    connection.sendall(b"hello")
            except ssl.SSLError:  # the client refused
                pass

        threading.Thread(target=serve, daemon=True).start()
        with (
            socket.create_connection(listener.getsockname(), timeout=10) as plain,
            client.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
        ):
            return connection.recv(5)


def test_the_server_is_trusted_by_its_own_authority_alone(tmp_path):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        make_authority(tmp_path / name, [tmp_path / name / "authority.pem"])
    assert connect(tmp_path / "one", tmp_path / "one" / "authority.pem") == b"hello"
    with pytest.raises(ssl.SSLCertVerificationError):
        connect(tmp_path / "one", tmp_path / "other" / "authority.pem")


def test_private_keys_are_for_their_owner_alone(tmp_path):
    make_authority(tmp_path, [tmp_path / "authority.pem"])
    make_node_key(tmp_path / "node.key", tmp_path / "node.pub")
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("server.key", "node.key")] == [0o600, 0o600]
    private = load_ssh_private_key((tmp_path / "node.key").read_bytes(), None)
    public = load_ssh_public_key((tmp_path / "node.pub").read_bytes())
    assert private.public_key() == public
    assert public.curve.name == "secp384r1"
