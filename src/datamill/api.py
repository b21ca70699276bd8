"""The Python face of datamill: ask, load, train, and a builder for workflows.

Nothing here prints. `approve()` is explicit, as on the screen. Objects show themselves in notebooks.

    plan = dm.ask("English only, no near-duplicates", inputs="data/web.jsonl")
    result = plan.approve().run()
    dm.train(result, method="less", target="target")
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datamill.errors import DatamillError, ExitCode, PlanError
from datamill.workflows.approval import approve as record_approval
from datamill.workflows.compile import CompileOptions, compile_text
from datamill.workflows.estimate import Estimate, estimate_plan
from datamill.workflows.execute import RunRequest, RunResult, run_plan
from datamill.workflows.lookup import RunData
from datamill.workflows.plan import Plan
from datamill.workflows.run_record import RunRecord, find_run
from datamill.workflows.runner import RunOptions
from datamill.workflows.view import svg
from datamill.workflows.yaml_file import dump

if TYPE_CHECKING:
    from datamill.training.launch import TrainResult


@dataclass(frozen=True)
class ReviewedPlan:
    """A compiled plan with what is needed to approve and run it."""

    plan: Plan
    project: Path
    request: str = ""
    allow_paths: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """The digest an approval names."""
        return self.plan.digest

    def approve(self) -> "ReviewedPlan":
        """Record your yes to exactly this plan."""
        record_approval(self.project, self.plan, "api")
        return self

    def run(self, executor: str | None = None, workers: int | None = None, **options: Any) -> "Result":
        """Run the approved plan, or go on with its unfinished run.

        Args:
            executor: `local`, `ray` or `spark`; what the plan says when None.
            workers: worker processes.
            **options: fields of `RunOptions`, such as `until` or `limit`.

        Raises:
            DatamillError: exit code 4 when nobody approved this digest.
        """
        engine = executor or self.plan.run.executor
        request = RunRequest(
            self.project, engine, workers, RunOptions(**options), self.allow_paths, command="datamill run plan.yaml",
            asked=self.request,
        )  # fmt: skip
        return Result(run_plan(self.plan, request), self.plan, self.project)

    async def arun(self, executor: str | None = None, workers: int | None = None, **options: Any) -> "Result":
        """`run` in a thread, for event loops."""
        return await asyncio.to_thread(self.run, executor, workers, **options)

    def estimate(self) -> Estimate:
        """Rows, seconds and LLM calls to expect, from running the cheap part on a sample."""
        return estimate_plan(self.plan, self.project, self.allow_paths)

    def explain(self, step: str) -> dict[str, Any]:
        """Operator, parameters, reason and columns of one step.

        Raises:
            KeyError: when there is no such step.
        """
        found = self.plan.step(step)
        columns = {name: kind.dtype for name, kind in found.schema.items()}
        return {
            "step": step,
            "operator": found.operator,
            "params": dict(found.params),
            "why": found.why,
            "columns": columns,
        }

    def to_yaml(self) -> str:
        """The workflow file."""
        return self.plan.yaml

    def save(self, path: str | Path) -> Path:
        """Write the workflow file."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(self.plan.yaml, encoding="utf-8")
        return target

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(s.id)}</td><td>{escape(s.operator)}</td><td>{escape(s.why or '')}</td></tr>"
            for s in self.plan.steps
        )
        head = "<tr><th>step</th><th>operator</th><th>why</th></tr>"
        return f"<p>plan <code>{self.plan.short}</code></p>{svg(self.plan)}<table>{head}{rows}</table>"


@dataclass(frozen=True)
class Result:
    """A finished run."""

    run: RunResult
    plan: Plan
    project: Path

    @property
    def run_id(self) -> str:
        """Name of the run."""
        return self.run.run_id

    @property
    def rows_in(self) -> int:
        """Records of all inputs."""
        return self.run.rows_in

    @property
    def rows_out(self) -> int:
        """Rows of all outputs."""
        return self.run.rows_out

    @property
    def outputs(self) -> Mapping[str, Path]:
        """Output files by name."""
        return {output.name: self.project / output.path for output in self.run.outputs}

    @property
    def report(self) -> Path:
        """The HTML report."""
        return self.run.folder / "report.html"

    @property
    def data(self) -> RunData:
        """Rows and fates of every step."""
        return RunData(self.project, RunRecord(self.run.folder))

    def drops(self, step: str | None = None, reason: str | None = None, k: int = 5) -> list[dict[str, Any]]:
        """Rows that left, with reasons and examples."""
        return self.data.dropped(step, reason, k)

    def _repr_html_(self) -> str:
        return f"<p>run <code>{escape(self.run_id)}</code>: {self.rows_in:,} in, {self.rows_out:,} out</p>"


