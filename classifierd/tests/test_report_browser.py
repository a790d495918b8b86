"""The report in headless Chromium: nothing is logged and nothing is clipped."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from test_report import report

pytestmark = pytest.mark.long

# Elements that reach past the page or their picture, and picture texts that touch each other.
# A table scrolls in its own box.
_FAULTS = """
const faults = [], width = document.documentElement.clientWidth;
if (document.documentElement.scrollWidth > width) faults.push("the page scrolls sideways");
for (const each of document.querySelectorAll("h1,p,section,svg,.tile,.tile b,.tile span")) {
  const box = each.getBoundingClientRect();
  if (box.left < -0.5 || box.right > width + 0.5 || each.scrollWidth > each.clientWidth + 1)
    faults.push("outside the page: " + each.tagName + " " + each.textContent.slice(0, 40));
}
for (const svg of document.querySelectorAll("svg[role=img]")) {
  const frame = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll("text")].map(t => [t, t.getBoundingClientRect()]);
  for (const [text, box] of texts)
    if (box.left < frame.left - 0.5 || box.right > frame.right + 0.5 ||
        box.top < frame.top - 0.5 || box.bottom > frame.bottom + 0.5)
      faults.push("clipped: " + text.textContent);
  texts.forEach(([one, a], i) => texts.slice(i + 1).forEach(([other, b]) => {
    if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
        Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > a.height / 2)
      faults.push("collide: " + one.textContent + " | " + other.textContent);
  }));
}
return faults;
"""


class Browser:
    """Chromium through chromedriver, which speaks W3C WebDriver: JSON over HTTP."""

    def __init__(self, port: int) -> None:
        self._base = f"http://127.0.0.1:{port}"
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu"]}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        made = self._post("/session", {"capabilities": {"alwaysMatch": wanted}})
        self._base += f"/session/{made['sessionId']}"

    def _post(self, path: str, body: dict[str, object]) -> Any:
        request = urllib.request.Request(
            self._base + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def devtools(self, command: str, **params: object) -> None:
        """Send a command of the DevTools protocol."""
        self._post("/goog/cdp/execute", {"cmd": command, "params": params})

    def open(self, page: Path, width: int, scheme: str) -> None:
        """Open a file in a window of this width, in the light or the dark scheme."""
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=900, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        media = [{"name": "prefers-color-scheme", "value": scheme}]
        self.devtools("Emulation.setEmulatedMedia", features=media)
        self._post("/url", {"url": page.as_uri()})

    def evaluate(self, script: str) -> Any:
        """Run a function's body in the page."""
        return self._post("/execute/sync", {"script": script, "args": []})

    def console(self) -> list[dict[str, object]]:
        """Return what was logged since the last call."""
        found: list[dict[str, object]] = self._post("/se/log", {"type": "browser"})
        return found

    def close(self) -> None:
        """End Chromium."""
        request = urllib.request.Request(self._base, method="DELETE")
        urllib.request.urlopen(request, timeout=60).close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    driver = shutil.which("chromedriver")
    if driver is None:
        pytest.skip("no chromedriver: apt-get install chromium-driver")
    port = _free_port()
    process = subprocess.Popen([driver, f"--port={port}"], stdout=subprocess.DEVNULL)
    try:
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.1)
        opened = Browser(port)
        try:
            yield opened
        finally:
            opened.close()
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_logged_clipped_or_collides(
    browser: Browser, tmp_path: Path, width: int, scheme: str
) -> None:
    page = tmp_path / "report.html"
    page.write_text(report())
    browser.open(page, width, scheme)
    assert browser.evaluate(_FAULTS) == []
    assert browser.console() == []
    dark = browser.evaluate("return getComputedStyle(document.body).backgroundColor")
    assert (dark == "rgb(17, 22, 29)") == (scheme == "dark")
    assert browser.evaluate("return innerWidth") == width


def test_a_wide_page_has_two_columns_of_about_one_height(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(report())
    browser.open(page, 1280, "light")
    boxes = browser.evaluate(
        "return [...document.querySelectorAll('.columns section')]"
        ".map(s => s.getBoundingClientRect()).map(b => [b.left, b.bottom, b.height])"
    )
    bottoms: dict[float, float] = {}
    for left, bottom, _ in boxes:
        bottoms[left] = max(bottoms.get(left, 0.0), bottom)
    assert len(bottoms) == 2
    assert max(bottoms.values()) - min(bottoms.values()) <= max(box[2] for box in boxes)


def test_what_is_clipped_is_found(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    broken = report().replace("<main>", '<main><p style="width:3000px">wide</p>', 1)
    page.write_text(broken.replace('text-anchor="end">', 'text-anchor="end" dx="-200">'))
    browser.open(page, 1280, "light")
    faults = " ".join(browser.evaluate(_FAULTS))
    assert "sideways" in faults
    assert "clipped" in faults
