"""Command lines run in this process, with what they print and how they end."""

import io
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from datamill.cli.app import invoke


@dataclass(frozen=True)
class Ran:
    """A finished command line."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)


class _Stream(io.TextIOWrapper):
    """A stream that is not a terminal and keeps its bytes."""

    def __init__(self, encoding: str) -> None:
        self.bytes = io.BytesIO()
        super().__init__(self.bytes, encoding=encoding, errors="strict", write_through=True)

    def text(self) -> str:
        self.flush()
        return self.bytes.getvalue().decode(self.encoding)


def run_cli(project: Path | None, arguments: Sequence[str], encoding: str = "utf-8") -> Ran:
    """Run `datamill --project PROJECT ARGUMENTS` off a terminal (without `--project` when there is none)."""
    out, err = _Stream(encoding), _Stream(encoding)
    with patch.object(sys, "stdout", out), patch.object(sys, "stderr", err):
        code = invoke([*(["--project", str(project)] if project else []), *arguments])
    return Ran(int(code), out.text(), err.text())
