"""Schemas of inputs, remembered by content so that compiling again does not read everything again."""

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa

from datamill.errors import Issue
from datamill.services.reading.reader import infer_schema
from datamill.services.reading.source import SourceSpec
from datamill.services.storage.atomic import write_json
from datamill.workflows.paths import STATE_FOLDER
from datamill.workflows.plan import sha256

INFERENCE_VERSION = 1


def infer(source: SourceSpec, files: Mapping[str, str], project: Path) -> tuple[pa.Schema, list[Issue]]:
    """Arrow schema of a source and findings about its content; one pass over it unless it is known already."""
    settings = {k: v for k, v in asdict(source).items() if k not in {"root", "shard_rows", "chunk_bytes"}}
    cached = project / STATE_FOLDER / "schemas" / f"{sha256([INFERENCE_VERSION, settings, dict(files)])[:40]}.json"
    if cached.is_file():
        try:
            record = json.loads(cached.read_text(encoding="utf-8"))
            schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(record["schema"])))
            return schema, [Issue(**issue) for issue in record["findings"]]
        except (ValueError, KeyError, TypeError, pa.ArrowInvalid):
            cached.unlink(missing_ok=True)  # damaged: it is made again below
    schema, findings = infer_schema(source)
    record = {
        "schema": base64.b64encode(schema.serialize().to_pybytes()).decode(),
        "findings": [issue.to_dict() for issue in findings],
    }
    write_json(cached, record, "schema.cache")
    return schema, findings