def load(path: str | Path, project: str | Path | None = None) -> ReviewedPlan:
    """Compile a workflow file.

    Args:
        path: the file.
        project: project folder; the current folder when None.

    Raises:
        PlanError: with every issue of the file.
    """
    folder = Path(project or Path.cwd()).resolve()
    text = Path(path).read_text(encoding="utf-8-sig")
    return _reviewed(text, folder, str(path))


def _reviewed(text: str, project: Path, file: str, request: str = "") -> ReviewedPlan:
    from datamill.settings import resolve

    settings = resolve(project).settings
    plan = compile_text(text, CompileOptions(project, settings.allow_paths, settings.allow_env), file)
    return ReviewedPlan(plan, project, request, settings.allow_paths)


def ask(
    text: str,
    inputs: str | Path | Sequence[str | Path] = (),
    *,
    project: str | Path | None = None,
    model: str | None = None,
    out: str = "out",
    seed: int | None = None,
    train_model: str | None = None,
) -> ReviewedPlan:
    """Turn a sentence into a plan; nothing runs.

    Args:
        text: what you want.
        inputs: files or folders.
        project: project folder; the current folder when None.
        model: the planner's LLM, or `rules`.
        out: folder for outputs.
        seed: seed of the workflow.
        train_model: model to train, when the request asks for training.

    Raises:
        DatamillError: `DM-AGENT-006` with the question when the request is unclear, `DM-AGENT-007` when it is
            declined, `PlanError` when no valid plan came out.
    """
    from datamill.agents.conversation import Request, start
    from datamill.agents.services import ThreadServices

    folder = Path(project or Path.cwd()).resolve()
    given = [inputs] if isinstance(inputs, str | Path) else list(inputs)
    request = Request(text, tuple(_shown(Path(item), folder) for item in given), out, model, seed, train_model)
    turn = start(request, ThreadServices(folder))
    if turn.kind == "review":
        return _reviewed(turn.state["yaml"], folder, "plan.yaml", turn.state["request"])
    if turn.kind == "question":
        raise DatamillError("DM-AGENT-006", str(turn.payload["text"]), exit_code=ExitCode.NEEDS_APPROVAL)
    if turn.kind == "refused" and turn.draft is not None:
        why = "; ".join(f"{refusal.what}: {refusal.why}" for refusal in turn.draft.refusals)
        raise DatamillError("DM-AGENT-007", why, exit_code=ExitCode.NEEDS_APPROVAL)
    raise PlanError(turn.issues)


async def aask(text: str, inputs: str | Path | Sequence[str | Path] = (), **options: Any) -> ReviewedPlan:
    """`ask` in a thread, for event loops."""
    return await asyncio.to_thread(ask, text, inputs, **options)


def _shown(path: Path, project: Path) -> str:
    from datamill.workflows.paths import grant

    absolute = path.resolve() if path.is_absolute() or path.exists() else (project / path).resolve()
    if project in absolute.parents:
        return absolute.relative_to(project).as_posix()
    grant(project, [absolute])
    return str(absolute)


