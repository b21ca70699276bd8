"""What the stock loop's own loader would do: its order, its way of cutting, its random draws; and loading by plan."""

import hashlib
from collections.abc import Sequence
from functools import partial
from typing import Any

from datamill.errors import DatamillError, ExitCode
from datamill.training.section import DynamicSection
from datamill.training.stream import (
    BatchRule,
    Order,
    SampleStream,
    length_grouped_order,
    seeded_order,
    sequential_order,
)


class StockLoader:
    """Facts of the prepared stock loader of a trainer that has begun to train.

    Attributes:
        micro_batches: micro-batches a rank takes in one stock epoch.
        accumulation: micro-batches of one optimizer step.
        epoch_steps: optimizer steps of one stock epoch.
        micro_rows: rows of one micro-batch over all ranks.
        stream: serves the rows.
    """

    def __init__(self, trainer: Any, section: DynamicSection) -> None:
        self._trainer = trainer
        stock = trainer.callback_handler.train_dataloader
        self.micro_batches = len(stock)
        self.accumulation = int(trainer.args.gradient_accumulation_steps)
        self.epoch_steps = max(-(-self.micro_batches // self.accumulation), 1)
        rule = _rule(trainer)
        self.micro_rows = rule.batch_size * rule.world_size
        self.stream = SampleStream(len(trainer.train_dataset), _order(trainer, stock, section), rule)

    def draw_worker_seed(self) -> None:
        """The draw a stock loader makes from the global generator when an epoch begins (it seeds its workers)."""
        import torch

        torch.empty((), dtype=torch.int64).random_()

    @staticmethod
    def rng_digest() -> str:
        """Sha256 of the state of torch's global CPU generator."""
        import torch

        return hashlib.sha256(torch.get_rng_state().numpy().tobytes()).hexdigest()

    def batches(self, positions: Sequence[Sequence[int]], seed: int) -> Any:
        """An iterable of collated micro-batches on the training device.

        Args:
            positions: rows of each micro-batch of this rank.
            seed: of the generator that seeds loader workers, so that the global one is left alone.
        """
        import torch
        from accelerate.utils import send_to_device
        from torch.utils.data import DataLoader
        from transformers.trainer_utils import seed_worker

        trainer, args = self._trainer, self._trainer.args
        workers = int(args.dataloader_num_workers)
        loader: Any = DataLoader(
            trainer._remove_unused_columns(trainer.train_dataset, description="Training"),
            batch_sampler=[list(batch) for batch in positions],
            collate_fn=trainer.data_collator,
            num_workers=workers,
            pin_memory=bool(args.dataloader_pin_memory) and torch.cuda.is_available(),
            prefetch_factor=args.dataloader_prefetch_factor if workers else None,
            worker_init_fn=partial(seed_worker, num_workers=workers, rank=args.process_index),
            generator=torch.Generator().manual_seed(seed),
        )
        return (send_to_device(batch, trainer.accelerator.device) for batch in loader)


def _rule(trainer: Any) -> BatchRule:
    accelerator, args = trainer.accelerator, trainer.args
    if accelerator.even_batches is False and accelerator.num_processes > 1:
        raise _unsupported("even_batches: false", "ranks would run different numbers of micro-batches")
    return BatchRule(
        batch_size=int(trainer._train_batch_size),
        world_size=int(accelerator.num_processes),
        drop_last=bool(args.dataloader_drop_last),
        split_batches=bool(accelerator.split_batches),
        even_batches=bool(accelerator.even_batches),
    )


def _order(trainer: Any, stock: Any, section: DynamicSection) -> Order:
    from accelerate.data_loader import SeedableRandomSampler, get_sampler
    from torch.utils.data import SequentialSampler
    from transformers.trainer_pt_utils import LengthGroupedSampler

    sampler = get_sampler(stock)
    if isinstance(sampler, SeedableRandomSampler):
        return seeded_order(int(sampler.initial_seed))
    if isinstance(sampler, SequentialSampler):
        return sequential_order
    if isinstance(sampler, LengthGroupedSampler):
        seed = None if section.train_type == "static" else int(trainer.args.data_seed or trainer.args.seed)
        return length_grouped_order(sampler.lengths, int(sampler.batch_size), seed)
    raise _unsupported(type(sampler).__name__, "its order cannot be planned ahead")


def _unsupported(what: str, why: str) -> DatamillError:
    return DatamillError(
        "DM-TRAIN-013",
        f"{what} does not go with a `dataflex:` section: {why}",
        exit_code=ExitCode.INVALID,
        fix="use the loader settings LLaMA-Factory has by default",
    )
