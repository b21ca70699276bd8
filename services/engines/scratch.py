"""A folder for what engines pass around besides the data: broadcast values and the wheel."""

import tempfile
from pathlib import Path

from datamill.services.storage.atomic import temporary_name


def scratch_folder(parent: Path | None) -> Path:
    """A new folder below `parent` (the system's temporary folder when None); a killed run's is found as a leftover."""
    folder = temporary_name(Path(parent or tempfile.gettempdir()) / "datamill-engine")
    folder.mkdir(parents=True)
    return folder
