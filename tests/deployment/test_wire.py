"""The port that counts passes everything on, and counts every byte once."""

import socket
import threading

from feddep.deployment.wire import LOOPBACK, CountingPort, free_port, listens


def test_bytes_are_passed_on_and_counted():
    sent, reply = bytes(range(256)) * 999, b"heard" * 77
    with socket.create_server((LOOPBACK, 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                received.append(b"".join(iter(lambda: connection.recv(4096), b"")))
                connection.sendall(reply)

        received: list[bytes] = []
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        counting = CountingPort(listener.getsockname()[1])
        with socket.create_connection((LOOPBACK, counting.port), timeout=10) as client:
            client.sendall(sent)
            client.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: client.recv(4096), b""))
        thread.join(10)
        counting.close()
    assert received == [sent]
    assert answer == reply
    assert (counting.up, counting.down) == (len(sent), len(reply))
    assert not listens(counting.port)


def test_who_connects_to_nobody_is_hung_up_on():
    counting = CountingPort(free_port())
    with socket.create_connection((LOOPBACK, counting.port), timeout=10) as client:
        assert client.recv(1) == b""
    counting.close()
