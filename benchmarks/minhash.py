"""MinHash near-duplicates: datamill, datasketch and rensa side by side in one run, on a corpus with planted truth.

    python benchmarks/minhash.py --generator gen_corpus.py --scorer score.py

The generator is called as `gen_corpus.py N OUTDIR` and writes `corpus.parquet` (`id`, `text`) and `truth.npz`
(`fam`, `J`, `kind`); the scorer offers `score(labels, truth)`. Methods take turns within every round; figures are
medians of CPU seconds (user + system, one thread) per 100,000 documents. Slow peers run on the first documents only
and are scaled, which favours them where they slow down with size. Compilation and imports are outside the clock.
Peak memory comes from one fresh process a method. rensa returns flags instead of clusters, its fastest call.

Precision is given twice: against the planted star edges (variant to base), and against the exact similarity to any
member of the family, computed here in plain Python; the first counts two variants that are near-duplicates of each
other, but not of their base, as errors.
"""

import argparse
import gc
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from datamill.operators.declaration import Context
from datamill.operators.dedup.minhash import MinHashParams
from datamill.operators.dedup.minhash import run as run_operator
from datamill.services.engines.tables import TableDataset

Texts = pa.ChunkedArray
BANDS, ROWS, NGRAM = 14, 8, 5
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
RESULTS = Path(__file__).parent / "results"
FIGURES = ("recall", "recall_near", "precision_star", "precision_family", "removed", "wrong_family")


def cpu_seconds() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def rows_table(texts: Texts) -> pa.Table:
    count = len(texts)
    ids = pa.array([f"{i:032x}" for i in range(count)])
    return pa.table({"_id": ids, "_ord": pa.array(range(count), pa.int64()), "text": texts})


def ours(verify: str, unit: str) -> Callable[[Texts], np.ndarray]:
    """The whole operator on the in-memory engine: sketches, shuffle, pairs, clusters, decisions for every row."""
    params = MinHashParams.model_validate({"verify": verify, "unit": unit})

    def method(texts: Texts) -> np.ndarray:
        decided = run_operator([TableDataset.of(rows_table(texts))], params, Context("bench")).collect()
        return pl.DataFrame(decided).get_column("cluster_id").rank("dense").to_numpy()

    return method


def kernel_only(texts: Texts) -> np.ndarray:
    """Tokens, shingles, minima and band keys alone."""
    from datamill.services.minhash.settings import SketchSettings
    from datamill.services.minhash.sketch import sketch_column

    return sketch_column(texts, SketchSettings(verify="none")).counts


def windows(text: str, unit: str) -> list[bytes]:
    """Distinct shingles, tokenised the quickest way plain Python has for this corpus."""
    tokens = text.lower().split() if unit == "words" else list(text.lower())
    glue = " " if unit == "words" else ""
    return list({glue.join(tokens[i : i + NGRAM]).encode() for i in range(max(1, len(tokens) - NGRAM + 1))})


def datasketch_method(hashfunc: Callable[[bytes], int] | None, unit: str) -> Callable[[Texts], np.ndarray]:
    from datasketch import MinHash, MinHashLSH

    options = {} if hashfunc is None else {"hashfunc": hashfunc}

    def method(texts: Texts) -> np.ndarray:
        index = MinHashLSH(num_perm=BANDS * ROWS, params=(BANDS, ROWS))
        labels = np.arange(len(texts))
        for i, text in enumerate(texts.to_pylist()):
            sketch = MinHash(num_perm=BANDS * ROWS, **options)
            sketch.update_batch(windows(text, unit))
            for match in index.query(sketch):
                _unite(labels, i, match)
            index.insert(i, sketch)
        return np.array([_root(labels, i) for i in range(len(labels))])

    return method


def _root(labels: np.ndarray, node: int) -> int:
    while labels[node] != node:
        labels[node] = labels[labels[node]]
        node = int(labels[node])
    return node


def _unite(labels: np.ndarray, left: int, right: int) -> None:
    a, b = _root(labels, left), _root(labels, right)
    labels[max(a, b)] = min(a, b)


def rensa_sets(texts: Texts) -> np.ndarray:
    """Sets of Python strings given to rensa."""
    from rensa import RMinHash

    matrix = RMinHash.digest_matrix_from_token_sets(
        [windows(text, "words") for text in texts.to_pylist()], BANDS * ROWS, 42
    )
    return _rensa_flags(matrix)


