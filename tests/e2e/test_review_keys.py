"""The review on a terminal: every key, driven through a pseudo-terminal."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest
from support.agent import ASKED, LONGER, project

from datamill.workflows.run_record import list_runs

pytestmark = pytest.mark.slow
KEYS = r"\[a\]pprove .*\[q\]uit"


class Terminal:
    """`datamill ask` on a pseudo-terminal with an editor that changes the seed, or breaks the plan."""

    def __init__(self, folder: Path, editor: str) -> None:
        script = folder / "editor.sh"
        script.write_text(f"#!/bin/sh\n{editor}\n")
        script.chmod(0o755)
        unwanted = ("CI", "NO_COLOR", "OPENAI_API_KEY", "OPENAI_BASE_URL", "VISUAL")
        environment = {k: v for k, v in os.environ.items() if k not in unwanted}
        environment |= {"EDITOR": str(script), "TERM": "xterm", "COLUMNS": "100", "OMP_NUM_THREADS": "1"}
        words = ["-m", "datamill", "--project", str(folder), "ask", ASKED, "-i", "rows.jsonl", "-j", "1"]
        self.child = pexpect.spawn(sys.executable, words, env=environment, encoding="utf-8", timeout=90)

    def key(self, key: str, *expected: str) -> None:
        """Wait for the keys, press one, and wait for what it shows."""
        self.child.expect(KEYS)
        self.child.sendline(key)
        for words in expected:
            self.child.expect(words)

    def ended(self) -> int:
        """Exit code."""
        self.child.expect(pexpect.EOF)
        self.child.close()
        return int(self.child.exitstatus or 0)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    return project(tmp_path)


def test_details_say_edit_undo_of_a_bad_edit_and_approve(folder: Path) -> None:
    flag = folder / "second"
    editor = f'if [ -e {flag} ]; then sed -i "s/seed: 17/seed: 99/" "$1"; else touch {flag}; echo "  oops" >> "$1"; fi'
    terminal = Terminal(folder, editor)
    terminal.key("d", "version: 1", "dedup.exact")
    terminal.key("x")
    terminal.key("s", "you")
    terminal.child.sendline(LONGER)
    terminal.child.expect("plan changed")
    terminal.child.expect(r"filter\.length")
    terminal.key("e", "DM-PLAN-001", "the plan stays as it was")
    terminal.key("e", "plan changed", "seed  17 -> 99")
    terminal.key("a", "RUN", "DONE", "report.html")
    assert terminal.ended() == 0
    state = list_runs(folder)[0].state()
    assert state["approval"]["origin"] == "terminal"
    assert list(state["steps"]) == ["rows", "length", "exact"]


def test_quit_leaves_the_thread_open_and_reject_ends_it(folder: Path) -> None:
    left = Terminal(folder, "true")
    left.key("q", "left open; go on with: datamill ask --thread t-")
    assert left.ended() == 4
    refused = Terminal(folder, "true")
    refused.key("e", "nothing changed")
    refused.key("r", "reason")
    refused.child.sendline("too dear")
    assert refused.ended() == 4
    assert list_runs(folder) == []
