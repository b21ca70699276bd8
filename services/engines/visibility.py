"""Whether the workers of a cluster see the folder that a run lives in, found out before any work starts.

The driver writes a random word into its scratch folder and workers read it back. A worker that does not find the
word shares no storage with the driver: every unit it committed would be lost, so that is an error of the plan's
place, not something to wait for. Cost: one short task per node.
"""

import secrets
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from datamill.errors import DatamillError, ExitCode

PROBE_SECONDS = 120.0
"""How long the workers of a cluster may take to answer: they may have to unpack the wheel first."""
SHOWN = 3


@dataclass(frozen=True)
class Nonce:
    """A word in a file that the driver wrote.

    Attributes:
        path: the file.
        word: what it holds.
    """

    path: Path
    word: str

    @classmethod
    def write(cls, folder: Path) -> "Nonce":
        """Write a new one into `folder`."""
        nonce = cls(folder / "visible", secrets.token_hex(16))
        nonce.path.write_text(nonce.word, encoding="ascii")
        return nonce

    def blind_worker(self) -> str | None:
        """On a worker: its host when it does not find the word, else None."""
        try:
            seen = self.path.read_text(encoding="ascii")
        except OSError:  # not mounted here, or not readable: to this worker it is not there
            seen = ""
        return None if seen == self.word else socket.gethostname()


def require_seen(code: str, nonce: Nonce, answers: Sequence[str | None]) -> None:
    """Raise `code` (exit 3) naming the workers that do not see the folder of `nonce`, if there are any."""
    blind = sorted({host for host in answers if host is not None})
    if not blind:
        return
    folder = nonce.path.parent.parent
    others = f" and {len(blind) - SHOWN} more" if len(blind) > SHOWN else ""
    raise DatamillError(
        code, f"workers on {', '.join(blind[:SHOWN])}{others} do not see the folder {folder}",
        exit_code=ExitCode.INVALID, expected="a folder that every worker has under the same path",
        fix="put the project on storage that all nodes mount, or run with -e local",
    )  # fmt: skip
