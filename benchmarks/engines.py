"""MinHash dedup with verification on every engine beside the bare operator: same ids, CPU time, memory.

    python benchmarks/engines.py --corpus DIR [--engines local ray spark] [--rounds 1] [--workers 2]

`DIR` holds `corpus.jsonl` (columns `id` and `text`). `bare` reads it with datamill's own reader into one table in this
machine's memory, calls the operator once and writes the rows that stay; an engine runs the workflow read,
dedup.minhash, export, with units, ledger, fates, report and all. Every method has a process of its own; `local`,
`ray` and `spark` first run the workflow over a few hundred rows, so that processes, byte code and kernels are there:
start-up is what was used until then and is given apart. CPU time is user and system of the whole process tree, the Ray
daemons and the
JVM included, sampled every half second; memory is the largest resident size of any one process.
Kept ids are compared as one digest over the sorted ids.
"""

import argparse
import hashlib
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
TARGETS = {"local": 1.25, "ray": 3.0, "spark": 8.0}
WARM_ROWS = 400
WORKFLOW = """\
version: 1
name: near-duplicates
seed: 1
inputs:
  docs: {path: corpus.jsonl, format: jsonl}
steps:
  - {id: near, operator: dedup.minhash, needs: docs, params: {column: text, threshold: 0.8}}
outputs:
  kept: {from: near, path: out/kept.parquet, format: parquet}
run: {shard_rows: SHARD}
"""


def main() -> None:
    options = _options()
    if options.child:
        print("RESULT", json.dumps(_child(options)))
        return
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in ("bare", *options.engines)}
    for number in range(options.rounds):
        for name, runs in rounds.items():
            runs.append(_measure(name, options))
            print(f"round {number + 1}: {name} {runs[-1]}", flush=True)
    result = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": {"cpu": _cpu(), "cores": os.cpu_count(), "load": os.getloadavg()[0]},
        "command": f"python benchmarks/engines.py --corpus DIR --rounds {options.rounds} --workers {options.workers}",
        "documents": rounds["bare"][0]["rows_in"],
        "bytes": (options.corpus / "corpus.jsonl").stat().st_size,
        "methods": {name: _median(runs) for name, runs in rounds.items()},
    }
    target = RESULTS / f"engines_{result['documents']}.json"
    target.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    target.with_suffix(".md").write_text(_markdown(result), encoding="utf-8")
    print(_markdown(result))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--engines", nargs="*", default=["local", "ray", "spark"])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--shard-rows", type=int, default=20_000)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser.parse_args()


