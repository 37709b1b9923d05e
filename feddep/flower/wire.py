"""A loopback port that passes connections on and counts their bytes: what a client really sends and
receives.
"""

import socket
import threading
from collections import Counter
from contextlib import suppress

LOOPBACK = "127.0.0.1"


class CountingPort:
    """Passes every connection to ``port`` of its own on to another port of this machine.

    Bytes are those of the TCP streams, with what TLS, HTTP and the framing of messages add, without
    headers of TCP and IP.

    Attributes:
        port: where to connect to.
        bytes: what came ``up`` from those who connected, and what went ``down`` to them.
    """

    def __init__(self, target: int) -> None:
        """Listen, and connect to the port ``target`` for each who connects."""
        self.bytes: Counter[str] = Counter()
        self._target = target
        self._lock = threading.Lock()
        self._listener = socket.create_server((LOOPBACK, 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no further connection."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                inner, _ = self._listener.accept()
                outer = socket.create_connection((LOOPBACK, self._target))
                for source, sink, direction in ((inner, outer, "up"), (outer, inner, "down")):
                    threading.Thread(
                        target=self._pass_on, args=(source, sink, direction), daemon=True
                    ).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, direction: str) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                with self._lock:
                    self.bytes[direction] += len(data)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)


def free_port() -> int:
    """A port of the loopback interface that nobody listens on now."""
    with socket.create_server((LOOPBACK, 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def listens(port: int) -> bool:
    """Whether somebody listens on a port of the loopback interface."""
    with suppress(OSError), socket.create_connection((LOOPBACK, port), timeout=1):
        return True
    return False
