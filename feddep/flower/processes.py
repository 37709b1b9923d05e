"""A federation on this machine: a SuperLink and SuperNodes as processes that meet on the loopback
interface.
"""

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import feddep
from feddep.flower import FederationError, guard
from feddep.flower.certificates import make_certificate, make_node_key
from feddep.flower.folders import Federation, client_folder, server_folder
from feddep.flower.wire import LOOPBACK, CountingPort, free_port, listens
from feddep.utils.files import read_json, write_text

APP = Path(__file__).parent / "app"
"""The app as ``flwr run`` takes it."""

_START = 180
"""Seconds to wait for the SuperLink to listen."""


class LocalFederation:
    """A SuperLink and SuperNodes, each with its own folder, FLWR_HOME and process group; a context
    in which they run.  They end with this process, even where it is killed.

    With TLS, the SuperLink has a certificate made for this federation, and takes only SuperNodes
    whose public keys it was given. Every SuperNode connects through a port that counts its bytes.

    Attributes:
        federation: what all participants know.
    """

    def __init__(self, directory: Path, tls: bool = True) -> None:
        """Prepare a federation.

        Args:
            directory: what :func:`feddep.flower.folders.cut` wrote.
            tls: whether connections are encrypted and SuperNodes authenticated.

        Raises:
            DataError: if the folder holds no federation.
        """
        self._server = server_folder(directory.absolute())
        self.federation = Federation.load(self._server)
        self._clients = [
            client_folder(directory.absolute(), number) for number in range(self.federation.clients)
        ]
        self._tls = tls
        self._mark = secrets.token_hex(16)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._ports: list[CountingPort] = []

    def __enter__(self) -> "LocalFederation":
        """Start the SuperLink, then the SuperNodes.

        Raises:
            FederationError: if the SuperLink does not start, or does not take a SuperNode's key.
        """
        self._guard = subprocess.Popen(
            [sys.executable, "-P", guard.__file__, self._mark],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            self._start_superlink()
            self._register()
            for number in range(len(self._clients)):
                self._start_supernode(number)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *raised: object) -> None:
        """End all processes and what they have started."""
        guard.end(self._mark)
        for process in self._processes.values():
            process.wait()
        self._guard.communicate()
        for port in self._ports:
            port.close()

    def run(self, patience: float = 3600, app: Path = APP) -> dict[str, Any]:
        """Train, and wait for the end.

        Args:
            patience: seconds to wait for all answers of a round.
            app: folder of the Flower app.

        Returns:
            What the ServerApp wrote to ``outcome.json``, and ``wire``: a row each client and
            direction with its ``bytes``.

        Raises:
            FederationError: if training stopped, with the reason.
        """
        # Of an earlier run.
        for name in (
            "outcome.json",
            "failure.json",
            "weights.safetensors",
            "round.safetensors",
        ):
            (self._server / name).unlink(missing_ok=True)
        before = [port.bytes.copy() for port in self._ports]
        config = f"folder={json.dumps(str(self._server))} patience={float(patience)}"
        run = self._start(
            "run",
            self._server,
            "flwr",
            "run",
            str(app),
            "federation",
            "--stream",
            "--run-config",
            config,
        )
        while run.poll() is None:
            for number, folder in enumerate(self._clients):
                if self._processes[f"supernode{number}"].poll() is not None:
                    raise FederationError(
                        f"the SuperNode of client {number} has ended; "
                        f"{folder / 'supernode.log'} says why"
                    )
            time.sleep(0.2)
        if (self._server / "failure.json").exists():
            raise FederationError(read_json(self._server / "failure.json")["error"])
        if not (self._server / "outcome.json").exists():
            raise FederationError(
                f"the run ended without an outcome; {self._server / 'run.log'} says why"
            )
        wire = [
            {
                "client": number,
                "direction": direction,
                "bytes": port.bytes[direction] - before[number][direction],
            }
            for number, port in enumerate(self._ports)
            for direction in ("down", "up")
        ]
        return {**read_json(self._server / "outcome.json"), "wire": wire}

    def _start_superlink(self) -> None:
        port, certificate = free_port(), self._server / "superlink.pem"
        options, security = ["--insecure"], "insecure = true"
        if self._tls:
            key = self._server / "superlink.key"
            make_certificate(
                key, [folder / certificate.name for folder in (self._server, *self._clients)]
            )
            options = ["--enable-supernode-auth", "--ssl-keyfile", str(key)]
            options += ["--ssl-certfile", str(certificate), "--ssl-ca-certfile", str(certificate)]
            security = f"root-certificates = {json.dumps(str(certificate))}"
        connection = (
            '[superlink]\ndefault = "federation"\n\n[superlink.federation]\naddress = '
            f'"{LOOPBACK}:{port}"\n{security}\n'
        )
        write_text(self._server / "flwr" / "config.toml", connection)
        options += [
            "--host",
            LOOPBACK,
            "--port",
            str(port),
            "--disable-runtime-dependency-installation",
        ]
        process = self._start("superlink", self._server, "flower-superlink", *options)
        end = time.monotonic() + _START
        while not listens(port):
            if process.poll() is not None or time.monotonic() > end:
                raise FederationError(
                    f"the SuperLink did not start; {self._server / 'superlink.log'} says why"
                )
            time.sleep(0.1)
        self._ports = [CountingPort(port) for _ in self._clients]

    def _register(self) -> None:
        """Make the SuperNodes' keys, and tell the SuperLink the public halves; nothing without
        TLS.
        """
        if not self._tls:
            return
        started = []
        for number, folder in enumerate(self._clients):
            public = self._server / f"client{number}.pub"
            make_node_key(folder / "node.key", public)
            command = [
                "flwr",
                "supernode",
                "register",
                str(public),
                "federation",
                "--name",
                f"client{number}",
            ]
            started.append(self._start(f"register{number}", self._server, *command))
        for number, process in enumerate(started):
            if process.wait():
                raise FederationError(
                    f"client {number} was not registered; {self._server / 'register.log'} says why"
                )

    def _start_supernode(self, number: int) -> None:
        folder = self._clients[number]
        options = [
            "--superlink",
            f"{LOOPBACK}:{self._ports[number].port}",
            "--host",
            LOOPBACK,
            "--port",
            str(free_port()),
            "--node-config",
            f"folder={json.dumps(str(folder))} client={number}",
        ]
        if self._tls:
            options += ["--root-certificates", str(folder / "superlink.pem")]
            options += ["--auth-supernode-private-key", str(folder / "node.key")]
        else:
            options += ["--insecure"]
        self._start(f"supernode{number}", folder, "flower-supernode", *options)

    def _start(
        self, name: str, folder: Path, program: str, *options: str
    ) -> "subprocess.Popen[bytes]":
        """Start a program of this environment in a process group of its own; what it says goes to a
        log in its folder.
        """
        with (folder / f"{name.rstrip('0123456789')}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [str(Path(sys.executable).parent / program), *options],
                env={**_environment(folder), guard.MARK: self._mark},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return self._processes[name]


def _environment(folder: Path) -> Mapping[str, str]:
    """Of a participant's processes: its own home for Flower, this package and these programs, and
    no word to the outside.
    """
    paths = {"PATH": Path(sys.executable).parent, "PYTHONPATH": Path(feddep.__file__).parent.parent}
    return {
        **os.environ,
        **{
            name: os.pathsep.join([str(first), *filter(None, [os.environ.get(name)])])
            for name, first in paths.items()
        },
        "FLWR_HOME": str(folder / "flwr"),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.1",
        "NO_PROXY": LOOPBACK,
    }
