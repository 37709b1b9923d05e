"""What connections are made of: certificates that a TLS client takes, and a port that counts every byte once."""

import socket
import ssl
import threading

import pytest
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key

from feddep.flower.certificates import make_certificate, make_node_key
from feddep.flower.wire import LOOPBACK, CountingPort, listens


def connect(server_folder, trusted):
    """Greet a server that has a folder's certificate; returns what it says."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(server_folder / "superlink.pem", server_folder / "superlink.key")
    client = ssl.create_default_context(cafile=str(trusted / "superlink.pem"))
    with socket.create_server((LOOPBACK, 0)) as listener:

        def serve() -> None:
            try:
                with server.wrap_socket(listener.accept()[0], server_side=True) as connection:
                    connection.sendall(b"hello")
            except ssl.SSLError:  # the client refused
                pass

        threading.Thread(target=serve, daemon=True).start()
        with (
            socket.create_connection(listener.getsockname(), timeout=10) as plain,
            client.wrap_socket(plain, server_hostname=LOOPBACK) as connection,
        ):
            return connection.recv(5)


def test_a_server_is_trusted_by_its_own_certificate_alone(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
        make_certificate(folder / "superlink.key", [folder / "superlink.pem"])
    assert connect(one, one) == b"hello"
    with pytest.raises(ssl.SSLCertVerificationError):
        connect(one, other)
    assert (one / "superlink.key").stat().st_mode & 0o777 == 0o600


def test_a_supernode_has_a_key_of_its_own(tmp_path):
    make_node_key(tmp_path / "node.key", tmp_path / "node.pub")
    assert (tmp_path / "node.key").stat().st_mode & 0o777 == 0o600
    private = load_ssh_private_key((tmp_path / "node.key").read_bytes(), None)
    assert private.public_key() == load_ssh_public_key((tmp_path / "node.pub").read_bytes())


def test_bytes_are_passed_on_and_counted():
    sent, reply = bytes(range(256)) * 999, b"heard" * 77
    received: list[bytes] = []
    with socket.create_server((LOOPBACK, 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                received.append(b"".join(iter(lambda: connection.recv(4096), b"")))
                connection.sendall(reply)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        counting = CountingPort(listener.getsockname()[1])
        with socket.create_connection((LOOPBACK, counting.port), timeout=10) as client:
            client.sendall(sent)
            client.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: client.recv(4096), b""))
        thread.join(10)
        counting.close()
    assert (received, answer) == ([sent], reply)
    assert counting.bytes == {"up": len(sent), "down": len(reply)}
    assert not listens(counting.port)