def rensa_flat(texts: Texts) -> np.ndarray:
    """Shingle hashes made by polars (split, hash) and numpy (rolling polynomial), given to rensa."""
    from rensa import RMinHash

    words = pl.Series(texts).str.to_lowercase().str.split(" ")
    sizes = words.list.len().to_numpy().astype(np.int64)
    hashes = words.explode(empty_as_null=False).hash().to_numpy()
    mixed = np.zeros(len(hashes) - NGRAM + 1, np.uint64)
    for step in range(NGRAM):
        mixed = mixed * np.uint64(0x9E3779B185EBCA87) + hashes[step : len(hashes) - NGRAM + 1 + step]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    inside = np.ones(len(mixed), bool)
    for back in range(1, NGRAM):
        inside[starts[1:-1] - back] = False
    offsets = np.concatenate([[0], np.cumsum(sizes - NGRAM + 1)]).astype(np.uint64)
    return _rensa_flags(
        RMinHash.digest_matrix_from_flat_token_hashes(np.ascontiguousarray(mixed[inside]), offsets, BANDS * ROWS, 42)
    )


def _rensa_flags(matrix: Any) -> np.ndarray:
    from rensa import RMinHashLSH

    index = RMinHashLSH(threshold=0.8, num_perm=BANDS * ROWS, num_bands=BANDS)
    return np.asarray(index.query_duplicate_flags_matrix_one_shot(matrix), bool)


def to_cyrillic(texts: Texts) -> Texts:
    """The corpus letter by letter in Cyrillic: two-byte words, same truth."""
    pairs = {ord("a") + i: chr(0x430 + i) for i in range(26)} | {ord("A") + i: chr(0x410 + i) for i in range(26)}
    return pa.chunked_array([pa.array([text.translate(pairs) for text in texts.to_pylist()])])


def to_han(texts: Texts) -> Texts:
    """The corpus word by word in Han characters without spaces: character 5-grams in the place of word 5-grams."""
    known: dict[str, str] = {}

    def letter(word: str) -> str:
        bare = word.lower().rstrip(".")
        if bare not in known:
            known[bare] = chr(0x4E00 + xxhash.xxh32_intdigest(bare.encode()) % 20_000)
        return known[bare] + ("。" if word.endswith(".") else "")

    return pa.chunked_array([pa.array(["".join(map(letter, text.split())) for text in texts.to_pylist()])])


CORPORA: Mapping[str, Callable[[Texts], Texts]] = {"latin": lambda texts: texts, "cyrillic": to_cyrillic, "han": to_han}


def methods() -> dict[str, tuple[str, Callable[[Texts], np.ndarray], bool]]:
    """Name -> (corpus, method, whether it runs on all documents)."""
    xxh32 = xxhash.xxh32_intdigest
    return {
        "ours kernel only": ("latin", kernel_only, True),
        "ours unverified": ("latin", ours("none", "auto"), True),
        "ours verified": ("latin", ours("jaccard", "auto"), True),
        "rensa flat": ("latin", rensa_flat, True),
        "rensa token sets": ("latin", rensa_sets, False),
        "datasketch xxh32": ("latin", datasketch_method(xxh32, "words"), False),
        "datasketch default": ("latin", datasketch_method(None, "words"), False),
        "ours unverified, Cyrillic words": ("cyrillic", ours("none", "words"), True),
        "ours verified, Cyrillic words": ("cyrillic", ours("jaccard", "words"), True),
        "datasketch xxh32, Cyrillic words": ("cyrillic", datasketch_method(xxh32, "words"), False),
        "datasketch default, Cyrillic words": ("cyrillic", datasketch_method(None, "words"), False),
        "ours unverified, Han characters": ("han", ours("none", "auto"), True),
        "ours verified, Han characters": ("han", ours("jaccard", "auto"), True),
        "datasketch xxh32, Han characters": ("han", datasketch_method(xxh32, "chars"), False),
        "datasketch default, Han characters": ("han", datasketch_method(None, "chars"), False),
    }


