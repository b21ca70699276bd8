"""A Qwen2 of 1.3 M random parameters and a byte-level BPE tokenizer, made on the spot in about five seconds.

It exists so that every path of training can be walked without a download. The same texts give the same files byte
for byte: weights come from a generator seeded here (the global one is restored), the tokenizer from the texts in the
given order. Architecture after Yang et al. 2024 (Qwen2), chat markup ChatML.
"""

import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from datamill.errors import MissingDependencyError
from datamill.services.models.publish import published

VOCABULARY: Final = 4096
REVISION: Final = 1
"""Part of the cache folder's name: raised when the recipe changes."""

SPECIAL_TOKENS: Final = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHAT_TEMPLATE: Final = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
MODEL: Final = {
    "hidden_size": 128,
    "intermediate_size": 384,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": True,
}


def folder(cache: Path) -> Path:
    """Where the default tiny model is cached."""
    return cache / "models" / f"tiny-r{REVISION}"


def ensure(cache: Path) -> Path:
    """The cached tiny model with a tokenizer trained on the standard library, made when absent."""
    target = folder(cache)
    return target if (target / "config.json").is_file() else build(target)


def build(target: Path, texts: Iterable[str] | None = None, seed: int = 0) -> Path:
    """Make the model in `target`, which appears whole or not at all.

    Args:
        target: folder to make.
        texts: what the tokenizer learns from; source files of Python's standard library when None.
        seed: of the weights.

    Raises:
        DatamillError: `DM-ENV-001` without transformers.
    """
    try:
        import tokenizers  # noqa: F401 - asks before half a model is written
        import transformers  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(error.name or "transformers", "the tiny model", "train") from error
    with published(target) as staging:
        _tokenizer(texts if texts is not None else standard_library_texts()).save_pretrained(staging)
        _model(seed).save_pretrained(staging)
    return target


def standard_library_texts(limit: int = 100) -> list[str]:
    """The first `limit` modules of the standard library in alphabetical order."""
    library = Path(sysconfig.get_paths()["stdlib"])
    return [path.read_text(encoding="utf-8", errors="replace") for path in sorted(library.glob("*.py"))[:limit]]


def _tokenizer(texts: Iterable[str]) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        eos_token="<|im_end|>",  # noqa: S106 - a token of text, not of access
        pad_token="<|endoftext|>",  # noqa: S106
        chat_template=CHAT_TEMPLATE,
        model_max_length=MODEL["max_position_embeddings"],
    )


def _model(seed: int) -> Any:
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    config = Qwen2Config(vocab_size=VOCABULARY, bos_token_id=None, eos_token_id=2, pad_token_id=0, **MODEL)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Qwen2ForCausalLM(config)
