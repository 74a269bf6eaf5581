"""The setting to paste: what each engine takes is taken by that engine's own check, and what it loses is said."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

import specctl
from specctl.bench.advice import preset, recommended, settings
from specctl.bench.candidates import from_methods
from specctl.bench.formats import as_markdown
from specctl.bench.report import plain
from tests.bench.test_report import usual

PLANS: list[tuple[dict[int, int | None], int]] = [
    ({1: 4}, 1),
    ({1: 4, 2: 4}, 8),
    ({1: 5, 2: 3, 4: 1}, 16),
    ({1: 7, 8: 1}, 8),
]
METHODS = ("ngram", "suffix", "draft_model", "eagle", "eagle3", "mtp", "medusa", "pard", "dflash")


def as_typed(engine: str, text: str) -> Any:
    """The setting where a user puts it."""
    if engine == "vllm":
        return ["vllm", "serve", "demo", "--speculative-config", text]
    return ["sglang", "serve", "--model-path", "demo", *shlex.split(text)] if engine == "sglang" else text


@pytest.mark.parametrize("method", METHODS)
def test_every_engine_takes_what_it_is_given(method: str) -> None:
    [spec] = from_methods([method], [4], {}, "demo")
    for plan, highest in PLANS:
        kept = recommended(spec, plan, highest, "demo")
        for engine, setting in settings(kept).items():
            if setting["text"] is not None:
                report = specctl.check(as_typed(engine, setting["text"]), engine=engine, release=setting["release"])
                assert report.valid, (engine, setting["text"], report.diagnostics)
            else:
                assert "has no counterpart" in setting["notes"][0]
        assert specctl.load(preset(kept, usual())).as_dict() == kept.as_dict()


def test_a_setting_that_cannot_stop_says_so_wherever_it_is_printed() -> None:
    [spec] = from_methods(["medusa"], [4], {}, "demo")
    found = settings(recommended(spec, {1: 4, 2: 4}, 8, "demo"), 2)
    assert found["vllm"]["notes"] == [
        "warning: this method's drafts cannot stop above concurrency 2, where they do not pay; "
        "let no more requests run at once"
    ]
    assert settings(recommended(spec, {1: 4, 8: 4}, 8, "demo"), None)["vllm"]["notes"] == []
    report = usual()
    report["verdict"]["settings"] = found
    assert "vllm 0.31.0: warning: this method's drafts cannot stop" in plain(report)
    assert "sglang 0.5.22: error: SGLang 0.5.22 has no counterpart of method medusa" in plain(report)
    assert "- warning: this method's drafts cannot stop" in as_markdown(report)


def test_a_schedule_that_an_engine_lacks_is_said_beside_its_setting() -> None:
    [spec] = from_methods(["draft_model"], [4], {}, "demo")
    report = usual()
    report["verdict"]["settings"] = settings(recommended(spec, {1: 5, 2: 3}, 8, "demo"), 2)
    lines = plain(report).split("To run it:\n")[1].splitlines()
    assert "num_speculative_tokens_per_batch_size" in lines[0]
    assert lines[1].startswith("sglang 0.5.22: --speculative-algorithm")
    assert lines[2].startswith(
        "sglang 0.5.22: warning: schedule [[1, 1, 5], [2, 2, 3], [3, None, 0]] has no counterpart"
    )
