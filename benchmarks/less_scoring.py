"""LESS scoring: datamill beside DataFlex 1.1.0 in one run, and how faithful projected scores are.

    python benchmarks/less_scoring.py --baseline DIR --dataflex-python PYTHON --pool ROWS.jsonl

`DIR` holds `mk_tiny.py` (makes a tiny Qwen2, a tokenizer, 200 rows and 20 targets), `less.yaml`, `components.yaml`
and `df_entry.py` (starts DataFlex with its stages timed); `PYTHON` is an interpreter with DataFlex installed.

Speed: in every round DataFlex as shipped (`save_interval` 16), DataFlex at its best (256) and datamill take turns, each
in a fresh process with one thread, on the same model, rows, LoRA and projection size; figures are medians over rounds
of CPU milliseconds per scored row (220 rows), from the request to the chosen rows. DataFlex's loader processes are not
counted, datamill collates in process; datamill's first call counts, so making the projection is in it. DataFlex
multiplies in half precision, for which many CPUs have no instructions: there its time is mostly those products, and
the figure without them (gradients, making the matrix, the rest) is the fair one to judge the method by. Both are given.

Fidelity: after `--warmup` optimizer steps on the pool, scores from projected features are compared with the exact ones
(no projection, which is what `projection: auto` does for a model of this size) by Spearman's rank correlation and by
the overlap of the best 5 %. Dense Rademacher is the reference. Two pools: the baseline's own kind of rows (sums,
differences, reversed digits), and questions with worked answers. A batch-1 loop over some rows checks the exact ones.
"""

import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

OFFLINE = {
    "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1",
    "CUDA_VISIBLE_DEVICES": "", "DS_ACCELERATOR": "cpu",
}  # fmt: skip
ROWS_SCORED = 220
PROJ_DIM = 4096
Scene = dict[str, Any]


def main() -> None:
    options = _options()
    if options.worker:
        print("RESULT", json.dumps(_worker(options)))
        return
    folder = Path(options.folder or tempfile.mkdtemp(prefix="less_scoring_"))
    _prepare(options, folder)
    speed = _speed(options, folder)
    fidelity = _fidelity(options, folder)
    result = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": {"cpu": _cpu(), "cores": os.cpu_count(), "threads": 1, "python": platform.python_version()},
        "versions": {name: version(name) for name in ("torch", "transformers", "peft", "llamafactory")}
        | {"dataflex": options.dataflex_version},
        "speed": speed,
        "fidelity": fidelity,
    }
    target = Path(options.out)
    target.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    target.with_suffix(".md").write_text(_markdown(result), encoding="utf-8")
    print(_markdown(result))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="LESS scoring: datamill beside DataFlex, and fidelity of projections")
    parser.add_argument("--baseline", type=Path)
    parser.add_argument("--dataflex-python", type=Path)
    parser.add_argument("--dataflex-version", default="1.1.0")
    parser.add_argument("--pool", type=Path, help="JSON lines with `question` and `answer`, for the second pool")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warmup", type=int, default=48)
    parser.add_argument("--rows", type=int, default=2400)
    parser.add_argument("--dim", type=int, default=8192)
    parser.add_argument("--folder", type=Path, help="keep model and data here")
    parser.add_argument("--out", default="benchmarks/results/less_scoring.json")
    parser.add_argument("--worker", choices=["speed", "fidelity"], help=argparse.SUPPRESS)
    return parser.parse_args()


def _prepare(options: argparse.Namespace, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for source in options.baseline.iterdir():
        if source.is_file() and not (folder / source.name).exists():
            shutil.copy(source, folder / source.name)
    if not (folder / "tiny_qwen2").exists():
        subprocess.run([options.dataflex_python, "mk_tiny.py"], cwd=folder, check=True, env=os.environ | OFFLINE)
    pools = {"same": _same_kind(options.rows + 64), "questions": _questions(options.pool, options.rows + 64)}
    info = json.loads((folder / "data/dataset_info.json").read_text(encoding="utf-8"))
    for name, rows in pools.items():
        for part, kept in (("pool", rows[: options.rows]), ("goal", rows[options.rows :])):
            (folder / f"data/{name}_{part}.json").write_text(json.dumps(kept), encoding="utf-8")
            info[f"{name}_{part}"] = {"file_name": f"{name}_{part}.json"}
    (folder / "data/dataset_info.json").write_text(json.dumps(info), encoding="utf-8")


def _same_kind(count: int) -> list[dict[str, str]]:
    """Rows of the three kinds the baseline's 200 are made of."""
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(count):
        first, second, kind = (int(number) for number in rng.integers(0, (100, 100, 3)))
        question, answer = (
            (f"Add {first} and {second}.", str(first + second)),
            (f"Subtract {second} from {first}.", str(first - second)),
            (f"Reverse the digits of {first}{second}.", f"{first}{second}"[::-1]),
        )[kind]
        rows.append({"instruction": question, "input": "", "output": f"The answer is {answer}."})
    return rows


def _questions(path: Path, count: int) -> list[dict[str, str]]:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:count] if line]
    return [{"instruction": row["question"], "input": "", "output": row["answer"]} for row in lines]