RATIOS = (
    ("datasketch default", "ours unverified", 40.0),
    ("rensa token sets", "ours unverified", 12.0),
    ("rensa flat", "ours unverified", 2.0),
    ("datasketch default", "ours verified", None),
    ("datasketch default, Cyrillic words", "ours unverified, Cyrillic words", 10.0),
    ("datasketch xxh32, Cyrillic words", "ours unverified, Cyrillic words", 10.0),
    ("datasketch default, Han characters", "ours unverified, Han characters", 10.0),
    ("datasketch xxh32, Han characters", "ours unverified, Han characters", 10.0),
)


class Truth:
    """Planted truth of the first `count` documents, and exact similarities inside families."""

    def __init__(self, folder: Path, scorer: Path, count: int, texts: Texts) -> None:
        with np.load(folder / "truth.npz") as data:
            self.data = {name: data[name][:count] for name in ("fam", "J", "kind")}
        spec = spec_from_file_location("scorer", scorer)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        self.score = module.score
        self.texts = texts
        order = np.argsort(self.data["fam"], kind="stable")
        self.families = np.split(order, np.flatnonzero(np.diff(self.data["fam"][order])) + 1)
        self.family_of = {int(i): family for family in self.families if len(family) > 1 for i in family}

    def figures(self, labels: np.ndarray) -> dict[str, float | int | None]:
        """Recall and precision of clusters, or of flags where `labels` is boolean."""
        if labels.dtype == bool:
            return self._of_flags(labels)
        found = self.score(labels, self.data)
        first = np.unique(labels, return_index=True)[1]
        removed = np.ones(len(labels), bool)
        removed[first] = False
        return {
            "recall": found["rec[0.8,1)"],
            "recall_near": found["rec[0.8,0.85)"],
            "precision_star": found["prec>=.8"],
            "precision_family": round(float(np.mean([self._best(i) >= 0.8 for i in np.flatnonzero(removed)])), 4),
            "removed": found["removed"],
            "wrong_family": found["wrong_family"],
        }

    def _of_flags(self, flags: np.ndarray) -> dict[str, float | int | None]:
        near = (self.data["kind"] == 2) & (self.data["J"] >= 0.8) & np.isin(self.data["fam"], self._with_base())
        best = np.array([self._best(i) for i in np.flatnonzero(flags)])
        return {
            "recall": round(float(flags[near].mean()), 4),
            "recall_near": round(float(flags[near & (self.data["J"] < 0.85)].mean()), 4),
            "precision_star": None,
            "precision_family": round(float((best >= 0.8).mean()), 4),
            "removed": None,
            "wrong_family": None,
        }

    def _with_base(self) -> np.ndarray:
        return self.data["fam"][self.data["kind"] == 0]

    def _best(self, doc: int) -> float:
        """Highest similarity to another member of the family; star edges first, then every pair."""
        if self.data["kind"][doc] > 0 and self.data["J"][doc] >= 0.8:
            return float(self.data["J"][doc])
        mine = self._shingles(doc)
        best = 0.0
        for other in self.family_of.get(int(doc), ()):
            if other != doc and best < 0.8:
                theirs = self._shingles(int(other))
                best = max(best, len(mine & theirs) / len(mine | theirs))
        return best

    def _shingles(self, doc: int) -> set[tuple[str, ...]]:
        words = self.texts[doc].as_py().split()
        return {tuple(words[i : i + NGRAM]) for i in range(max(1, len(words) - NGRAM + 1))}


def generate(generator: Path, count: int, folder: Path) -> Path:
    target = folder / f"corpus-{count}"
    if not (target / "truth.npz").is_file():
        subprocess.run([sys.executable, str(generator), str(count), str(target)], check=True)
    return target


def load(folder: Path, count: int, corpus: str) -> Texts:
    texts = pq.read_table(folder / "corpus.parquet", columns=["text"])["text"].slice(0, count)
    return CORPORA[corpus](texts.combine_chunks() if corpus == "latin" else texts)