def _measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    command = [
        sys.executable, __file__, "--corpus", str(options.corpus), "--workers", str(options.workers),
        "--shard-rows", str(options.shard_rows), "--child", name,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if done.returncode or not lines:
        raise SystemExit(f"{name} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    found: dict[str, Any] = json.loads(lines[-1].removeprefix("RESULT "))
    return found


class Tree:
    """CPU seconds and largest resident size over this process and all it starts, those that ended included."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, str], float] = {}
        self._lock = threading.Lock()
        self._done = threading.Event()
        self.peaks: dict[str, int] = {}
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def cpu(self) -> float:
        """Seconds used so far."""
        with self._lock:
            self._sample()
            return sum(self._seen.values())

    def forget_peaks(self) -> None:
        """Start the measurement of memory anew."""
        self.peaks = {}

    def close(self) -> None:
        """Stop watching."""
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.5):
            with self._lock:
                self._sample()

    def _sample(self) -> None:
        waiting = [os.getpid()]
        while waiting:
            pid = waiting.pop()
            try:
                stat = (
                    Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
                )
                name = Path(f"/proc/{pid}/comm").read_text(encoding="ascii", errors="replace").strip()
                resident = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * PAGE
                for children in Path(f"/proc/{pid}/task").glob("*/children"):
                    waiting += [int(child) for child in children.read_text(encoding="ascii").split()]
            except (OSError, IndexError):  # it ended meanwhile
                continue
            self._seen[pid, stat[19]] = (int(stat[11]) + int(stat[12])) / TICK
            kind = "java" if name == "java" else "process"
            self.peaks[kind] = max(self.peaks.get(kind, 0), resident)


def _child(options: argparse.Namespace) -> dict[str, Any]:
    tree = Tree()
    folder = Path(tempfile.mkdtemp(prefix="engines-"))
    try:
        return (_bare if options.child == "bare" else _engine)(options, folder, tree)
    finally:
        tree.close()
        shutil.rmtree(folder, ignore_errors=True)


def _projects(options: argparse.Namespace, folder: Path) -> tuple[Path, Path]:
    """A project with the first rows, for warming up, and one with all of them."""
    warm, whole = folder / "warm", folder / "whole"
    for project, shard_rows in ((warm, WARM_ROWS // 8), (whole, options.shard_rows)):
        project.mkdir()
        (project / "plan.yaml").write_text(WORKFLOW.replace("SHARD", str(shard_rows)), encoding="utf-8")
    with (options.corpus / "corpus.jsonl").open(encoding="utf-8") as source:
        (warm / "corpus.jsonl").write_text("".join(next(source) for _ in range(WARM_ROWS)), encoding="utf-8")
    os.link(options.corpus / "corpus.jsonl", whole / "corpus.jsonl")
    return warm, whole


def _bare(options: argparse.Namespace, folder: Path, tree: Tree) -> dict[str, Any]:
    warm, whole = _projects(options, folder)
    _bare_job(warm)
    tree.forget_peaks()
    return _timed(partial(_bare_job, whole), tree)


def _bare_job(project: Path) -> tuple[int, list[str]]:
    """Read, decide and write, in one table in memory."""
    import polars as pl
    import pyarrow as pa
    import pyarrow.parquet as pq

    from datamill.operators.declaration import Context
    from datamill.operators.registry import find
    from datamill.services.engines.tables import TableDataset
    from datamill.services.reading.reader import read_chunk
    from datamill.workflows.compile import CompileOptions, compile_file
    from datamill.workflows.paths import PathPolicy
    from datamill.workflows.sources import read_source

    plan = compile_file(project / "plan.yaml", CompileOptions(project))
    step = plan.step("docs")
    source, chunks = read_source(step, PathPolicy.of(project, ()), plan.run.shard_rows)
    rows = pa.concat_tables([batch.rows for chunk in chunks for batch in read_chunk(source, chunk, step.arrow)])
    operator = find("dedup.minhash")
    params = operator.params.model_validate(dict(plan.step("near").params))
    decided = pl.DataFrame(operator.run([TableDataset((rows,))], params, Context("near", 1)).collect())
    kept = rows.filter(decided.get_column("fate").is_null().to_arrow())
    pq.write_table(kept, project / "kept.parquet", compression="zstd")
    return rows.num_rows, kept["id"].to_pylist()


def _engine(options: argparse.Namespace, folder: Path, tree: Tree) -> dict[str, Any]:
    from datamill.services.engines.choose import EngineChoice, open_engine

    warm, whole = _projects(options, folder)
    keeper = None if options.child == "local" else open_engine(EngineChoice(options.child, options.workers))
    try:
        _engine_job(warm, options)
        _engine_job(warm, options)  # the first one after the processes are there meets them cold
        tree.forget_peaks()
        return _timed(partial(_engine_job, whole, options), tree)
    finally:
        if keeper is not None:
            keeper.close()


def _engine_job(project: Path, options: argparse.Namespace) -> tuple[int, list[str]]:
    import pyarrow.parquet as pq

    from datamill.workflows.approval import approve
    from datamill.workflows.compile import CompileOptions, compile_file
    from datamill.workflows.execute import RunRequest, run_plan
    from datamill.workflows.runner import RunOptions

    plan = compile_file(project / "plan.yaml", CompileOptions(project))
    approve(project, plan, "benchmark")
    result = run_plan(plan, RunRequest(project, options.child, options.workers, RunOptions(reuse=False)))
    return result.rows_in, pq.read_table(project / result.outputs[0].path, columns=["id"])["id"].to_pylist()


def _timed(job: Any, tree: Tree) -> dict[str, Any]:
    startup, began = tree.cpu(), time.perf_counter()
    rows, kept = job()
    wall, cpu = time.perf_counter() - began, tree.cpu() - startup
    digest = hashlib.sha256("\n".join(sorted(map(str, kept))).encode()).hexdigest()
    return {
        "rows_in": rows, "kept": len(kept), "ids": digest[:16], "cpu_s": round(cpu, 2), "wall_s": round(wall, 2),
        "startup_cpu_s": round(startup, 2), "peak_mb": {k: v >> 20 for k, v in tree.peaks.items()},
    }  # fmt: skip


def _median(runs: list[dict[str, Any]]) -> dict[str, Any]:
    merged = dict(runs[0])
    for key in ("cpu_s", "wall_s", "startup_cpu_s"):
        merged[key] = round(statistics.median(run[key] for run in runs), 2)
    merged["peak_mb"] = {kind: max(run["peak_mb"].get(kind, 0) for run in runs) for kind in runs[0]["peak_mb"]}
    merged["one_digest"] = len({run["ids"] for run in runs}) == 1
    return merged


def _cpu() -> str:
    with Path("/proc/cpuinfo").open(encoding="ascii", errors="replace") as lines:
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} x {names[0]}" if names else platform.processor()


def _markdown(result: dict[str, Any]) -> str:
    bare = result["methods"]["bare"]
    lines = [
        f"# Engines: {result['documents']:,} documents, {result['bytes'] / 1e6:,.0f} MB",
        "",
        f"{result['date']}; {result['machine']['cpu']}, load {result['machine']['load']:.1f}",
        "",
        f"`{result['command']}`",
        "",
        "| method | CPU s | CPU / bare | target | wall s | start-up CPU s | peak MB of one process | kept | ids |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, found in result["methods"].items():
        peak = ", ".join(f"{kind} {size}" for kind, size in sorted(found["peak_mb"].items()))
        target = TARGETS.get(name, "")
        ratio = found["cpu_s"] / bare["cpu_s"]
        lines.append(
            f"| {name} | {found['cpu_s']} | {ratio:.2f} | {target} | {found['wall_s']} | {found['startup_cpu_s']} | "
            f"{peak} | {found['kept']:,} | {found['ids']} |"
        )
    same = len({found["ids"] for found in result["methods"].values()}) == 1
    verdict = "the same" if same else "NOT the same"
    return "\n".join([*lines, "", f"Kept ids are {verdict} for all methods.", ""])


if __name__ == "__main__":
    main()
