"""A real Chromium for page tests; tests skip where there is none."""

import functools
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

AXE = "axe-core@4.10.3"
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run",
)  # fmt: skip


@contextmanager
def chromium() -> Iterator[Any]:
    """A running browser of this machine (nothing is downloaded)."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """A page of a file, with everything it said and asked for."""

    def __init__(self, browser: Any, file: Path, width: int = 1280, scheme: str = "light") -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page = self.context.new_page()
        self.messages: list[str] = []
        self.requests: list[str] = []
        self.dialogs: list[str] = []
        self.page.on("console", lambda message: self.messages.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.messages.append(f"error: {error}"))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("dialog", self._dialog)
        self.url = file.resolve().as_uri()
        self.page.goto(self.url)

    def _dialog(self, dialog: Any) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def open_details(self) -> None:
        """Unfold everything."""
        self.page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true })")

    def overflow(self) -> int:
        """Pixels by which the page is wider than its window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))

    def __enter__(self) -> "Visit":
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()


@functools.cache
def axe_source(folder: Path) -> str:
    """Source of axe-core from the npm registry; the test skips when it cannot be reached."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("axe-core comes by npm, which is not here")
    command = [npm, "pack", AXE, "--silent", "--pack-destination", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=120, cwd=folder)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"axe-core could not be fetched by npm: {error}")
    (archive,) = folder.glob("axe-core-*.tgz")
    with tarfile.open(archive) as files:
        member = files.extractfile("package/axe.min.js")
        assert member is not None
        return member.read().decode("utf-8")
