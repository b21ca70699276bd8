"""Showing a page: in the browser of the person at the terminal, or not at all.

Scripts, pipes and CI get no window; neither does a machine without a browser. The caller prints the path either way.
"""

import os
import sys
import webbrowser
from pathlib import Path


def open_page(page: Path) -> bool:
    """Open `page` in a browser; False off a terminal, under CI, or when there is no browser that can be started."""
    if not sys.stderr.isatty() or os.environ.get("CI"):
        return False
    try:
        return webbrowser.open(page.resolve().as_uri())
    except (webbrowser.Error, OSError):  # a browser is configured and cannot be started
        return False
