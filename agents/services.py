"""What the nodes of the graph need from outside, handed in by whoever drives a thread; none of it is persisted."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from datamill.settings import resolve
from datamill.workflows.compile import CompileOptions
from datamill.workflows.events import Listener, silent


@dataclass(frozen=True)
class ThreadServices:
    """Services of one process for one thread.

    Attributes:
        project: project folder.
        listener: gets the events of runs and trainings.
        environment: environment variables (whether an endpoint is configured).
        workers: worker processes for runs.
        overwrite: the person's yes to replacing files datamill did not write.
        budget_usd: money the person allowed for LLM steps.
        train: whether an approved plan with a `train` section is trained as well.
        spoken: the person's last words as they wrote them, secrets included; the thread keeps them without.
    """

    project: Path
    listener: Listener = silent
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    workers: int | None = None
    overwrite: bool = False
    budget_usd: float | None = None
    train: bool = True
    spoken: str | None = field(default=None, repr=False)

    @property
    def allow_paths(self) -> tuple[str, ...]:
        """Folders outside the project that may be read."""
        return resolve(self.project).settings.allow_paths

    def compile_options(self) -> CompileOptions:
        """How workflows of this project are compiled."""
        settings = resolve(self.project).settings
        return CompileOptions(self.project, settings.allow_paths, settings.allow_env)
