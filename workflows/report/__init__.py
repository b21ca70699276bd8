"""The report of a run: `report.json` with everything, `report.html` as its reading copy."""

from datamill.workflows.report.build import build_report, write_report

__all__ = ["build_report", "write_report"]
