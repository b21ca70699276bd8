"""The documentation is true: generated pages are current, examples run, commands and links exist."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cli import run_cli

from datamill.workflows.compile import CompileOptions, compile_file

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
GENERATED = ("operators.md", "cli.md", "errors.md")
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
EXIT = re.compile(r"#\s*exit (\d+)")


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of every fenced block."""
    return FENCE.findall(page.read_text(encoding="utf-8"))


def test_generated_pages_are_current(tmp_path: Path) -> None:
    """When this fails: `make docs`, look at the diff, commit it."""
    code = f"import make_docs, pathlib; make_docs.DOCS = pathlib.Path({str(tmp_path)!r}); make_docs.main()"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT / "scripts", check=True, capture_output=True, timeout=120)
    for name in GENERATED:
        assert (tmp_path / name).read_text(encoding="utf-8") == (ROOT / "docs" / name).read_text(encoding="utf-8"), name


def test_every_operator_and_code_is_explained() -> None:
    from datamill.operators.registry import catalogue

    page = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    assert all(f"\n## {name}\n" in page for name in catalogue())
    errors = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    assert "see the finding" not in errors, "describe the code in scripts/make_docs.py"
    assert len(re.findall(r"^\| `DM-", errors, re.MULTILINE)) > 100


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    headings = {
        re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()).replace(" ", "-")
        for line in text.splitlines()
        if line.startswith("#")
    }
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("http"):
            continue
        file, _, anchor = target.partition("#")
        assert not file or (page.parent / file).exists(), target
        assert file or anchor in headings, target


def rows(folder: Path) -> None:
    """The small data that examples speak of."""
    data = folder / "data"
    data.mkdir(parents=True)
    english = [f"The committee met on day {i} and decided to repair the old bridge near the market." for i in range(12)]
    web = [
        {"text": text, "url": f"u{i}"}
        for i, text in enumerate(
            [*english, "Kurz.", "Die neue Brücke wird im Sommer eröffnet und alle freuen sich darauf."]
        )
    ]
    qa = [
        {"question": f"What is {i} plus {i}?", "answer": f"It is {2 * i}, because {i} and {i} make {2 * i}."}
        for i in range(20)
    ]
    val = [{"question": f"What is {i} times 3?", "answer": f"It is {3 * i}."} for i in range(30, 36)]
    for name, records in (("web", web), ("qa", qa), ("val", val)):
        (data / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    (data / "more.csv").write_text("text,source\nanother line of text from a table,table\n")


def lines(text: str) -> Iterator[tuple[list[str], int]]:
    """Command lines of a console block and the exit code each should end with."""
    for line in text.splitlines():
        if line.strip().startswith("$ datamill"):
            expected = EXIT.search(line)
            yield shlex.split(line.split("   #")[0].strip()[2:])[1:], int(expected.group(1)) if expected else 0


@pytest.mark.parametrize("name", ["docs/workflows.md", "docs/training.md", "CONTRIBUTING.md"])
def test_examples_run(name: str, tmp_path: Path) -> None:
    """Blocks in order: YAML is saved under the name in its first line, console lines are run, DIGEST is the plan's."""
    rows(tmp_path)
    ran = 0
    for language, text in blocks(ROOT / name):
        assert language in {"yaml", "console", "text"}, f"{name}: a block without a known language"
        if language == "yaml":
            (tmp_path / text.splitlines()[0].removeprefix("# ").strip()).write_text(text)
        for words, code in lines(text) if language == "console" else ():
            if "DIGEST" in words:
                words[words.index("DIGEST")] = compile_file(tmp_path / words[1], CompileOptions(tmp_path)).short
            done = run_cli(tmp_path, [*words, *(["-j", "1"] if words[0] == "run" else [])])
            assert done.code == code, (words, done.err, done.out)
            assert "Traceback" not in done.err
            ran += 1
    assert ran


def shown_commands(page: Path) -> list[list[str]]:
    found = []
    for _, text in blocks(page):
        joined = text.replace("\\\n", " ")
        for line in joined.splitlines():
            bare = line.strip().removeprefix("$ ")
            if bare.startswith("datamill "):
                found.append(shlex.split(re.split(r"\s{2,}(?=[a-z#])", bare)[0], comments=True)[1:])
    return found


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "docs" / "training.md"], ids=lambda page: page.name)
def test_commands_shown_exist_with_their_flags(page: Path) -> None:
    surface = dict(
        line.split(":", 1) for line in (Path(__file__).parent / "cli" / "surface.txt").read_text().splitlines()
    )  # fmt: skip
    everywhere = surface["datamill"].split()
    found = shown_commands(page)
    assert found
    for words in found:
        name = next(n for n in (f"datamill {' '.join(words[:2])}", f"datamill {words[0]}") if n in surface)
        for word in (w.split("=")[0] for w in words if re.match(r"--?[a-z]", w)):
            assert word in surface[name].split() or word in everywhere, (name, word)


def test_make_targets_named_in_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        for target in re.findall(r"`?make ([a-z\-]+)", page.read_text(encoding="utf-8")):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    assert "make test" in (ROOT / ".ci" / "run").read_text()


def test_the_python_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows(tmp_path)
    monkeypatch.chdir(tmp_path)
    code = [text for language, text in blocks(ROOT / "README.md") if language == "python"]
    assert code
    for text in code:
        printed: list[object] = []
        exec(compile(text, "README.md", "exec"), {"print": printed.append})
        assert printed
        assert 0 < int(str(printed[0])) <= 13


def test_dependency_versions_in_the_docs_are_the_pins() -> None:
    pins = dict(
        line.split("==")
        for line in (ROOT / "requirements" / "light.txt").read_text().splitlines()
        if "==" in line and not line.startswith("#")
    )
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    core = re.findall(r"^\| ([a-z0-9\-]+) \| ([0-9.]+) \|", page, re.MULTILINE)
    assert len(core) > 20
    assert {name: version for name, version in core if pins.get(name) != version} == {}
    import tomllib

    from packaging.requirements import Requirement

    declared = {
        Requirement(line).name.replace(".", "-").replace("_", "-")
        for line in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    }
    assert declared == {name for name, _ in core}
