"""A real browser without a window, driven by the DevTools protocol over a pipe: no package is needed, only Chromium.

    with Browser() as browser:
        page = browser.open("file:///tmp/kernel.html", width=1400, height=900)
        page.wait("document.body.dataset.ready")
        page.click("[data-line='38']")
        page.evaluate("document.querySelectorAll('.row.lit').length")
        page.screenshot(Path("page.png"))

`find_browser` takes DEUTERON_TEST_BROWSER, else what Chromium is called on PATH, else what playwright has downloaded.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_FLAGS = (
    "--headless",
    "--no-sandbox",  # containers have none
    "--disable-gpu",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--remote-debugging-pipe",
)
SECONDS = 60


def find_browser() -> str | None:
    """A Chromium that is installed."""
    asked = os.environ.get("DEUTERON_TEST_BROWSER")
    if asked:
        return asked
    on_path = next(filter(None, map(shutil.which, _NAMES)), None)
    downloaded = sorted(Path.home().glob(".cache/ms-playwright/chromium*/chrome-*linux*/*hrome*"))
    return on_path or next((str(path) for path in downloaded if os.access(path, os.X_OK) and path.is_file()), None)


class Browser:
    """A browser process; a context manager, which ends it."""

    def __enter__(self) -> Browser:
        self._profile = tempfile.TemporaryDirectory(prefix="deuteron-browser-", ignore_cleanup_errors=True)
        from_us, self._in = os.pipe()
        self._out, to_us = os.pipe()
        flags = [*_FLAGS, f"--user-data-dir={self._profile.name}"]
        command = ["bash", "-c", f'exec "$0" "$@" 3<&{from_us} 4>&{to_us}', find_browser(), *flags]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(command, pass_fds=(from_us, to_us), **quiet)
        os.close(from_us)
        os.close(to_us)
        self._numbers, self._rest = itertools.count(1), b""
        self.problems: list[str] = []
        return self

    def __exit__(self, *unused: object) -> None:
        with contextlib.suppress(OSError):
            self.call("Browser.close")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        self._profile.cleanup()

    def open(self, url: str, width: int = 1400, height: int = 900, dark: bool = False) -> Page:
        """A new page that has loaded."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        page.call("Page.enable")
        page.call("Runtime.enable")
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        page.call("Emulation.setEmulatedMedia", features=[scheme])
        page.call("Page.navigate", url=url)
        page.wait("location.href !== 'about:blank' && document.readyState === 'complete'")
        return page

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Ask for something, and wait for the answer; exceptions of pages meanwhile become `problems`."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self._in, json.dumps(message).encode() + b"\0")
        while (answer := self._receive()).get("id") != number:
            self._note(answer)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return answer["result"]

    def _note(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description") or details["text"])
        if event.get("method") == "Runtime.consoleAPICalled" and params["type"] == "error":
            self.problems.append(str([arg.get("value") for arg in params["args"]]))

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            read = os.read(self._out, 1 << 20)
            if not read:
                raise AssertionError("the browser has ended")
            self._rest += read
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)


class Page:
    """A page: what a user does with it, and what is there to see."""

    def __init__(self, browser: Browser, session: str):
        self._browser, self._session = browser, session

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **params)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, condition: str) -> Any:
        """Wait until an expression is true; its value."""
        end = time.monotonic() + SECONDS
        while not (value := self.evaluate(condition)):
            assert time.monotonic() < end, f"never true: {condition}; {self._browser.problems}"
            time.sleep(0.02)
        return value

    def texts(self, selector: str) -> list[str]:
        """The texts of all elements that a selector finds, in the order of the page."""
        return self.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map((e) => e.textContent)")

    def point(self, selector: str) -> tuple[float, float]:
        """The middle of an element."""
        box = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); if (!e) return null;"
            "e.scrollIntoViewIfNeeded(); const b = e.getBoundingClientRect();"
            "return [b.left + Math.min(b.width, 200) / 2, b.top + b.height / 2]; })()"
        )
        assert box, f"nothing is {selector}"
        return tuple(box)

    def hover(self, selector: str) -> None:
        self.move(*self.point(selector))

    def move(self, x: float, y: float) -> None:
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, selector: str) -> None:
        x, y = self.point(selector)
        self.move(x, y)
        for type in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=type, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str) -> None:
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def choose(self, selector: str, value: str) -> None:
        """Choose an option of a <select> by its value."""
        self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.value = {json.dumps(value)};"
            "e.dispatchEvent(new Event('change')); })()"
        )

    def screenshot(self, path: Path) -> None:
        image = self.call("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(image))
