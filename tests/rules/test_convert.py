"""Conversion: what is written is taken by the other engine, there and back changes nothing, losses are named."""

from __future__ import annotations

from pathlib import Path

import pytest

import specctl
from specctl.dialects.convert import native_method
from specctl.errors import SpecctlError, UsageError
from specctl.rules.matrix import COLUMNS, plain_spec, table
from specctl.spec import METHODS, Acceptance, DraftOptions, ScheduleStep, SpecDecodeConfig, Tree
from specctl.spec.methods import DraftModel, Eagle3, Ngram

# vLLM still knows the word, but has no class for it any more.
GONE = {("mlp_speculator", "vllm")}


@pytest.mark.parametrize(("engine", "release"), COLUMNS)
@pytest.mark.parametrize("method", METHODS)
def test_what_is_written_is_taken(method: str, engine: str, release: str) -> None:
    spec = plain_spec(method)
    if native_method(spec, engine, release) is None or (method, engine) in GONE or engine == "specctl":
        return
    converted = specctl.convert(spec, engine, to_release=release)
    form = {"vllm": "json", "sglang": "argv", "trtllm": "yaml"}[engine]
    source = converted.output if engine == "sglang" else converted.text
    report = specctl.check(source, engine=engine, release=release, form=form)
    assert report.verdict == "accepts", [(each.code, each.message) for each in report.diagnostics]
    assert report.config is not None
    assert report.config.method.name == method
    assert report.config.num_speculative_tokens == spec.num_speculative_tokens


@pytest.mark.parametrize("engine", ["sglang", "trtllm", "specctl"])
def test_there_and_back(engine: str) -> None:
    spec = SpecDecodeConfig(Eagle3(), 3, model="org/head")
    release = "1.4.0rc0" if engine == "trtllm" else None
    there = specctl.convert(spec, engine, to_release=release)
    back = specctl.check(there.output if engine == "sglang" else there.text, engine=engine, release=release)
    assert back.config == spec


def test_counts_are_translated() -> None:
    spec = SpecDecodeConfig(DraftModel(), 4, model="demo-draft")
    words = specctl.convert(spec, "sglang").output
    assert words[words.index("--speculative-num-draft-tokens") + 1] == "5"
    assert words[words.index("--speculative-num-steps") + 1] == "4"
    old = specctl.convert(
        "speculative_config: {decoding_type: MTP, num_nextn_predict_layers: 3}", "trtllm", to_release="1.4.0rc0"
    )
    assert old.output == {"speculative_config": {"decoding_type": "MTP", "max_draft_len": 3}}


def codes(spec: SpecDecodeConfig, engine: str, release: str | None = None) -> list[str]:
    return [each.code for each in specctl.convert(spec, engine, to_release=release).report.diagnostics]


def test_losses_are_named() -> None:
    assert codes(SpecDecodeConfig(METHODS["medusa"](), 3, model="m"), "sglang") == ["SPC401"]
    assert codes(SpecDecodeConfig(Ngram(2, 4), 3), "trtllm") == ["SPC404"]
    assert codes(SpecDecodeConfig(Ngram(2, 4), 3), "sglang") == ["SPC404"]
    tensor = SpecDecodeConfig(DraftModel(), 3, model="d", draft=DraftOptions(tensor_parallel_size=2))
    assert "SPC402" in codes(tensor, "sglang")
    assert codes(tensor, "vllm") == []
    tree = SpecDecodeConfig(Eagle3(), 3, model="h", tree=Tree(4, 16))
    assert "SPC404" in codes(tree, "vllm")
    relaxed = SpecDecodeConfig(Eagle3(), 3, model="h", acceptance=Acceptance("relaxed"))
    assert "SPC402" in codes(relaxed, "vllm")
    schedule = SpecDecodeConfig(Eagle3(), 3, model="h", schedule=(ScheduleStep(1, 8, 3), ScheduleStep(9, None, 0)))
    assert "SPC402" in codes(schedule, "sglang")
    native = SpecDecodeConfig(Ngram(1, 4), 3, engine_options={"trtllm": {"load_format": "dummy"}})
    assert codes(native, "vllm") == ["SPC403"]
    assert "SPC108" in codes(SpecDecodeConfig(Ngram(1, 4), 300), "vllm")


def test_wrong_use() -> None:
    with pytest.raises(UsageError):
        specctl.convert(SpecDecodeConfig(Ngram(), 3), "llama.cpp")
    with pytest.raises(SpecctlError, match="nothing to convert"):
        specctl.convert("null", "sglang", engine="vllm", form="json")
    with pytest.raises(SpecctlError, match="cannot be used"):
        specctl.load({"method": "ngram", "num_speculative_tokens": 0})
    assert specctl.load({"method": "ngram", "num_speculative_tokens": 3}).method == Ngram(5, 5)


def test_the_matrix_is_fresh() -> None:
    assert (Path(__file__).parents[2] / "docs" / "methods.md").read_text(encoding="utf-8") == table()


def test_a_schedule_that_the_other_engine_takes_and_does_not_follow() -> None:
    setting = {"method": "eagle3", "model": "org/head", "num_speculative_tokens": 3}
    schedule = {"num_speculative_tokens_per_batch_size": [[1, 8, 3], [9, 4096, 0]]}
    for release, said in (("1.2.1", True), ("1.4.0rc0", False)):
        report = specctl.convert(setting | schedule, "trtllm", to_release=release).report
        assert ("SPC158" in {each.code for each in report.diagnostics}) is said
        assert report.valid
