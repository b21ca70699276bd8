"""Loading onto `cpu:1` works after `install`, and only then."""

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys, torch
from datamill.training.llamafactory import cpu_ranks
torch.save({"a": torch.arange(3)}, sys.argv[1])
try:
    torch.load(sys.argv[1], map_location=torch.device("cpu:1"))
    print("torch can do it now: the module is not needed any more")
except RuntimeError as error:
    assert "don't know how to restore" in str(error)
before = len(torch.serialization._package_registry)
cpu_ranks.install()
cpu_ranks.install()
assert len(torch.serialization._package_registry) == before + 1
assert torch.load(sys.argv[1], map_location=torch.device("cpu:1"))["a"].tolist() == [0, 1, 2]
assert torch.load(sys.argv[1], map_location="cpu")["a"].tolist() == [0, 1, 2]
try:
    torch.load(sys.argv[1], map_location="nowhere:1")
    raise SystemExit("an unknown place was taken")
except RuntimeError:
    print("ok")
"""


def test_install(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "x.pt")], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout.split()) == (0, ["ok"]), done.stderr