def time_methods(folder: Path, args: argparse.Namespace) -> list[dict[str, Any]]:
    """Interleaved rounds of all methods; one record a method."""
    corpora = {name: pa.chunked_array([load(folder, args.docs, name)]) if name == "latin" else
               load(folder, args.docs, name) for name in CORPORA}  # fmt: skip
    known = methods()
    seconds: dict[str, list[float]] = {name: [] for name in known}
    labels: dict[str, np.ndarray] = {}
    for corpus, method, _ in known.values():
        method(corpora[corpus].slice(0, 64))  # compile and import outside the clock
    for _ in range(args.rounds):
        for name, (corpus, method, whole) in known.items():
            texts = corpora[corpus].slice(0, args.docs if whole else args.slow_docs)
            gc.collect()
            before = cpu_seconds()
            labels[name] = method(texts)
            seconds[name].append((cpu_seconds() - before) * 100_000 / len(texts))
    records = []
    for name, (_, _, whole) in known.items():
        count = args.docs if whole else args.slow_docs
        truth = Truth(folder, args.scorer, count, corpora["latin"])
        scores = truth.figures(labels[name]) if name != "ours kernel only" else dict.fromkeys(FIGURES)
        median = statistics.median(seconds[name])
        if not whole:  # most bases are outside the first documents
            scores["precision_star"] = None
        scores = {key: None if value != value else value for key, value in scores.items()}  # noqa: PLR0124  NaN: no such pair
        record = {"method": name, "docs": count, "cpu_s_per_100k": round(median, 3), "runs": seconds[name], **scores}
        records.append(record)
        print(record, flush=True)
    return records


def peak_memory(folder: Path, args: argparse.Namespace) -> dict[str, int]:
    """Peak resident memory of one fresh process a method, MB; the input column is in it."""
    found = {}
    for name, (corpus, _, whole) in methods().items():
        if corpus == "latin":
            count = args.docs if whole else args.slow_docs
            found[name] = int(_child(["--peak-of", name, "--folder", str(folder), "--docs", str(count)])["peak_mb"])
    return found


def linearity(args: argparse.Namespace, work: Path) -> list[dict[str, Any]]:
    """The verified operator on the streaming local engine, one worker, in a fresh process a size."""
    found = []
    for count in args.sizes:
        folder = generate(args.generator, count, work)
        with tempfile.TemporaryDirectory(dir=work) as name:
            write_shards(folder, Path(name))
            found.append({"docs": count, **_child(["--stream", "--folder", name])})
        print(found[-1], flush=True)
    return found


def write_shards(corpus: Path, target: Path) -> None:
    """The corpus as Parquet files of 5,000 rows, as a run has them on disk."""
    first = 0
    for number, batch in enumerate(pq.ParquetFile(corpus / "corpus.parquet").iter_batches(5000, columns=["text"])):
        ids = pa.array([f"{first + i:032x}" for i in range(len(batch))])
        orders = pa.array(range(first, first + len(batch)), pa.int64())
        table = pa.table({"_id": ids, "_ord": orders, "text": batch.column(0)})
        pq.write_table(table, target / f"{number:05d}.parquet")
        first += len(batch)


def _child(arguments: list[str]) -> dict[str, Any]:
    done = subprocess.run([sys.executable, __file__, *arguments], check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def peak_mb() -> int:
    """High-water mark of this program image; `ru_maxrss` would count what the parent held when it forked."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) >> 10


def stream(folder: Path) -> dict[str, Any]:
    """Run the verified operator over the Parquet files of `folder` without holding the corpus."""
    from datamill.services.engines.local import LocalEngine
    from datamill.services.engines.protocol import Shard

    warm = rows_table(pa.chunked_array([["compiles the kernel", "outside the clock", "编译"]]))
    run_operator([TableDataset.of(warm)], MinHashParams(), Context("bench"))
    paths = sorted(folder.glob("*.parquet"))
    schema = pq.read_schema(paths[0])
    shards = [Shard(path, pq.read_metadata(path).num_rows, path.stem) for path in paths]
    idle = peak_mb()
    with LocalEngine(1, folder / "scratch") as engine:
        before = cpu_seconds()
        decided = run_operator([engine.dataset(shards, schema)], MinHashParams(), Context("bench"))
        kept = sum(table["fate"].null_count for table in decided.tables(["fate"]))
        used = cpu_seconds() - before
    num_rows = sum(shard.num_rows for shard in shards)
    return {"cpu_s": round(used, 2), "cpu_s_per_100k": round(used * 100_000 / num_rows, 2), "kept": kept,
            "parquet_mb": sum(path.stat().st_size for path in paths) >> 20, "idle_mb": idle,
            "peak_mb": peak_mb()}  # fmt: skip


def ratios(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Medians of the per-round ratios, with the target."""
    runs = {record["method"]: record["runs"] for record in records}
    found = []
    for slow, fast, target in RATIOS:
        value = statistics.median(a / b for a, b in zip(runs[slow], runs[fast], strict=True))
        reached = None if target is None else value >= target
        found.append({"slow": slow, "fast": fast, "ratio": round(value, 1), "target": target, "reached": reached})
    return found


def machine() -> dict[str, str]:
    model = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.machine())  # fmt: skip
    packages = ("numba", "numpy", "polars", "pyarrow", "datasketch", "rensa")
    return {"cpu": f"{os.cpu_count()} x {model}", "python": platform.python_version()} | {
        name: version(name) for name in packages
    }


