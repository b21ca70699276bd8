"""What all tests share: quiet, offline libraries, and no endpoint or crash point of the caller's environment."""

import os

for name, value in {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "DS_ACCELERATOR": "cpu"}.items():
    os.environ.setdefault(name, value)
for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "DATAMILL_CRASH_AT"):
    os.environ.pop(name, None)
