"""A whole source in memory at once: for inspection, small side inputs and tests; runners read chunk by chunk."""

from dataclasses import dataclass

import pyarrow as pa

from datamill.errors import Issue
from datamill.services.reading.files import resolve_files
from datamill.services.reading.reader import (
    check_bad,
    merge_profiles,
    plan_chunks,
    profile_chunk,
    read_chunk,
    shape_findings,
)
from datamill.services.reading.schema import empty_files, make_schema
from datamill.services.reading.source import SourceSpec
from datamill.services.records import FATE_SCHEMA, SYSTEM_FIELDS


@dataclass(frozen=True, slots=True)
class SourceTable:
    """Everything a source gives.

    Attributes:
        rows: system and data columns in input order.
        fates: refused records and remarks, in `FATE_SCHEMA`.
        findings: what was noticed about files and columns.
        num_blank: blank lines passed over.
        num_bad: refused records.
    """

    rows: pa.Table
    fates: pa.Table
    findings: tuple[Issue, ...]
    num_blank: int
    num_bad: int


def read_whole(spec: SourceSpec) -> SourceTable:
    """Read all rows of a source.

    Raises:
        DatamillError: `DM-READ-*`, among them `DM-READ-004` when more than `max_bad` of the records are broken.
    """
    found = resolve_files(spec)
    chunks = plan_chunks(spec, found.files)
    profile = merge_profiles(profile_chunk(spec, chunk) for chunk in chunks)
    schema, findings = make_schema(spec, profile)
    batches = [batch for chunk in chunks for batch in read_chunk(spec, chunk, schema)]
    empty = pa.schema([*SYSTEM_FIELDS, *schema]).empty_table()
    rows = pa.concat_tables([empty, *(batch.rows for batch in batches)])
    fates = pa.concat_tables([FATE_SCHEMA.empty_table(), *(batch.fates for batch in batches)])
    num_bad = sum(batch.num_bad for batch in batches)
    check_bad(spec, rows.num_rows, num_bad, fates)
    shapes = shape_findings(spec, chunks)
    notes = (*found.findings, *shapes, *empty_files(found.files, profile), *findings)
    return SourceTable(rows, fates, notes, sum(batch.num_blank for batch in batches), num_bad)
