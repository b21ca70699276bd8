"""Runs several training specs one after the other in this process: a process costs more than a run of the tiny model.

python many_runs.py ours|stock LIST.json, the list being of spec files (ours) or of LLaMA-Factory argument files (stock).
python many_runs.py killed LIST.json, the list being of {"step", "config", "base", "folder"}: each run is killed at its
step in a forked child and resumed in another, so that the imports are paid once.
"""

import importlib
import importlib.util
import json
import os
import signal
import sys
import traceback
import types
from collections.abc import Callable
from pathlib import Path


def stock(paths: list[str]) -> None:
    """LLaMA-Factory alone: nothing of datamill is imported."""
    if importlib.util.find_spec("torchaudio") is None:
        module = types.ModuleType("torchaudio")
        module.__spec__ = importlib.util.spec_from_loader("torchaudio", None)
        sys.modules["torchaudio"] = module
    from llamafactory.train.tuner import run_exp

    for path in paths:
        run_exp(json.loads(Path(path).read_text()))
    assert not any(name.split(".")[0] == "datamill" for name in sys.modules)


def ours(paths: list[str]) -> None:
    """Each spec through the worker; `KILL_AT=step` ends the process there as a power cut would, in the last spec."""
    from datamill.training import worker
    from datamill.training.events import EventWriter
    from datamill.training.llamafactory import torchaudio_placeholder
    from datamill.training.run_spec import RunSpec

    torchaudio_placeholder.install()
    import torch.distributed as dist

    dist.destroy_process_group = lambda *_: None  # LLaMA-Factory ends the group after each run
    for number, path in enumerate(paths):
        spec = RunSpec.read(Path(path))
        if number == len(paths) - 1 and "KILL_AT" in os.environ:
            _kill_at(int(os.environ["KILL_AT"]))
        if number == len(paths) - 1 and "DUMP_FEATURES" in os.environ:
            _dump_features(spec.folder)
        worker.run(spec, EventWriter(spec.folder, active=os.environ.get("RANK", "0") == "0"))


def killed(cases: list[dict[str, object]]) -> None:
    """Each case dies at its step and is resumed from whatever checkpoint it left; the second child must end well."""
    from datamill.training.llamafactory import torchaudio_placeholder

    torchaudio_placeholder.install()
    importlib.import_module("llamafactory.train.tuner")  # before the forks

    for case in cases:
        died = _in_a_fork(lambda case=case: _run_case(case, resume=False))
        assert os.WIFSIGNALED(died), (case["step"], died)
        assert os.WTERMSIG(died) == signal.SIGKILL, (case["step"], died)
        ended = _in_a_fork(lambda case=case: _run_case(case, resume=True))
        assert ended == 0, (case["step"], ended)


def _in_a_fork(act: Callable[[], None]) -> int:
    """Wait status of a child that runs `act`."""
    pid = os.fork()
    if pid == 0:
        try:
            act()
        except BaseException:  # noqa: BLE001 - a fork may not run the parent's code, whatever happened
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1]


def _run_case(case: dict[str, object], *, resume: bool) -> None:
    from datamill.training.config import from_mapping
    from datamill.training.launch import prepare

    config = from_mapping(case["config"], base_dir=Path(str(case["base"])))
    spec, _ = prepare(config, Path(str(case["folder"])), resume=resume)
    if not resume:
        os.environ["KILL_AT"] = str(case["step"])
    else:
        (spec.folder / "resumed_from").write_text(str(spec.resume))
    ours([str(spec.write())])


def _kill_at(step: int) -> None:
    from datamill.training.llamafactory.driver import PlanDriver

    serve = PlanDriver.serve

    def dying(self: PlanDriver, epoch_iterator: object, num_batches: int) -> list[object]:
        if self.trainer.state.global_step == step and os.environ.get("RANK", "0") == os.environ.get("KILL_RANK", "0"):
            os.kill(os.getpid(), signal.SIGKILL)
        return serve(self, epoch_iterator, num_batches)

    PlanDriver.serve = dying


def _dump_features(folder: Path) -> None:
    """Before every selection each rank writes the Adam features of its candidates, un-projected."""
    import numpy as np
    import torch

    from datamill.training.llamafactory.selection import Selection
    from datamill.training.signals.adam_features import adam_feature
    from datamill.training.signals.batches import iterate
    from datamill.training.signals.guard import scoring_guard
    from datamill.training.signals.per_sample_gradients import per_sample_gradients, trainable_names

    choose = Selection.choose

    def dumping(self: Selection, span: object, budget: int) -> object:
        context = self._context(self.candidates(span.update))
        names = trainable_names(context.model)
        found = {}
        with scoring_guard(context.model):
            for batch, samples, _ in iterate(context, context.rows):
                pieces = {}

                def receive(name: str, gradient: torch.Tensor, pieces: dict = pieces) -> None:
                    pieces[name] = adam_feature(gradient, context.moments[name], name, "none").flatten(1)

                per_sample_gradients(context.model, names, batch, receive)
                rows = torch.cat([pieces[name] for name in sorted(pieces)], dim=1).numpy()
                found |= {str(i): row for i, row in zip(samples.tolist(), rows, strict=True) if i >= 0}
        np.savez(folder / f"features-{span.update}-{context.rank}.npz", **found)
        return choose(self, span, budget)

    Selection.choose = dumping


if __name__ == "__main__":
    {"ours": ours, "stock": stock, "killed": killed}[sys.argv[1]](json.loads(Path(sys.argv[2]).read_text()))
