"""Selectors are found by module or entry point; misspelt names and parameters meet their nearest match."""

import sys
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from datamill.errors import DatamillError, ExitCode
from datamill.training import registry
from datamill.training.contracts import SignalRequest


def test_an_unknown_selector_meets_its_nearest_match() -> None:
    with pytest.raises(DatamillError) as caught:
        registry.build_selector("lesss")
    (issue,) = caught.value.issues
    assert (issue.code, issue.nearest, issue.field) == ("DM-SIG-010", "less", "component_name")
    assert "random" in issue.expected
    assert caught.value.exit_code is ExitCode.INVALID


def test_an_unknown_parameter_meets_its_nearest_match() -> None:
    with pytest.raises(DatamillError) as caught:
        registry.build_selector("less", {"proj_dims": 4096})
    (issue,) = caught.value.issues
    assert (issue.code, issue.nearest, issue.field) == ("DM-SIG-011", "proj_dim", "component_params.proj_dims")
    assert "`less` has no parameter `proj_dims`" in issue.message


def test_all_bad_parameters_come_in_one_report() -> None:
    with pytest.raises(DatamillError) as caught:
        registry.build_selector("less", {"proj_dim": 0, "gradient_type": "adamw", "sed": 1})
    assert [issue.field.rpartition(".")[2] for issue in caught.value.issues] == ["gradient_type", "proj_dim", "sed"]


def test_a_method_without_parameters_says_so() -> None:
    with pytest.raises(DatamillError, match="none at all"):
        registry.build_selector("random", {"seed": 1})


def test_keys_of_dataflex_that_mean_nothing_here_are_left_out_with_a_note() -> None:
    given = {"cache_dir": "/tmp/x", "save_interval": 16, "proj_dim": 4096}
    kept, notes = registry.split_obsolete("less", given)
    assert kept == {"proj_dim": 4096}
    assert len(notes) == 2
    assert notes[0].startswith("`cache_dir` of `less` is not needed: ")
    assert registry.build_selector("less", given).params.proj_dim == 4096
    with pytest.raises(DatamillError, match="save_interval"):
        registry.build_selector("random", {"save_interval": 16})


def test_other_packages_publish_selectors_through_entry_points(monkeypatch: Any, tmp_path: Any) -> None:
    (tmp_path / "their_selectors.py").write_text(
        "from datamill.training.contracts import Params, selector\n"
        "@selector('theirs', 'a selector of another package', params=Params)\n"
        "class Theirs:\n"
        "    def __init__(self, params): self.params = params\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    point = EntryPoint("theirs", "their_selectors", registry.ENTRY_POINT_GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point] if group == registry.ENTRY_POINT_GROUP else [])
    registry.selectors.cache_clear()
    try:
        assert "theirs" in registry.selectors()
        assert type(registry.build_selector("theirs")).__name__ == "Theirs"
    finally:
        registry.selectors.cache_clear()
        sys.modules.pop("their_selectors", None)
        from datamill.training import contracts

        contracts._SELECTORS.pop("theirs", None)


@pytest.mark.train
def test_providers_are_found_and_checked() -> None:
    pytest.importorskip("torch")
    assert registry.build_provider(SignalRequest("loss")).key == "loss"
    with pytest.raises(DatamillError) as caught:
        registry.build_provider(SignalRequest("grad_similarities"))
    assert caught.value.issues[0].nearest == "grad_similarity"
    with pytest.raises(DatamillError, match="DM-SIG-011"):
        registry.build_provider(SignalRequest("grad_similarity", {"dim": 3}))


def test_listing_selectors_does_not_import_torch() -> None:
    import subprocess

    code = "import sys; from datamill.training.registry import build_selector; build_selector('less'); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