def write_report(result: dict[str, Any]) -> None:
    """The result as JSON, and as the tables of a Markdown page."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "minhash.json").write_text(json.dumps(result, indent=1) + "\n")
    lines = [
        "# MinHash near-duplicates", "",
        f"{result['date']}; {', '.join(f'{name} {value}' for name, value in result['machine'].items())}", "",
        f"`{result['command']}`", "",
        "CPU seconds are medians of interleaved rounds, one thread, per 100,000 documents of about 300 words; methods",
        "run on fewer documents are scaled. `precision (family)` counts a removed document as right when any member",
        "of its family is at least .8 similar; `precision (star)` looks at the family's base only,",
        "and counts variants that are near-duplicates of each other alone as errors. The Han corpus maps words to",
        "single characters and full stops to tokens of their own, so its planted similarities are approximate.", "",
        "| method | docs | CPU s/100k | recall >=.8 | recall .8-.85 | prec. star | prec. family | wrong family | MB |",
        "|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for r in result["methods"]:
        cells = [r["method"], r["docs"], r["cpu_s_per_100k"], r["recall"], r["recall_near"], r["precision_star"],
                 r["precision_family"], r["wrong_family"], result["peak_mb"].get(r["method"])]  # fmt: skip
        lines.append("| " + " | ".join("" if cell is None else str(cell) for cell in cells) + " |")
    lines += ["", "| ratio | value | target | reached |", "|---|---|---|---|"]
    for r in result["ratios"]:
        lines.append(f"| {r['slow']} / {r['fast']} | {r['ratio']} | {r['target'] or ''} | {r['reached']} |")
    lines += ["", "Verified, local engine with one worker over 5,000-row Parquet shards:", ""]
    lines += [
        "| docs | CPU s | CPU s / 100k | kept | Parquet MB | idle MB | peak MB |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in result["linearity"]:
        lines.append("| " + " | ".join(str(value) for value in r.values()) + " |")
    (RESULTS / "minhash.md").write_text("\n".join(lines) + "\n")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generator", type=Path, help="corpus generator, called with N and OUTDIR")
    parser.add_argument("--scorer", type=Path, help="module with score(labels, truth)")
    parser.add_argument("--work", type=Path, help="folder for corpora; temporary when not given")
    parser.add_argument("--docs", type=int, default=100_000)
    parser.add_argument("--slow-docs", type=int, default=5_000, help="documents of the slow peers")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100_000, 500_000], help="sizes of the linearity run")
    parser.add_argument("--only-linearity", action="store_true", help="keep the committed figures of the methods")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--peak-of", help=argparse.SUPPRESS)
    parser.add_argument("--stream", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    if not ONE_THREAD.items() <= os.environ.items():  # read by the libraries when they are imported
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ONE_THREAD})
    args = arguments()
    if args.peak_of:
        _, method, _ = methods()[args.peak_of]
        method(pa.chunked_array([load(args.folder, args.docs, "latin")]))
        print(json.dumps({"peak_mb": peak_mb()}))
        return
    if args.stream:
        print(json.dumps(stream(args.folder)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        work = args.work or Path(temporary)
        result = json.loads((RESULTS / "minhash.json").read_text()) if args.only_linearity else compare(args, work)
        write_report({**result, "linearity": linearity(args, work)})


def compare(args: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Everything but the linearity run."""
    folder = generate(args.generator, args.docs, work)
    records = time_methods(folder, args)
    shown = f"python benchmarks/minhash.py --docs {args.docs} --slow-docs {args.slow_docs} --rounds {args.rounds}"
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "command": f"{shown} --sizes {' '.join(map(str, args.sizes))} --generator gen_corpus.py --scorer score.py",
        "methods": records,
        "ratios": ratios(records),
        "peak_mb": peak_memory(folder, args),
    }


if __name__ == "__main__":
    main()
