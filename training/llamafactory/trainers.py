"""The trainer hook: LLaMA-Factory's own SFT and PT trainers, given their micro-batches by a plan.

Only `get_batch_samples` is replaced: the stock loop keeps its epochs, its steps, its saving and evaluating, and asks
for the micro-batches of one optimizer step; its own iterator is left untouched. A dynamic sampler could not do this,
because Accelerate fetches one batch ahead and a plan would be decided one step late.
"""

from pathlib import Path
from typing import Any, ClassVar

from datamill.training.llamafactory.callbacks import LearningRateCallback
from datamill.training.llamafactory.driver import PlanDriver
from datamill.training.llamafactory.sample_ids import take_ids
from datamill.training.run_spec import RunSpec


class PlannedTrainer:
    """Mixed into a LLaMA-Factory trainer class, before it; see `planned`."""

    spec: ClassVar[RunSpec]
    dropped_ids: ClassVar[Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["train_dataset"], pool_ids = take_ids(kwargs["train_dataset"])
        evaluation = kwargs.get("eval_dataset")
        if evaluation is not None:
            kwargs["eval_dataset"] = _without_ids(evaluation)
        targets = {name: take_ids(rows)[0] for name, rows in (kwargs.pop("target_datasets", None) or {}).items()}
        super().__init__(*args, **kwargs)
        self.driver = PlanDriver(self, self.spec, pool_ids, self.dropped_ids(pool_ids), targets)
        trainer: Any = self
        trainer.add_callback(LearningRateCallback(self._note_learning_rate))

    def _note_learning_rate(self) -> None:
        trainer: Any = self
        self.driver.selection.note_learning_rate(float(trainer._get_learning_rate()))

    def get_batch_samples(self, epoch_iterator: Any, num_batches: int, device: Any) -> tuple[list[Any], Any]:
        """The micro-batches of the next optimizer step, from the current plan."""
        batches = self.driver.serve(epoch_iterator, num_batches)
        trainer: Any = self
        return batches, trainer._get_num_items_in_batch(batches, device)

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """The stock checkpoint, with the state of the policy in it from the start."""
        trainer: Any = self
        folder = Path(trainer._get_output_dir(trial=trial)) / f"checkpoint-{trainer.state.global_step}"
        self.driver.save(folder)
        super()._save_checkpoint(model, trial)  # type: ignore[misc]


def _without_ids(dataset: Any) -> Any:
    if isinstance(dataset, dict):
        return {name: take_ids(rows)[0] for name, rows in dataset.items()}
    return take_ids(dataset)[0]


def planned(base: type, spec: RunSpec, dropped_ids: Any) -> type:
    """A subclass of a LLaMA-Factory trainer that serves plans."""
    members = {"spec": spec, "dropped_ids": staticmethod(dropped_ids)}
    return type(f"Planned{base.__name__}", (PlannedTrainer, base), members)
