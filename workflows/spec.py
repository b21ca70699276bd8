"""Workflow YAML v1 as pydantic models: what a file may say, before anything is checked against data.

Unknown keys are errors everywhere. The models hold text as written; interpolation, operator parameters, columns
and paths are checked by `workflows.compile`. The JSON Schema of `Workflow` is published by `datamill plan schema`.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

FORMAT_VERSION = 1
Identifier = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,30}$", description="[a-z][a-z0-9_]{0,30}")]


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Needs = Annotated[tuple[str, ...], BeforeValidator(_as_list)]
InputFormat = Literal["jsonl", "json", "csv", "tsv", "parquet", "txt"]
OutputFormat = Literal["jsonl", "json", "parquet", "csv"]


class _Spec(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class InputSpec(_Spec):
    """A source of rows."""

    path: str = Field(description="file, folder or glob, relative to the project")
    format: InputFormat | None = Field(None, description="recognised by content when left out")
    columns: dict[str, str] | str | None = Field(
        None, alias="schema", description="semantic type of the rows (`text`, `chat`) or of single columns"
    )
    options: dict[str, Any] = Field({}, description="parameters of the reader, such as delimiter or max_bad")

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class StepSpec(_Spec):
    """One application of an operator."""

    id: Identifier
    operator: str = Field(description="operator id, see `datamill ops list`")
    needs: Needs = Field(description="inputs or steps whose rows go in")
    params: dict[str, Any] = Field({}, description="parameters of the operator")
    why: str | None = Field(None, description="the part of the request or the statistic behind this step")
    on_error: Literal["fail", "drop", "keep"] = Field("fail", description="what happens to a row that raises")


class RegistrySpec(_Spec):
    """How an output is registered for LLaMA-Factory."""

    name: str = Field(pattern=r"^[A-Za-z0-9_\-]{1,80}$", description="key in dataset_info.json")
    formatting: Literal["alpaca", "sharegpt"] = "sharegpt"
    ranking: bool = False
    columns: dict[str, str] = {}
    tags: dict[str, str] = {}


class OutputSpec(_Spec):
    """A file that the run leaves behind."""

    source: str = Field(alias="from", description="step or input whose rows are written")
    path: str
    format: OutputFormat = "jsonl"
    card: bool = False
    llamafactory: RegistrySpec | None = None

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class CheckSpec(_Spec):
    """A quality gate; the run exits with 5 when it fails."""

    on: str = Field(description="step or output")
    metric: Literal["rows", "drop_rate", "duplicate_rate", "null_rate"]
    min: float | None = None
    max: float | None = None


class BudgetSpec(_Spec):
    """What a run may spend; part of what is approved."""

    llm_usd: float = Field(0.0, ge=0)
    wall_minutes: float | None = Field(None, gt=0)


class RaySpec(_Spec):
    """How to reach Ray."""

    address: str | None = Field(None, description="cluster to join; RAY_ADDRESS, else a local start, when unset")


class SparkSpec(_Spec):
    """How to reach Spark."""

    master: str | None = Field(None, description="Spark master URL; a local start when unset")
    conf: dict[str, str] = Field({}, description="further spark.* settings")


class RunSpec(_Spec):
    """Where and how to run; only the budget is part of the plan digest."""

    executor: Literal["local", "ray", "spark"] = "local"
    workers: int | None = Field(None, ge=1)
    shard_rows: int = Field(5000, ge=1)
    budget: BudgetSpec = BudgetSpec()
    ray: RaySpec = RaySpec()
    spark: SparkSpec = SparkSpec()


class GateSpec(_Spec):
    """A gate on a training metric."""

    metric: str
    min: float | None = None
    max: float | None = None


class TrainSpec(_Spec):
    """Training on an output; `dataflex` and `llamafactory` are checked by `datamill.training`."""

    engine: Literal["llamafactory"] = "llamafactory"
    dataset: str = Field(description="output to train on")
    target_dataset: str | None = Field(None, description="input or output that selection aims at")
    eval_dataset: str | None = Field(None, description="input or output that is monitored")
    dataflex: dict[str, Any] = {}
    llamafactory: dict[str, Any] = {}
    gates: tuple[GateSpec, ...] = ()


class Workflow(_Spec):
    """A workflow file."""

    version: Literal[1] = 1
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9\-_]{0,60}$")
    description: str = ""
    seed: int = Field(17, ge=0, le=2**63 - 1)
    inputs: dict[Identifier, InputSpec] = Field(min_length=1)
    params: dict[Identifier, Any] = {}
    steps: tuple[StepSpec, ...] = ()
    outputs: dict[Identifier, OutputSpec] = {}
    checks: tuple[CheckSpec, ...] = ()
    run: RunSpec = RunSpec()
    train: TrainSpec | None = None


def json_schema() -> dict[str, Any]:
    """JSON Schema of a workflow file, for editors."""
    schema = Workflow.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "datamill workflow v1", **schema}
