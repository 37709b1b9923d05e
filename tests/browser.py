"""A page in headless Chromium, driven by Chromium's debugging protocol over two pipes."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
_OPTIONS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe"),
]
"""Nothing is fetched from the network."""


class Browser:
    """Chromium with one page of a size; its profile is in a folder."""

    def __init__(self, page: Path, folder: Path, width: int, dark: bool = False) -> None:
        options = [*_OPTIONS, f"--user-data-dir={folder}"]
        reads, self.commands = os.pipe()
        self.answers, writes = os.pipe()
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$0" "$@" 3<&{reads} 4>&{writes}', str(CHROMIUM), *options],
            pass_fds=(reads, writes),
            stderr=subprocess.DEVNULL,
        )
        os.close(reads)
        os.close(writes)
        self.sent, self.session = 0, {}
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = {"sessionId": attached["sessionId"]}
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=page.as_uri())
        self.evaluate(
            "new Promise((done) => document.readyState === 'complete' ? done() : "
            "addEventListener('load', done))"
        )

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.commands)
        os.close(self.answers)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of a command."""
        self.sent += 1
        command = {"id": self.sent, "method": method, "params": parameters, **self.session}
        os.write(self.commands, json.dumps(command).encode() + b"\0")
        while (answer := json.loads(self._message())).get("id") != self.sent:
            pass
        result: dict[str, Any] = answer["result"]
        return result

    def _message(self) -> bytes:
        read = b""
        while not read.endswith(b"\0"):
            byte = os.read(self.answers, 1)
            if not byte:
                raise EOFError("Chromium ended")
            read += byte
        return read[:-1]

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in JavaScript, of a promise what it holds."""
        options = {"awaitPromise": True, "returnByValue": True}
        answer = self.call("Runtime.evaluate", expression=expression, **options)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str, text: str = "") -> None:
        """A key, with the text that it types."""
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