def _speed(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    timings: dict[str, list[dict[str, float]]] = {
        "dataflex_16": [],
        "dataflex_256": [],
        "datamill": [],
        "datamill_exact": [],
    }
    for number in range(options.rounds):
        for name, found in timings.items():
            if name.startswith("dataflex"):
                found.append(_run_dataflex(options.dataflex_python, folder, int(name.split("_")[1])))
            else:
                kind = "none" if name.endswith("exact") else "sjlt"
                found.append(_run_worker("speed", folder, {"PROJECTION": kind}))
            print(
                f"round {number + 1}: {name} {found[-1]['cpu_s'] / ROWS_SCORED * 1000:.2f} CPU ms per row", flush=True
            )
    per_row = {name: _medians(found) for name, found in timings.items()}
    ours = per_row["datamill"]["cpu_ms_per_row"]
    return {
        "rows": ROWS_SCORED,
        "proj_dim": PROJ_DIM,
        "rounds": options.rounds,
        "methods": per_row,
        "times_faster": {
            f"{name}, {figure}": per_row[name][f"{figure}_ms_per_row"] / ours
            for name in ("dataflex_16", "dataflex_256")
            for figure in ("cpu", "without_products_cpu")
        },
        "peak_extra_mb": statistics.median(run["peak_extra_mb"] for run in timings["datamill"]),
    }


def _medians(runs: list[dict[str, float]]) -> dict[str, Any]:
    """Median milliseconds per row of each figure, and all rounds as measured."""
    figures = {
        f"{key.removesuffix('_s')}_ms_per_row": statistics.median(run[key] for run in runs) / ROWS_SCORED * 1000
        for key in runs[0]
        if key.endswith("_s")
    }
    return {**figures, "rounds": runs}


def _run_dataflex(python: Path, folder: Path, save_interval: int) -> dict[str, float]:
    shutil.rmtree(folder / "out", ignore_errors=True)
    (folder / "out").mkdir()
    components = (folder / "components.yaml").read_text(encoding="utf-8")
    components = re.sub(r"save_interval: .*", f"save_interval: {save_interval}", components)
    (folder / "out/components.yaml").write_text(components, encoding="utf-8")
    arguments = (folder / "less.yaml").read_text(encoding="utf-8")
    arguments = re.sub(r"components_cfg_file: .*", "components_cfg_file: ./out/components.yaml", arguments)
    (folder / "out/less.yaml").write_text(arguments, encoding="utf-8")
    done = subprocess.run(
        [python, "df_entry.py", "train", "out/less.yaml"], cwd=folder, env=os.environ | OFFLINE, check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    found = re.search(r"TIMES (\{.*\}) total", done.stdout)
    if found is None:
        raise RuntimeError(done.stdout[-2000:] + done.stderr[-2000:])
    times = json.loads(found.group(1))
    products = times["project"]["cpu"] - times["generate_sketch_matrix"]["cpu"]
    return {
        "cpu_s": times["select"]["cpu"],
        "wall_s": times["select"]["wall"],
        "without_products_cpu_s": times["select"]["cpu"] - products,
        "gradients_cpu_s": times["_obtain_gradients"]["cpu"],
        "matrix_cpu_s": times["generate_sketch_matrix"]["cpu"],
    }


def _run_worker(kind: str, folder: Path, env: Mapping[str, str]) -> dict[str, Any]:
    command = [sys.executable, __file__, "--worker", kind]
    done = subprocess.run(
        command, cwd=folder, env=os.environ | OFFLINE | env, check=False, capture_output=True, text=True
    )
    found = re.search(r"^RESULT (.*)$", done.stdout, re.MULTILINE)
    if found is None:
        raise RuntimeError(done.stdout[-2000:] + done.stderr[-4000:])
    return dict(json.loads(found.group(1)))


def _fidelity(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    env = {"WARMUP": str(options.warmup), "DIM": str(options.dim)}
    return {name: _run_worker("fidelity", folder, env | {"POOL": name}) for name in ("same", "questions")}


def _worker(options: argparse.Namespace) -> dict[str, Any]:
    return _measure_speed() if options.worker == "speed" else _measure_fidelity()


def _scene(train: str, goal: str, steps: int) -> Scene:
    """Model with LoRA, rows as LLaMA-Factory tokenises them, and an AdamW after `steps` steps."""
    from datamill.training.llamafactory.torchaudio_placeholder import install

    install()
    import torch
    from llamafactory.data import SFTDataCollatorWith4DAttentionMask, get_dataset, get_template_and_fix_tokenizer
    from llamafactory.hparams import get_train_args
    from llamafactory.model import load_model, load_tokenizer

    torch.set_num_threads(1)
    settings = {
        "model_name_or_path": "./tiny_qwen2", "stage": "sft", "do_train": True, "finetuning_type": "lora",
        "lora_rank": 8,
        "lora_target": "all", "dataset": train, "eval_dataset": goal, "dataset_dir": "./data", "template": "qwen",
        "cutoff_len": 128, "output_dir": "./out/ours", "report_to": "none", "use_cpu": True, "learning_rate": 1e-3,
    }  # fmt: skip
    model_args, data_args, training_args, finetuning_args, _ = get_train_args(settings)
    tokenizer = load_tokenizer(model_args)
    template = get_template_and_fix_tokenizer(tokenizer["tokenizer"], data_args)
    data = get_dataset(template, model_args, data_args, training_args, stage="sft", **tokenizer)
    model = load_model(tokenizer["tokenizer"], model_args, finetuning_args, is_trainable=True)
    collator = SFTDataCollatorWith4DAttentionMask(template=template, model=model, **tokenizer)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    _warm_up(model, optimizer, data["train_dataset"], collator, steps)
    moments = _moments(model, optimizer)
    return {
        "model": model,
        "train": data["train_dataset"],
        "goal": data["eval_dataset"],
        "collator": collator,
        "moments": moments,
    }


def _warm_up(model: Any, optimizer: Any, rows: Any, collator: Any, steps: int) -> None:
    import torch

    torch.manual_seed(0)
    model.train()
    order = np.random.default_rng(0).permutation(len(rows))
    for step in range(steps):
        picked = [int(i) for i in np.take(order, range(step * 4, step * 4 + 4), mode="wrap")]
        model(**collator([rows[i] for i in picked])).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def _moments(model: Any, optimizer: Any) -> dict[str, Any]:
    from datamill.training.contracts import AdamMoments

    found = {}
    for name, parameter in model.named_parameters():
        if parameter in optimizer.state:
            state = optimizer.state[parameter]
            found[name] = AdamMoments(state["exp_avg"], state["exp_avg_sq"], int(state["step"]), 0.9, 0.999, 1e-8)
    return found


def _context(scene: Scene, token_budget: int = 4096) -> Any:
    from datamill.training.contracts import ScoringContext, ScoringRows

    def rows(data: Any) -> Any:
        lengths = np.array([len(ids) for ids in data["input_ids"]], dtype=np.int64)
        return ScoringRows(np.arange(len(data)), lengths, lambda ids: scene["collator"]([data[int(i)] for i in ids]))

    return ScoringContext(
        scene["model"], rows(scene["train"]), rows(scene["goal"]), scene["moments"], token_budget=token_budget
    )


def _measure_speed() -> dict[str, Any]:
    import resource

    scene = _scene("train_d", "eval_d", 4)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, cpu = time.perf_counter(), time.process_time()
    chosen = _select(scene, os.environ["PROJECTION"])
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    extra = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return {"cpu_s": cpu, "wall_s": wall, "chosen": len(chosen), "peak_extra_mb": extra}


def _select(scene: Scene, projection: str) -> Any:
    from datamill.training.contracts import SelectionState
    from datamill.training.registry import build_provider, build_selector

    selector = build_selector("less", {"projection": projection, "proj_dim": PROJ_DIM, "seed": 123})
    request = selector.signals()[0]
    table = build_provider(request).compute(_context(scene))
    state = SelectionState(table.ids, step=4)
    return selector.select({request.key: table}, 16, state, np.random.default_rng(0)).ids


def _measure_fidelity() -> dict[str, Any]:
    from datamill.training.contracts import SignalRequest
    from datamill.training.registry import build_provider

    steps, dim = int(os.environ["WARMUP"]), int(os.environ["DIM"])
    scene = _scene(f"{os.environ['POOL']}_pool", f"{os.environ['POOL']}_goal", steps)
    context = _context(scene, token_budget=16384)  # fewer batches: the dense matrix is made anew for each

    def scores(kind: str, seed: int) -> Any:
        params = {"projection": kind, "proj_dim": dim, "seed": seed}
        return build_provider(SignalRequest("grad_similarity", params)).compute(context).values.max(axis=1)

    exact = scores("none", 0)
    found = {
        f"{kind}, seed {seed}": _agreement(scores(kind, seed), exact)
        for kind, seeds in (("auto", (42,)), ("sjlt", (42, 1, 2)), ("rademacher", (42,)))
        for seed in seeds
    }
    spread = {
        "mean": float(exact.mean()),
        "std": float(exact.std()),
        "min": float(exact.min()),
        "max": float(exact.max()),
    }
    trained = sum(p.numel() for p in scene["model"].parameters() if p.requires_grad)
    return {
        "rows": len(exact), "targets": len(scene["goal"]), "warmup_steps": steps, "dim": dim, "parameters": trained,
        "exact_scores": spread, "agreement": found, "largest_error_of_exact_scores": _loop_error(scene, exact, 16),
    }  # fmt: skip


def _loop_error(scene: Scene, exact: Any, count: int) -> float:
    """Largest difference of exact scores from a plain batch-1 loop in float32 over the first `count` rows."""
    import torch

    from datamill.training.signals.adam_features import adam_feature

    model = scene["model"].eval()
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}

    def gradient(row: Any) -> dict[str, Any]:
        loss = model(**scene["collator"]([row])).loss
        return dict(zip(parameters, torch.autograd.grad(loss, list(parameters.values())), strict=True))

    def flat(parts: Mapping[str, Any]) -> Any:
        return torch.cat([part.double().flatten() for part in parts.values()])

    goal = torch.stack([flat(gradient(row)) for row in scene["goal"]]).mean(0)
    errors = []
    for place in range(count):
        found = gradient(scene["train"][place])
        feature = flat({n: adam_feature(g[None], scene["moments"][n], n)[0] for n, g in found.items()})
        errors.append(abs(float(torch.nn.functional.cosine_similarity(feature, goal, dim=0)) - exact[place]))
    return max(errors)


def _agreement(found: Any, exact: Any) -> dict[str, float]:
    from scipy.stats import spearmanr

    best = max(1, len(exact) // 20)
    overlap = len(set(np.argsort(-found)[:best]) & set(np.argsort(-exact)[:best])) / best
    return {
        "spearman": float(spearmanr(found, exact).statistic),
        "top_5_percent_overlap": overlap,
        "rms_error": float(np.sqrt(np.mean((found - exact) ** 2))),
    }


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    found = re.search(r"model name\s*: (.*)", lines)
    return found.group(1) if found else platform.processor() or "unknown"


def _markdown(result: Mapping[str, Any]) -> str:
    speed, fidelity, machine = result["speed"], result["fidelity"], result["machine"]
    names = {
        "dataflex_16": "DataFlex 1.1.0 as shipped (save_interval 16)",
        "dataflex_256": "DataFlex 1.1.0 at its best (256)",
        "datamill": "datamill, sjlt",
        "datamill_exact": "datamill, exact (no projection)",
    }
    setting = (
        f"{result['date']}, {machine['cpu']}, {machine['cores']} shared cores, one thread. Tiny Qwen2 with LoRA, "
        f"{fidelity['same']['parameters']:,} trainable parameters, {speed['rows']} rows, d = {speed['proj_dim']}; "
        f"medians of {speed['rounds']} interleaved rounds."
    )
    faster = speed["times_faster"]
    ratios = (
        f"datamill (sjlt) takes {faster['dataflex_16, cpu']:.0f} times less CPU time than DataFlex as shipped and "
        f"{faster['dataflex_256, cpu']:.0f} times less than DataFlex at its best. Without DataFlex's half-precision "
        f"products, which this CPU computes slowly, the ratios are "
        f"{faster['dataflex_16, without_products_cpu']:.1f} and {faster['dataflex_256, without_products_cpu']:.1f}."
    )
    timing = [
        f"| {names[k]} | {v['cpu_ms_per_row']:.2f} "
        f"| {v.get('without_products_cpu_ms_per_row', v['cpu_ms_per_row']):.2f} | {v['wall_ms_per_row']:.2f} |"
        for k, v in speed["methods"].items()
    ]
    parts = [
        ["# LESS scoring", "", setting, ""],
        [
            "| method | CPU ms per row | without products | wall ms per row |",
            "|---|---|---|---|",
            *timing,
            "",
            ratios,
            "",
        ],
        *(_fidelity_lines(name, found) for name, found in fidelity.items()),
    ]
    return "\n".join(line for part in parts for line in part)


def _fidelity_lines(pool: str, found: Mapping[str, Any]) -> list[str]:
    rows = [
        f"| {k} | {v['spearman']:.4f} | {v['top_5_percent_overlap']:.3f} | {v['rms_error']:.5f} |"
        for k, v in found["agreement"].items()
    ]
    setting = (
        f"Fidelity, pool `{pool}`: {found['rows']} rows, {found['targets']} targets, {found['warmup_steps']} "
        f"warm-up steps, d = {found['dim']}. Exact scores spread by {found['exact_scores']['std']:.4f} "
        f"(standard deviation) and differ from a batch-1 loop by at most {found['largest_error_of_exact_scores']:.1e}."
    )
    return [
        setting,
        "",
        "| projection | Spearman | overlap of the best 5 % | rms error of the cosine |",
        "|---|---|---|---|",
        *rows,
        "",
    ]


if __name__ == "__main__":
    main()
