"""Puts our trainers in LLaMA-Factory's place: the only file that changes a name inside it, and it puts them back.

Changed while a run lasts: the trainer classes of the SFT and PT workflows, the loading step of both (to carry `_id`
and to load the target sets through the same pipeline). Everything else of LLaMA-Factory is used as it is.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any

from datamill.training.llamafactory.sample_ids import IdBook, with_ids, with_tracking
from datamill.training.llamafactory.trainers import planned
from datamill.training.run_spec import RunSpec


@contextmanager
def in_place(spec: RunSpec) -> Iterator[None]:
    """LLaMA-Factory trains with plans inside the block."""
    import llamafactory.train.pt.workflow as pt
    import llamafactory.train.sft.workflow as sft
    from llamafactory.data import loader

    book = IdBook()
    with ExitStack() as stack:
        stack.enter_context(_changed(loader, "align_dataset", with_ids(loader.align_dataset)))
        tracked = with_tracking(loader._get_dataset_processor)
        stack.enter_context(_changed(loader, "_get_dataset_processor", tracked))
        for workflow, name in ((sft, "CustomSeq2SeqTrainer"), (pt, "CustomTrainer")):
            ours = planned(getattr(workflow, name), spec, book.dropped)
            stack.enter_context(_changed(workflow, name, ours))
            stack.enter_context(_changed(workflow, "get_dataset", _loading(loader, spec, book)))
        yield


@contextmanager
def _changed(module: ModuleType, name: str, value: Any) -> Iterator[None]:
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def _loading(loader: ModuleType, spec: RunSpec, book: IdBook) -> Callable[..., dict[str, Any]]:
    """LLaMA-Factory's `get_dataset`, which also loads the target sets and notes the ids before any row is dropped."""

    def get_dataset(
        template: Any,
        model_args: Any,
        data_args: Any,
        training_args: Any,
        stage: str,
        tokenizer: Any,
        processor: Any = None,
    ) -> dict[str, Any]:
        with _changed(loader, "split_dataset", _noting(loader.split_dataset, book)):
            loaded = loader.get_dataset(template, model_args, data_args, training_args, stage, tokenizer, processor)
        module: dict[str, Any] = dict(loaded)
        if spec.section is not None and spec.section.train_type == "dynamic_select":
            names = spec.section.targets or tuple(data_args.eval_dataset or ())
            module["target_datasets"] = {}
            for name in names:
                with training_args.main_process_first(desc=f"load target {name}"):
                    aligned = loader._get_merged_dataset([name], model_args, data_args, training_args, stage)
                    module["target_datasets"][name] = loader._get_preprocessed_dataset(
                        aligned, data_args, training_args, stage, template, tokenizer, processor, is_eval=False
                    )
        return module

    return get_dataset


def _noting(split: Callable[..., Any], book: IdBook) -> Callable[..., Any]:
    def split_dataset(*args: Any, **kwargs: Any) -> Any:
        train, evaluation = split(*args, **kwargs)
        rows = train.get("train")
        if rows is not None and "_id" in rows.column_names:
            book.loaded = [str(i) for i in rows["_id"]]
        return train, evaluation

    return split_dataset
