"""What connections are made of: keys and certificates, and a port that counts every byte once."""

import ipaddress
import socket
import threading

from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    load_pem_private_key,
    load_ssh_private_key,
    load_ssh_public_key,
)

from feddep.flower.certificates import make_certificate, make_node_key
from feddep.flower.wire import LOOPBACK, CountingPort, listens


def test_a_certificate_is_of_its_key_for_the_loopback_and_its_own_authority(tmp_path):
    key, files = tmp_path / "superlink.key", [tmp_path / "one.pem", tmp_path / "other.pem"]
    make_certificate(key, files)
    one, other = (x509.load_pem_x509_certificate(file.read_bytes()) for file in files)
    assert one == other
    one.verify_directly_issued_by(one)
    assert one.public_key() == load_pem_private_key(key.read_bytes(), None).public_key()
    names = one.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address(LOOPBACK)]
    assert key.stat().st_mode & 0o777 == 0o600


def test_a_supernode_has_a_key_of_its_own(tmp_path):
    make_node_key(tmp_path / "node.key", tmp_path / "node.pub")
    assert (tmp_path / "node.key").stat().st_mode & 0o777 == 0o600
    private = load_ssh_private_key((tmp_path / "node.key").read_bytes(), None)
    assert private.public_key() == load_ssh_public_key((tmp_path / "node.pub").read_bytes())


def test_bytes_are_passed_on_and_counted():
    sent, reply = bytes(range(256)) * 999, b"heard" * 77
    with socket.create_server((LOOPBACK, 0)) as listener:
        counting = CountingPort(listener.getsockname()[1])
        with socket.create_connection((LOOPBACK, counting.port), timeout=10) as client:
            connection, _ = listener.accept()
            with connection:
                threading.Thread(target=client.sendall, args=(sent,), daemon=True).start()
                assert connection.recv(len(sent), socket.MSG_WAITALL) == sent
                connection.sendall(reply)
            assert client.recv(len(reply), socket.MSG_WAITALL) == reply
        counting.close()
    assert counting.bytes == {"up": len(sent), "down": len(reply)}
    assert not listens(counting.port)
