"""Makes the shipped fingerprints: `python -m datamill.services.benchmarks.build DIR`.

DIR holds local copies of the sets: `gsm8k/example_model_solutions.jsonl` (the GSM8K test questions) and
`math/{svamp,mawps,mmlu_stem}_test.jsonl`.
Only 48-bit hashes are written; the questions cannot be recovered from them.
"""

import sys
from pathlib import Path
from typing import Final

from datamill.services.benchmarks.fingerprint import build_fingerprint
from datamill.services.benchmarks.questions import read_questions
from datamill.services.benchmarks.registry import SHIPPED, file_name

SOURCES: Final = {
    "gsm8k:test": ("gsm8k/example_model_solutions.jsonl", ("question",)),
    "svamp:test": ("math/svamp_test.jsonl", ("Body", "Question")),
    "mawps:test": ("math/mawps_test.jsonl", ("input",)),
    "mmlu_stem:test": ("math/mmlu_stem_test.jsonl", ("question",)),
}


def main(folder: Path, target: Path = SHIPPED) -> None:
    """Write one fingerprint per entry of `SOURCES`."""
    for name, (path, columns) in SOURCES.items():
        questions = (question.text for question in read_questions(folder / path, columns))
        build_fingerprint(name, questions).save(target / file_name(name))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
