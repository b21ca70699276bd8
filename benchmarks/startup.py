"""How long datamill takes to start: `import datamill`, `--help`, `--version`, against Python itself and polars.

    python benchmarks/startup.py [--rounds 7]

Commands take turns within every round, each in a fresh process with byte code already compiled (into a folder of its
own, so a read-only installation measures the same). Figures are medians; ratios are to `python -c pass` and are what
carries over between machines. The modules that must not be loaded are looked up after the import.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
COMMANDS = {
    "python": ["-c", "pass"],
    "import polars": ["-c", "import polars"],
    "import datamill": ["-c", "import datamill"],
    "datamill --help": ["-m", "datamill", "--help"],
    "datamill --version": ["-m", "datamill", "--version"],
    "datamill ops list": ["-m", "datamill", "ops", "list"],
}
TARGETS_MS = {"import datamill": 150, "datamill --help": 400}
HEAVY = ("torch", "transformers", "numba", "polars", "pyarrow", "pandas", "langgraph", "openai", "rich", "typer")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment |= {"PYTHONPYCACHEPREFIX": cache, "NO_COLOR": "1"}
        timings = measure(options.rounds, environment)
        loaded = heavy_modules(environment)
    base = timings["python"]
    records = [
        {
            "command": name, "wall_ms": round(1000 * wall), "cpu_ms": round(1000 * cpu),
            "wall_over_python": round(wall / base[0], 1), "target_ms": TARGETS_MS.get(name),
        }
        for name, (wall, cpu) in timings.items()
    ]  # fmt: skip
    write(
        {
            "date": datetime.now(UTC).date().isoformat(),
            "machine": machine(),
            "command": f"python benchmarks/startup.py --rounds {options.rounds}",
            "records": records,
            "loaded_by_import": loaded,
        }
    )


def measure(rounds: int, environment: dict[str, str]) -> dict[str, tuple[float, float]]:
    """Median wall and processor seconds of each command; a round before the first compiles byte code."""
    walls: dict[str, list[float]] = {name: [] for name in COMMANDS}
    cpus: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for number in range(rounds + 1):
        for name, arguments in COMMANDS.items():
            before, started = os.times(), time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=environment)
            wall, after = time.perf_counter() - started, os.times()
            if number:
                walls[name].append(wall)
                cpus[name].append(
                    after.children_user - before.children_user + after.children_system - before.children_system
                )
    return {name: (statistics.median(walls[name]), statistics.median(cpus[name])) for name in COMMANDS}


def heavy_modules(environment: dict[str, str]) -> list[str]:
    code = f"import sys, datamill; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    return list(json.loads(done.stdout.replace("'", '"')))


def machine() -> dict[str, str]:
    model = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
                  if line.startswith("model name")), platform.machine())  # fmt: skip
    load = os.getloadavg()[0]
    return {"cpu": f"{os.cpu_count()} x {model}", "load": f"{load:.1f}", "python": platform.python_version()}


def write(result: dict[str, Any]) -> None:
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "startup.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    lines = [
        "# Start-up", "", f"{result['date']}; {', '.join(f'{k} {v}' for k, v in result['machine'].items())}", "",
        f"`{result['command']}`", "",
        "Medians of interleaved rounds in fresh processes, byte code compiled. `load` is the machine's load average:",
        "with more than one job a core, wall time says little and processor time and ratios say more.", "",
        "| command | wall ms | CPU ms | wall / python | target ms |", "|---|---|---|---|---|",
    ]  # fmt: skip
    lines += [
        f"| {r['command']} | {r['wall_ms']} | {r['cpu_ms']} | {r['wall_over_python']} | {r['target_ms'] or ''} |"
        for r in result["records"]
    ]
    lines += ["", f"Heavy packages loaded by `import datamill`: {', '.join(result['loaded_by_import']) or 'none'}."]
    text = "\n".join(lines) + "\n"
    (RESULTS / "startup.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
