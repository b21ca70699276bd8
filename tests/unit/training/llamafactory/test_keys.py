import subprocess
import sys

import pytest

from datamill.training.llamafactory.keys import llamafactory_keys

pytestmark = pytest.mark.train

IMPORTED = """
from datamill.training.llamafactory.torchaudio_placeholder import install
install()
import dataclasses
from llamafactory.hparams.parser import _TRAIN_ARGS
print("KEYS", *sorted({f.name for c in _TRAIN_ARGS for f in dataclasses.fields(c) if f.init}))
"""


def test_well_known_keys() -> None:
    assert {
        "model_name_or_path",
        "dataset",
        "lora_rank",
        "learning_rate",
        "deepspeed",
        "max_new_tokens",
    } <= llamafactory_keys()
    assert "dataflex" not in llamafactory_keys()


@pytest.mark.slow
def test_keys_are_the_fields_of_the_dataclasses() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, timeout=240, check=True)
    line = next(line for line in done.stdout.splitlines() if line.startswith("KEYS"))
    assert llamafactory_keys() == frozenset(line.split()[1:])
