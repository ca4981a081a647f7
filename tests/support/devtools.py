"""A headless Chromium driven over the DevTools protocol through a pipe: no server, no port, no
further package.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

# No sandbox: containers forbid the kernel's, and the pages are our own.
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--mute-audio",
)
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PROGRAM = next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page of one browser; `errors` collects exceptions, failed loads and console errors."""

    def __init__(self, program: str, profile: Path, *, seconds: float = 240) -> None:
        self.seconds = seconds
        self.count = 0
        self.buffer = b""
        self.errors: list[str] = []
        self.events: list[str] = []
        # Chromium reads commands from descriptor 3 and writes to 4, each message ended by a zero
        # byte.
        to_read, self.out = os.pipe()
        self.inp, to_write = os.pipe()
        theirs = [fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (to_read, to_write)]

        def descriptors() -> None:
            os.dup2(theirs[0], 3)
            os.dup2(theirs[1], 4)

        options = [*FLAGS, "--remote-debugging-pipe", f"--user-data-dir={profile}"]
        self.process = subprocess.Popen(
            [program, *options, "about:blank"],
            preexec_fn=descriptors,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for fd in (to_read, to_write, *theirs):
            os.close(fd)
        self.session = ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def _message(self) -> dict[str, Any]:
        end = time.monotonic() + self.seconds
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.inp], [], [], max(0.0, end - time.monotonic()))
            data = os.read(self.inp, 1 << 16) if ready else b""
            if not data:
                raise TimeoutError("the browser does not answer")
            self.buffer += data
        raw, _, self.buffer = self.buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(raw)
        method = message.get("method", "")
        params = message.get("params", {})
        self.events.append(method)
        if method == "Runtime.exceptionThrown":
            self.errors.append(str(params["exceptionDetails"]))
        if method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])
        if method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
            self.errors.append(str(params["args"]))
        return message

    def call(self, method: str, **params: Any) -> Any:
        self.count += 1
        request = {"id": self.count, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.out, json.dumps(request).encode() + b"\0")
        while (answer := self._message()).get("id") != self.count:
            pass
        assert "error" not in answer, answer
        return answer["result"]

    def open(
        self, address: str, *, width: int = 1180, height: int = 900, dark: bool = False
    ) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.events.clear()
        self.call("Page.navigate", url="about:blank")
        while "Page.loadEventFired" not in self.events:
            self._message()
        self.events.clear()
        self.call("Page.navigate", url=address)
        while "Page.loadEventFired" not in self.events:
            self._message()

    def js(self, expression: str) -> Any:
        """Return the JSON value of an expression (or of the promise that it is)."""
        done = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def key(self, name: str) -> None:
        codes = {
            "Enter": 13,
            "Tab": 9,
            "ArrowRight": 39,
            "ArrowDown": 40,
            "ArrowLeft": 37,
            "ArrowUp": 38,
        }
        text = {"text": "\r"} if name == "Enter" else {}
        known = {"key": name, "code": name, "windowsVirtualKeyCode": codes[name]}
        self.call("Input.dispatchKeyEvent", type="keyDown", **known, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **known)

    def close(self) -> None:
        try:
            self.session = ""
            self.call("Browser.close")
        except (OSError, AssertionError, TimeoutError):
            self.process.kill()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.inp)
        os.close(self.out)
