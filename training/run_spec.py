"""What the parent process hands to the training processes: one JSON file."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datamill.training.section import DynamicSection

SPEC_FILE = "worker.json"


@dataclass(frozen=True, slots=True)
class RunSpec:
    """One training run.

    Attributes:
        folder: run folder: ledger, events, scores and results go here.
        llamafactory: the configuration LLaMA-Factory runs.
        section: the dynamic part, or None to run LLaMA-Factory as it is.
        fingerprints: of config, model and dataset.
        resume: checkpoint folder to go on from.
        deepspeed: a DeepSpeed config is in use.
    """

    folder: Path
    llamafactory: Mapping[str, Any]
    section: DynamicSection | None
    fingerprints: Mapping[str, str]
    resume: str | None = None
    deepspeed: bool = False

    def write(self) -> Path:
        """Write the spec into the run folder."""
        path = self.folder / SPEC_FILE
        data = {
            "llamafactory": dict(self.llamafactory),
            "section": self.section.model_dump(mode="json") if self.section else None,
            "fingerprints": dict(self.fingerprints),
            "resume": self.resume,
            "deepspeed": self.deepspeed,
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(data, indent=1), encoding="utf-8")
        return path

    @staticmethod
    def read(path: Path) -> "RunSpec":
        """Read what `write` wrote."""
        data = json.loads(path.read_text(encoding="utf-8"))
        section = DynamicSection.model_validate(data.pop("section")) if data["section"] else data.pop("section")
        return RunSpec(folder=path.parent, section=section, **data)


def jsonable(value: Any) -> Any:
    """Numpy scalars and arrays inside `value` as tagged JSON; `restored` turns them back."""
    import numpy as np

    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, np.ndarray):
        return {"__array__": value.tolist(), "dtype": str(value.dtype), "shape": list(value.shape)}
    if isinstance(value, np.generic):
        return value.item()
    return value


def restored(value: Any) -> Any:
    """The inverse of `jsonable`, tuples coming back as lists."""
    import numpy as np

    if isinstance(value, Mapping):
        if "__array__" in value:
            return np.asarray(value["__array__"], dtype=value["dtype"]).reshape(value["shape"])
        return {key: restored(item) for key, item in value.items()}
    if isinstance(value, list):
        return [restored(item) for item in value]
    return value
