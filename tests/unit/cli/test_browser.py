import io
import webbrowser
from pathlib import Path
from types import SimpleNamespace

import pytest

from datamill.cli.browser import open_page


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def urls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A browser that opens everything, at a terminal without CI."""
    seen: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: (seen.append(url), True)[1])
    monkeypatch.setattr("datamill.cli.browser.sys", SimpleNamespace(stderr=Terminal()))  # not pytest's own stderr
    monkeypatch.delenv("CI", raising=False)
    return seen


def test_a_page_is_opened_by_its_absolute_address(
    urls: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_page(Path("a report #1.html"))
    assert urls == [(tmp_path / "a report #1.html").as_uri()]
    assert urls[0].endswith("a%20report%20%231.html")


def test_off_a_terminal_nothing_is_opened(urls: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datamill.cli.browser.sys", SimpleNamespace(stderr=io.StringIO()))
    assert not open_page(tmp_path / "report.html")
    assert urls == []


def test_under_ci_nothing_is_opened(urls: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    assert not open_page(tmp_path / "report.html")
    assert urls == []


@pytest.mark.parametrize(
    "trouble", [webbrowser.Error("could not locate runnable browser"), FileNotFoundError("xdg-open")]
)
def test_a_browser_that_cannot_be_started_is_no_error(
    urls: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    def failing(_url: str) -> bool:
        raise trouble

    monkeypatch.setattr(webbrowser, "open", failing)
    assert not open_page(tmp_path / "report.html")


def test_without_a_browser_the_answer_is_no(urls: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda _url: False)
    assert not open_page(tmp_path / "report.html")
