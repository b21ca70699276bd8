"""`report.stats`: what is in the data, as exact numbers that do not depend on partitioning; rows pass through.

Counts, nulls, lengths in characters and words with exact quantiles, values of grouping columns (source, language,
domain) and the exact duplicate share. The result is a dataset without rows whose schema metadata holds the report as
JSON under `datamill.stats`. Cost: two passes over the columns, memory proportional to the number of distinct lengths.
"""

from collections.abc import Sequence

from pydantic import Field

from datamill.operators.declaration import Context, Effect, Need, Params, operator
from datamill.services.engines.protocol import Dataset

METADATA_KEY = b"datamill.stats"


class StatsParams(Params):
    """Parameters of `report.stats`."""

    columns: tuple[str, ...] = Field((), description="text columns to measure; all text columns when empty")
    by: tuple[str, ...] = Field((), description="columns whose values are counted, e.g. source, lang, domain")
    quantiles: tuple[float, ...] = Field(
        (0.05, 0.25, 0.5, 0.75, 0.95, 0.99), description="quantiles of the lengths, each between 0 and 1"
    )
    duplicates: bool = Field(True, description="count rows that repeat another in all measured columns")
    top: int = Field(20, ge=1, description="most frequent values listed per `by` column")


def _reads(params: StatsParams) -> list[Need]:
    measured = [Need(column, dtypes=("string",), field="params.columns") for column in params.columns]
    return measured + [Need(column, field="params.by") for column in params.by]


def _check(params: StatsParams) -> list[tuple[str, str, str]]:
    if all(0 <= quantile <= 1 for quantile in params.quantiles):
        return []
    return [("error", "params.quantiles", "quantiles lie between 0 and 1")]


@operator(
    "report.stats",
    "Reports lengths, nulls, languages, sources and the exact duplicate share; changes nothing.",
    effect=Effect.GLOBAL,
    params=StatsParams,
    reads=_reads,
    check=_check,
    reference="quantiles: inverse of the empirical distribution function (Hyndman and Fan 1996, type 1)",
    keywords=(
        "statistics", "stats", "report", "distribution", "length distribution", "duplicate rate", "profile", "counts",
        "overview", "histogram",
        "统计", "分布", "长度分布", "重复率", "看看", "estatísticas", "distribuição", "contagem",
        "estadísticas", "distribución", "recuento",
    ),
)  # fmt: skip
def stats(datasets: Sequence[Dataset], params: StatsParams, ctx: Context) -> Dataset:
    """Measure the first dataset."""
    from datamill.operators.report.measures import measure

    return measure(datasets[0], params)
