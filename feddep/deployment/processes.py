"""A federation on this machine: a SuperLink and SuperNodes as processes that meet on the loopback interface."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import feddep
from feddep.deployment import DeploymentError
from feddep.deployment.client_folders import Federation, client_folder, server_folder
from feddep.deployment.wire import LOOPBACK, CountingPort, free_port, listens
from feddep.utils.files import read_json, read_result, write_text

SERVER_APP = "feddep.deployment.server_app:app"
CLIENT_APP = "feddep.deployment.client_app:app"

_START = 180
"""Seconds to wait for the SuperLink to listen."""

_REST = 5
"""Seconds after which a SuperNode that has ended is started again."""

_APP = """\
[project]
name = "feddep-federation"
version = "{version}"
description = "FedAvg on the subgraphs of clients"
license = "MIT"

[tool.flwr.app]
publisher = "feddep"

[tool.flwr.app.components]
serverapp = {server_app}
clientapp = {client_app}

[tool.flwr.app.config]
folder = {folder}
patience = {patience}
resend = {resend}
"""

_CONNECTION = """\
[superlink]
default = "federation"

[superlink.federation]
address = "{address}"
{security}
"""


class LocalFederation:
    """A SuperLink and SuperNodes, each with its own folder, FLWR_HOME and process group.

    With TLS, the SuperLink has a certificate of an authority made for this federation, and takes only SuperNodes whose public
    keys it was given.  Every SuperNode connects through a port that counts its bytes.

    Attributes:
        federation: what all participants know.
        ports: the counting port of each client.
    """

    def __init__(self, directory: Path, tls: bool = True) -> None:
        """Prepare a federation.

        Args:
            directory: what ``feddep cut`` wrote.
            tls: whether connections are encrypted and SuperNodes authenticated.

        Raises:
            DeploymentError: if Flower is not installed.
            DataError: if the folder holds no federation.
        """
        if importlib.util.find_spec("flwr") is None:
            raise DeploymentError('Flower is not installed; pip install "feddep-bench[federation]" installs it')
        self._directory = directory.absolute()
        self._server = server_folder(self._directory)
        self.federation = Federation.load(self._server)
        self._tls = tls
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._ended: dict[int, float] = {}
        self._port = free_port()
        self.ports: list[CountingPort] = []

    def start(self) -> None:
        """Start the SuperLink, then the SuperNodes.

        Raises:
            DeploymentError: if the SuperLink does not start.
        """
        self.start_superlink()
        for number in range(self.federation.clients):
            self.register(number)
            self.start_supernode(number)

    def start_superlink(self) -> None:
        """Start the SuperLink, and wait until it listens.

        Raises:
            DeploymentError: if it does not.
        """
        options = ["--host", LOOPBACK, "--port", str(self._port), "--disable-runtime-dependency-installation"]
        if self._tls:
            from feddep.deployment.certificates import make_authority

            folders = [self._server, *(client_folder(self._directory, i) for i in range(self.federation.clients))]
            make_authority(self._server, [folder / "authority.pem" for folder in folders])
            options += ["--enable-supernode-auth", "--ssl-ca-certfile", str(self._server / "authority.pem")]
            options += ["--ssl-certfile", str(self._server / "server.pem"), "--ssl-keyfile", str(self._server / "server.key")]
        else:
            options += ["--insecure"]
        address, security = f"{LOOPBACK}:{self._port}", "insecure = true"
        if self._tls:
            security = f"root-certificates = {json.dumps(str(self._server / 'authority.pem'))}"
        write_text(self._server / "flwr" / "config.toml", _CONNECTION.format(address=address, security=security))
        process = self._start("superlink", self._server, ["flower-superlink", *options])
        end = time.monotonic() + _START
        while not listens(self._port):
            if process.poll() is not None or time.monotonic() > end:
                raise DeploymentError(f"the SuperLink did not start; {self._server / 'superlink.log'} says why")
            time.sleep(0.2)
        self.ports = [CountingPort(self._port) for _ in range(self.federation.clients)]

    def register(self, number: int) -> None:
        """Make a client's key, and tell the SuperLink its public half; nothing without TLS.

        Raises:
            DeploymentError: if the SuperLink does not take it.
        """
        if self._tls:
            from feddep.deployment.certificates import make_node_key

            public = self._server / f"client{number}.pub"
            make_node_key(client_folder(self._directory, number) / "node.key", public)
            self._flwr("supernode", "register", str(public), "federation", "--name", f"client{number}")

    def start_supernode(self, number: int) -> None:
        """Start the SuperNode of a client."""
        folder = client_folder(self._directory, number)
        options = ["--superlink", f"{LOOPBACK}:{self.ports[number].port}", "--host", LOOPBACK, "--port", str(free_port())]
        options += ["--node-config", f"folder={json.dumps(str(folder))} client={number}"]
        if self._tls:
            options += ["--root-certificates", str(folder / "authority.pem")]
            if (folder / "node.key").exists():
                options += ["--auth-supernode-private-key", str(folder / "node.key")]
        else:
            options += ["--insecure"]
        self._start(f"supernode{number}", folder, ["flower-supernode", *options])

    def run(
        self, patience: float = 3600, resend: float = 600, server_app: str = SERVER_APP, client_app: str = CLIENT_APP
    ) -> dict[str, Any]:
        """Train, and wait for the end.

        Args:
            patience: seconds to wait for all answers of a round.
            resend: seconds after which a client that has not answered is asked again.
            server_app: ``module:attribute`` of the ServerApp.
            client_app: ``module:attribute`` of the ClientApp.

        Returns:
            What the ServerApp wrote to ``outcome.json``, and ``wire``: bytes by client and direction.

        Raises:
            DeploymentError: if training stopped, with the reason.
        """
        for name in ("outcome.json", "failure.json", "weights.safetensors", "round.safetensors"):  # of an earlier run
            (self._server / name).unlink(missing_ok=True)
        values = {"folder": str(self._server), "server_app": server_app, "client_app": client_app}
        quoted = {name: json.dumps(value) for name, value in values.items()}
        text = _APP.format(version=feddep.__version__, patience=float(patience), resend=float(resend), **quoted)
        write_text(self._server / "app" / "pyproject.toml", text)
        before = [(port.up, port.down) for port in self.ports]
        run = self._start("run", self._server, ["flwr", "run", str(self._server / "app"), "federation", "--stream"])
        while run.poll() is None:
            time.sleep(0.5)
            self._revive()
        self._check_outcome()
        outcome = read_result(self._server / "outcome.json", self.federation.key)
        wire = [
            {"client": number, "up": port.up - up, "down": port.down - down}
            for number, (port, (up, down)) in enumerate(zip(self.ports, before, strict=True))
        ]
        return {**outcome, "wire": wire}

    def _revive(self) -> None:
        """Start SuperNodes that have ended again, a few seconds later, as a service manager does.

        The SuperLink refuses a SuperNode that was killed until it has missed its heartbeat: it takes a minute or two.
        """
        for number in range(self.federation.clients):
            process = self._processes.get(f"supernode{number}")
            if process is not None and process.poll() is not None:
                self._ended.setdefault(process.pid, time.monotonic())
                if time.monotonic() - self._ended[process.pid] > _REST:
                    self.start_supernode(number)

    def _check_outcome(self) -> None:
        """Make sure that there is an outcome.

        Raises:
            DeploymentError: if there is none, with the ServerApp's reason where it gave one.
        """
        if (self._server / "failure.json").exists():
            raise DeploymentError(read_json(self._server / "failure.json")["error"])
        if not (self._server / "outcome.json").exists():
            raise DeploymentError(f"the run ended without an outcome; {self._server / 'run.log'} says why")

    def signal_supernode(self, number: int, what: signal.Signals) -> None:
        """Send a signal to a SuperNode and all that it has started."""
        os.killpg(self._processes[f"supernode{number}"].pid, what)

    def kill_supernode(self, number: int) -> None:
        """Kill a SuperNode and all that it has started, without any warning."""
        self.signal_supernode(number, signal.SIGKILL)
        self._processes[f"supernode{number}"].wait()

    def stop(self) -> None:
        """End all processes, the SuperNodes first."""
        for process in reversed(self._processes.values()):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGCONT)
                os.killpg(process.pid, signal.SIGTERM)
        for process in self._processes.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            with suppress(ProcessLookupError):  # what is left of the group
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._processes.clear()
        for port in self.ports:
            port.close()

    def _flwr(self, *arguments: str) -> None:
        done = subprocess.run(
            _command(["flwr", *arguments]), env=self._environment(self._server), capture_output=True, text=True, check=False
        )
        if done.returncode:
            said = " ".join((done.stderr or done.stdout).split())
            raise DeploymentError(f"flwr {' '.join(arguments[:2])} failed: {said}")

    def _start(self, name: str, folder: Path, command: Sequence[str]) -> "subprocess.Popen[bytes]":
        """Start a process in a group of its own; what it says goes to a log in its folder."""
        with (folder / f"{name.rstrip('0123456789')}.log").open("ab") as log:
            process = subprocess.Popen(
                _command(command),
                env=self._environment(folder),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._processes[name] = process
        return process

    @staticmethod
    def _environment(folder: Path) -> Mapping[str, str]:
        """Of a participant's processes: its own home for Flower, this package and these programs, and no word to the outside."""
        package = str(Path(feddep.__file__).parent.parent)
        return {
            **os.environ,
            "FLWR_HOME": str(folder / "flwr"),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.1",
            "NO_PROXY": LOOPBACK,
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
            "PYTHONPATH": os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])]),
        }


def _command(command: Sequence[str]) -> list[str]:
    """A command whose program is the one installed beside this interpreter."""
    program = Path(sys.executable).parent / command[0]
    return [str(program) if program.exists() else shutil.which(command[0]) or command[0], *command[1:]]


@contextmanager
def started(directory: Path, tls: bool = True) -> Iterator[LocalFederation]:
    """A federation that runs, and is stopped at the end."""
    local = LocalFederation(directory, tls)
    try:
        local.start()
        yield local
    finally:
        local.stop()
