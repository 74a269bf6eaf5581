"""A draft named by its folder alone is run as what it holds."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree

import pytest

from specctl.cli.recognised import as_held, folder_report, method_held
from specctl.cli.settings import Settings
from specctl.errors import SpecctlError
from specctl.resources import bundled_dir
from specctl.source.flags import extract
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import DraftModel, Eagle, Medusa, MlpSpeculator

HEADS = {
    "demo-pard": "pard",
    "demo-eagle": "eagle",
    "demo-eagle3": "eagle3",
    "demo-mtp": "mtp",
    "demo-dflash": "dflash",
    "demo-medusa": "medusa",
    "demo-mlp-speculator": "mlp_speculator",
}


@pytest.mark.parametrize(("name", "method"), HEADS.items())
def test_bundled_heads_are_told_by_content(name: str, method: str, tmp_path: Path) -> None:
    assert method_held(name) == method
    # Under any other name too.
    other = copytree(bundled_dir() / name, tmp_path / "x")
    assert method_held(str(other)) == method


def test_ordinary_models_and_absent_ones_hold_no_method() -> None:
    assert method_held("demo") is None
    assert method_held("demo-draft") is None
    assert method_held("./nowhere") is None
    assert method_held(None) is None


def test_a_setting_without_a_method_runs_as_its_folder_says(capsys: pytest.CaptureFixture[str]) -> None:
    unsaid = SpecDecodeConfig(DraftModel(), 3, model="demo-medusa")
    assert as_held(unsaid, guessed=False) == SpecDecodeConfig(Medusa(), 3, model="demo-medusa")
    assert "demo-medusa is a draft for method medusa" in capsys.readouterr().err
    plain = SpecDecodeConfig(DraftModel(), 3, model="demo-draft")
    assert as_held(plain, guessed=False) is plain


def test_a_draft_is_a_setting() -> None:
    report = folder_report("demo-eagle", {"target": "demo"})
    assert report is not None
    assert report.config == SpecDecodeConfig(Eagle(), 4, model="demo-eagle")
    assert folder_report("demo-draft", {}) is None


@pytest.mark.parametrize(
    ("source", "name", "method"),
    [("demo-medusa", "eagle3", "medusa"), ("demo-mlp-speculator", "plain", "mlp_speculator"),
     ("demo-draft", "eagle3", "draft_model"), ("demo-eagle", "dflash", "eagle"), ("demo-pard", "eagle-x", "pard")],
)  # fmt: skip
def test_the_name_of_a_folder_misleads_nobody(source: str, name: str, method: str, tmp_path: Path) -> None:
    """vLLM goes by the name where a setting has no method, and would fail here."""
    folder = copytree(bundled_dir() / source, tmp_path / name)
    flags = extract(["--speculative-config", json.dumps({"model": str(folder), "num_speculative_tokens": 3})])
    ((spec, _),) = Settings(flags).to_run(target="demo")
    assert (spec.method.name, spec.num_speculative_tokens) == (method, 3)


def test_an_mlp_speculator_runs_here_though_vllm_has_lost_it() -> None:
    setting = {"method": "mlp_speculator", "model": "demo-mlp-speculator", "num_speculative_tokens": 3}
    flags = extract(["--speculative-config", json.dumps(setting)])
    ((spec, _),) = Settings(flags).to_run(target="demo")
    assert spec.method == MlpSpeculator()
    with pytest.raises(SpecctlError):
        Settings(flags).require(target="demo")
