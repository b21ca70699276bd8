"""What a run costs beyond its operators: a workflow of ten rule steps, whole, against the same operators in memory.

    python benchmarks/engine_overhead.py [--rows 1000 20000] [--rounds 3]

`kernel` reads the rows and calls the ten operators on tables in memory, one after the other. `run` is the local
engine with one worker: units committed step by step, row ledger checked, fates kept, outputs and report written.
`datamill run` is the command as a user types it, with the start of Python. Methods take turns within every round, each
in a fresh process and a fresh project; figures are medians of processor seconds. The first call of each kind in a
process pays imports, which is part of a user's wait, so they are given apart.
"""

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
WORKFLOW = """\
version: 1
name: ten-steps
seed: 1
inputs:
  rows: {path: rows.jsonl, format: jsonl}
steps:
  - {id: unicode, operator: text.fix_unicode, needs: rows, params: {columns: [text]}}
  - {id: spaces, operator: text.normalize, needs: unicode, params: {columns: [text]}}
  - {id: long, operator: filter.length, needs: spaces, params: {columns: [text], unit: words, min: 20}}
  - {id: detect, operator: lang.detect, needs: long, params: {column: text}}
  - {id: english, operator: filter.lang, needs: detect, params: {allow: [en], unknown: keep}}
  - {id: quality, operator: filter.gopher_quality, needs: english, params: {column: text, min_words: 20}}
  - {id: private, operator: pii.redact, needs: quality, params: {columns: [text]}}
  - {id: known, operator: filter.expr, needs: private, params: {expr: "score >= 0.1"}}
  - {id: exact, operator: dedup.exact, needs: known, params: {columns: [text]}}
  - {id: near, operator: dedup.minhash, needs: exact, params: {column: text}}
outputs:
  clean: {from: near, path: out/clean.jsonl, format: jsonl, card: true}
"""
COMMON = """the of and to in is that it was for on are with as his they be at one have this from or had by hot but some
what there we can out other were all your when up use word how said an each she which do their time if will way about
many then them would write like so these her long make thing see him two has look more day could go come did my sound
no most number who over know water than call first people may down side been now find"""
WORDS = COMMON.split()
METHODS = ("kernel", "run", "datamill run")
TARGET_SECONDS, TARGET_OVERHEAD = 5, 0.25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 20000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", nargs=2, metavar=("METHOD", "PROJECT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(child(options.child[0], Path(options.child[1]))))
        return
    with tempfile.TemporaryDirectory() as cache:
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment |= {"PYTHONPYCACHEPREFIX": cache, "OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
        records = [record for rows in options.rows for record in measure(rows, options.rounds, environment)]
    command = (
        f"python benchmarks/engine_overhead.py --rows {' '.join(map(str, options.rows))} --rounds {options.rounds}"
    )
    write({"date": datetime.now(UTC).date().isoformat(), "machine": machine(), "command": command, "records": records})


def measure(rows: int, rounds: int, environment: dict[str, str]) -> list[dict[str, Any]]:
    """Medians of each method on `rows` rows; a round before the first compiles byte code and kernels."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in METHODS}
    for number in range(rounds + 1):
        for method in METHODS:
            with tempfile.TemporaryDirectory() as folder:
                make_project(Path(folder), rows)
                figures = whole_command(Path(folder), environment) if method == "datamill run" else apart(
                    method, Path(folder), environment
                )  # fmt: skip
            if number:
                found[method].append(figures)
    return [
        {"rows": rows, "method": method} | {k: round(statistics.median(r[k] for r in runs), 3) for k in runs[0]}
        for method, runs in found.items()
    ]


def make_project(folder: Path, rows: int) -> None:
    """Rows of about 80 words from a fixed seed; some short, foreign, repeated, or with an address in them."""
    generator = random.Random(5)
    lines: list[str] = []
    for number in range(rows):
        words = generator.choices(WORDS, k=generator.randint(60, 100) if number % 11 else 6)
        text = " ".join(words) + ("." if number % 7 else f" write to user{number}@example.org.")
        if number % 13 == 0:
            text = "les gens de la ville marchent vers la mer et regardent le soleil " * 4
        lines.append(json.dumps({"text": text, "score": generator.random()}))
        if number % 17 == 0:
            lines[-1] = lines[max(0, len(lines) - 5)]
    (folder / "rows.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "plan.yaml").write_text(WORKFLOW, encoding="utf-8")


def apart(method: str, folder: Path, environment: dict[str, str]) -> dict[str, float]:
    command = [sys.executable, __file__, "--child", method, str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def whole_command(folder: Path, environment: dict[str, str]) -> dict[str, float]:
    """`datamill run plan.yaml -j 1`, approved beforehand by the digest that `plan show` prints."""
    plan = [sys.executable, "-m", "datamill", "plan", "show", "plan.yaml", "--json"]
    shown = subprocess.run(plan, check=True, capture_output=True, text=True, env=environment, cwd=folder)
    digest = json.loads(shown.stdout)["digest"]
    before, started = os.times(), time.perf_counter()
    run = [sys.executable, "-m", "datamill", "run", "plan.yaml", "-j", "1", "--approve", digest]
    subprocess.run(run, check=True, capture_output=True, env=environment, cwd=folder)
    wall, after = time.perf_counter() - started, os.times()
    cpu = after.children_user - before.children_user + after.children_system - before.children_system
    return {"cpu_s": cpu, "wall_s": wall}


def child(method: str, folder: Path) -> dict[str, float]:
    """One method in this process: a small project first, for imports and compiled kernels, then the real one."""
    from datamill.workflows.approval import approve
    from datamill.workflows.compile import CompileOptions, compile_text
    from datamill.workflows.estimate import estimate_plan
    from datamill.workflows.execute import RunRequest, run_plan

    def once(project: Path) -> None:
        plan = compile_text(WORKFLOW, CompileOptions(project), "plan.yaml")
        if method == "kernel":
            estimate_plan(plan, project)  # reads up to 20,000 rows whole and runs every step on them
        else:
            approve(project, plan, "benchmark")
            run_plan(plan, RunRequest(project, workers=1))

    with tempfile.TemporaryDirectory() as small:
        make_project(Path(small), 200)
        once(Path(small))
    cpu, wall = time.process_time(), time.perf_counter()
    once(folder)
    return {"cpu_s": time.process_time() - cpu, "wall_s": time.perf_counter() - wall}


def machine() -> dict[str, str]:
    model = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
                  if line.startswith("model name")), platform.machine())  # fmt: skip
    load = os.getloadavg()[0]
    return {"cpu": f"{os.cpu_count()} x {model}", "load": f"{load:.1f}", "python": platform.python_version()}


def write(result: dict[str, Any]) -> None:
    RESULTS.mkdir(exist_ok=True)
    kernel = {r["rows"]: r["cpu_s"] for r in result["records"] if r["method"] == "kernel"}
    for record in result["records"]:
        record["over_kernel"] = round(record["cpu_s"] / kernel[record["rows"]], 2)
    (RESULTS / "engine_overhead.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    lines = [
        "# Ten rule steps, end to end", "",
        f"{result['date']}; {', '.join(f'{k} {v}' for k, v in result['machine'].items())}", "",
        f"`{result['command']}`", "",
        "Medians of interleaved rounds, one worker. `kernel`: the operators on tables in memory; `run`: units, ledger,",
        "fates, outputs and report too, imports apart; `datamill run`: the command with imports. Targets: 1,000 rows",
        f"by command under {TARGET_SECONDS} s; on many rows `run` at most {1 + TARGET_OVERHEAD} times `kernel`.", "",
        "| rows | method | CPU s | wall s | CPU / kernel |", "|---|---|---|---|---|",
    ]  # fmt: skip
    lines += [
        f"| {r['rows']:,} | {r['method']} | {r['cpu_s']} | {r['wall_s']} | {r['over_kernel']} |"
        for r in result["records"]
    ]
    text = "\n".join(lines) + "\n"
    (RESULTS / "engine_overhead.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