def train(
    source: "Result | str | Path", *, method: str | None = None, target: str | None = None, nproc: int = 1,
    project: str | Path | None = None, resume: bool = False, **overrides: Any,
) -> "TrainResult":  # fmt: skip
    """Train on a finished run.

    Args:
        source: what `run` returned, a run id or `@last`.
        method: selection method; the plan's own when None.
        target: output that selection aims at; the plan's own when None.
        nproc: processes.
        project: project folder, for a run id.
        resume: go on from the last checkpoint.
        **overrides: further keys of `train`, with `__` for a dot: `llamafactory__learning_rate=1e-4`.

    Raises:
        DatamillError: whatever is wrong before training, or stops it.
    """
    from datamill.workflows.training_run import train_on_run

    changes = {key.replace("__", "."): value for key, value in overrides.items()}
    if method is not None:
        changes["dataflex.component_name"] = method
    if target is not None:
        changes["target_dataset"] = target
    if isinstance(source, Result):
        return train_on_run(
            source.project, source.plan, RunRecord(source.run.folder), overrides=changes, nproc=nproc, resume=resume
        )  # fmt: skip
    folder = Path(project or Path.cwd()).resolve()
    record = find_run(folder, str(source))
    reviewed = load(record.plan_file, folder)
    return train_on_run(folder, reviewed.plan, record, overrides=changes, nproc=nproc, resume=resume)


@dataclass(frozen=True)
class Family:
    """Operators of one family, ready to be added to a workflow."""

    workflow: "Workflow"
    family: str
    names: tuple[str, ...]

    def __getattr__(self, name: str) -> "Callable[..., Workflow]":
        """The operator `name` as a method that adds it; a word of Python may be written with `_` behind."""
        verb = name.rstrip("_")
        if name.startswith("_") or verb not in self.names:
            raise AttributeError(f"there is no operator `{self.family}.{name}`; there are {', '.join(self.names)}")
        return partial(self.workflow.step, f"{self.family}.{verb}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.names]


@dataclass(frozen=True)
class Workflow:
    """A workflow put together in code; every method returns a new one.

    Operators are reached by family and name, or by id with `step`.

    Example:
        `Workflow("w").read("a.jsonl").filter.length(unit="words", min=30).write("out/b.parquet").plan()`
    """

    name: str
    seed: int = 17
    inputs: Mapping[str, Any] = field(default_factory=dict)
    steps: tuple[Mapping[str, Any], ...] = ()
    outputs: Mapping[str, Any] = field(default_factory=dict)
    last: str | None = None

    def __getattr__(self, family: str) -> "Family":
        """Operators of a family: `.dedup.minhash(...)`."""
        from datamill.operators.registry import catalogue

        names = [known.split(".", 1)[1] for known in catalogue() if known.startswith(f"{family}.")]
        if family.startswith("_") or not names:
            raise AttributeError(f"a workflow has no operator family {family!r}")
        return Family(self, family, tuple(names))

    def read(self, path: str, name: str | None = None, **options: Any) -> "Workflow":
        """Add an input and go on from it."""
        key = name or f"input{len(self.inputs) + 1}"
        spec = {"path": path, **({"options": options} if options else {})}
        return replace(self, inputs={**self.inputs, key: spec}, last=key)

    def step(
        self, operator: str, *, id: str | None = None, needs: Sequence[str] | None = None, **params: Any  # noqa: A002  the word of the file
    ) -> "Workflow":  # fmt: skip
        """Add an operator after the last step (or after `needs`)."""
        if needs is None and self.last is None:
            raise DatamillError(
                "DM-API-001", "a step needs something to read", exit_code=ExitCode.USAGE, fix=".read(...)"
            )
        key = id or f"{operator.replace('.', '_')[:24]}_{len(self.steps) + 1}"
        spec = {"id": key, "operator": operator, "needs": list(needs or [self.last or ""]), "params": params}
        return replace(self, steps=(*self.steps, spec), last=key)

    def write(self, path: str, name: str | None = None, **options: Any) -> "Workflow":
        """Write the rows of the last step; the format follows the suffix."""
        suffix = Path(path).suffix.lstrip(".")
        key = name or f"output{len(self.outputs) + 1}"
        spec = {"from": self.last, "path": path, "format": suffix or "jsonl", **options}
        return replace(self, outputs={**self.outputs, key: spec})

    def to_yaml(self) -> str:
        """The workflow file."""
        return dump(
            {"version": 1, "name": self.name, "seed": self.seed, "inputs": dict(self.inputs),
             "steps": [dict(step) for step in self.steps], "outputs": dict(self.outputs)}
        )  # fmt: skip

    def plan(self, project: str | Path | None = None) -> ReviewedPlan:
        """Compile it.

        Raises:
            PlanError: with every issue.
        """
        return _reviewed(self.to_yaml(), Path(project or Path.cwd()).resolve(), f"{self.name}.yaml")
