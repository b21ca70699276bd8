"""The registered test sets: those shipped as hashes, and a project's own.

`gsm8k:test`, `svamp:test`, `mawps:test` and `mmlu_stem:test` are shipped (`build.py` makes them from local copies
of the sets). A project adds its own with `register`; they lie in `.datamill/benchmarks/` of the project.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from datamill.errors import DatamillError, ExitCode, nearest
from datamill.services.benchmarks.fingerprint import Fingerprint, build_fingerprint
from datamill.services.benchmarks.questions import read_questions

SHIPPED: Final = Path(__file__).parent / "data"
PROJECT_FOLDER: Final = Path(".datamill") / "benchmarks"
SUFFIX: Final = ".npz"


def names(project: Path | None = None) -> tuple[str, ...]:
    """Names of all registered test sets, shipped ones and those of `project`."""
    folders = [SHIPPED, *([project / PROJECT_FOLDER] if project else [])]
    return tuple(sorted({_name(path) for folder in folders for path in folder.glob(f"*{SUFFIX}")}))


def file_name(name: str) -> str:
    """File that holds the fingerprint called `name`."""
    return f"{name.replace(':', '__')}{SUFFIX}"


def is_shipped(name: str) -> bool:
    """Whether `name` comes with datamill."""
    return (SHIPPED / file_name(name)).is_file()


def find_benchmark(name: str, project: Path | None = None) -> Fingerprint:
    """The fingerprint called `name`.

    Raises:
        DatamillError: `DM-OPB-001` with the nearest name when there is none.
    """
    own = project / PROJECT_FOLDER / file_name(name) if project else None
    if own is not None and own.is_file():
        return Fingerprint.load(own, name)
    if is_shipped(name):
        return _shipped(name)
    raise DatamillError(
        "DM-OPB-001",
        f"no test set is registered as `{name}`",
        exit_code=ExitCode.INVALID,
        expected=", ".join(names(project)),
        nearest=nearest(name, names(project)),
        fix="give the path of a file with the questions instead of a name",
    )


def register(name: str, path: Path, *, project: Path, columns: Sequence[str] = (), n: int = 13) -> Fingerprint:
    """Fingerprint the questions in `path` and keep the hashes in `project` under `name`."""
    fingerprint = build_fingerprint(name, (question.text for question in read_questions(path, columns)), n)
    fingerprint.save(project / PROJECT_FOLDER / file_name(name))
    return fingerprint


def match_texts(texts: Iterable[str], project: Path | None = None, *, min_overlap: float = 0.6) -> dict[str, float]:
    """Share of `texts` that are (or contain) a question of each registered test set.

    Args:
        texts: one string per row, for instance the user turns of a target set.
        project: project whose own registered sets are looked at too.
        min_overlap: see `Match.is_contaminated`.

    Returns:
        every registered name with a share between 0 and 1; 0 for all when there are no texts.
    """
    rows = list(texts)
    shares = {}
    for name in names(project):
        found = find_benchmark(name, project).match_batch(rows)
        hits = sum(match is not None and match.is_contaminated(min_overlap) for match in found)
        shares[name] = hits / len(rows) if rows else 0.0
    return shares


@cache
def _shipped(name: str) -> Fingerprint:
    return Fingerprint.load(SHIPPED / file_name(name), name)


def _name(path: Path) -> str:
    return path.name.removesuffix(SUFFIX).replace("__", ":")
