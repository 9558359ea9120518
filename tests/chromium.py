"""View pages in headless Chromium, over the pipe of its debugging protocol; this needs no other package."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-extensions", "--remote-debugging-pipe"),
)
# the browser reads commands from file descriptor 3 and answers on 4
START = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execvp(sys.argv[3], sys.argv[3:])"
)


@dataclass
class Browser:
    """A browser that answers commands; `events` holds the messages that it sends unasked."""

    commands: Any
    answers: Any
    session: str | None = None
    sent: int = 0
    events: list[dict[str, Any]] = field(default_factory=list)

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its answer."""
        self.sent += 1
        message = {"id": self.sent, "method": method, "params": parameters}
        if self.session is not None:
            message["sessionId"] = self.session
        self.commands.write(json.dumps(message).encode() + b"\0")
        self.commands.flush()
        while (said := self.hear()).get("id") != self.sent:
            self.events.append(said)
        assert "error" not in said, said
        return dict(said["result"])

    def hear(self) -> dict[str, Any]:
        """Return the next message."""
        letters = bytearray()
        while (letter := self.answers.read(1)) != b"\0":
            assert letter, "the browser ended"
            letters += letter
        return dict(json.loads(letters))

    def open(self, file: Path) -> None:
        """Load a page, with everything that it requests."""
        self.events.clear()
        self.ask("Page.navigate", url=file.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.hear())

    def value(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        return self.ask("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def width(self, pixels: int) -> None:
        """Set the width of the screen."""
        self.ask("Emulation.setDeviceMetricsOverride", width=pixels, height=800, deviceScaleFactor=1, mobile=True)

    def scheme(self, name: str) -> None:
        """Prefer light or dark colors."""
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def requests(self) -> list[str]:
        """Return the addresses that the page requested."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]

    def complaints(self) -> list[dict[str, Any]]:
        """Return messages of the console and errors of scripts."""
        kinds = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")
        return [event for event in self.events if event.get("method") in kinds]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser with one page; skip the test if no browser is installed."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("no Chromium is installed to look at the page with")
    command_end, command = os.pipe()
    answer, answer_end = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        words = [program, *FLAGS, f"--user-data-dir={folder}", "about:blank"]
        process = subprocess.Popen(
            [sys.executable, "-c", START, str(command_end), str(answer_end), *words],
            pass_fds=(command_end, answer_end),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(command_end)
        os.close(answer_end)
        with os.fdopen(command, "wb") as commands, os.fdopen(answer, "rb") as answers:
            try:
                browser = Browser(commands, answers)
                pages = browser.ask("Target.getTargets")["targetInfos"]
                target = next(page["targetId"] for page in pages if page["type"] == "page")
                browser.session = browser.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
                for domain in ("Page", "Network", "Log", "Runtime"):
                    browser.ask(f"{domain}.enable")
                yield browser
            finally:
                process.kill()
                process.wait()
