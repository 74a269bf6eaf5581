"""The main job on the bundled models: one setting in three spellings, decoded without a change of the output."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
import torch

import specctl
from specctl.resources import bundled_dir
from specctl.runtime import EngineOptions, Target, load_target, make_engine, near_tie_margin, top_margin
from specctl.spec.config import SpecDecodeConfig
from tests.runtime.kit import ask, run

DRAFT_MODEL: dict[str, tuple[Any, dict[str, Any]]] = {
    "vllm": ('{"method": "draft_model", "model": "demo-draft", "num_speculative_tokens": 4}', {"form": "json"}),
    "sglang": (
        shlex.split(
            "--speculative-algorithm STANDALONE --speculative-draft-model-path demo-draft --speculative-num-steps 4 "
            "--speculative-eagle-topk 1 --speculative-num-draft-tokens 5"
        ),
        {"form": "argv"},
    ),
    "trtllm 1.4.0rc0": (
        "speculative_config:\n  decoding_type: Draft_Target\n  max_draft_len: 4\n  speculative_model: demo-draft\n",
        {"form": "yaml", "release": "1.4.0rc0"},
    ),
    "trtllm 1.2.1": (
        "speculative_config:\n  decoding_type: DraftTarget\n  max_draft_len: 4\n  speculative_model: demo-draft\n",
        {"form": "yaml", "release": "1.2.1"},
    ),
}
NGRAM: dict[str, tuple[Any, dict[str, Any]]] = {
    "vllm": (
        '{"method": "ngram", "prompt_lookup_min": 1, "prompt_lookup_max": 4, "num_speculative_tokens": 3}',
        {"form": "json"},
    ),
    **{
        f"trtllm {release}": (
            "speculative_config: {decoding_type: NGram, max_draft_len: 3, max_matching_ngram_size: 4, "
            "is_public_pool: false}\n",
            {"form": "yaml", "release": release},
        )
        for release in ("1.2.1", "1.4.0rc0")
    },
}


def read(source: Any, options: dict[str, Any]) -> SpecDecodeConfig:
    report = specctl.check(source, **options)
    assert report.valid, report.diagnostics
    assert report.config is not None
    return report.config


@pytest.fixture(scope="module")
def demo() -> Target:
    torch.set_num_threads(1)
    return load_target("demo", device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def prompts(demo: Target) -> list[tuple[str, list[int]]]:
    rows = [json.loads(line) for line in (bundled_dir() / "prompts.jsonl").read_text("utf-8").splitlines()]
    return [(row["category"], demo.encode_chat(row["messages"])) for row in rows]


def outputs(demo: Target, spec: SpecDecodeConfig | None, prompts: list[tuple[str, list[int]]]) -> tuple[Any, Any]:
    engine = make_engine(demo, spec, EngineOptions(max_num_seqs=8))
    results = run(engine, [ask(str(i), prompt, max_tokens=128) for i, (_, prompt) in enumerate(prompts)])
    return results, engine.stats


@pytest.mark.parametrize("spellings", [DRAFT_MODEL, NGRAM], ids=["draft_model", "ngram"])
def test_one_setting_in_every_spelling_is_one_spec_with_one_result(
    spellings: dict[str, tuple[Any, dict[str, Any]]], demo: Target, prompts: list[tuple[str, list[int]]]
) -> None:
    specs = {name: read(*spelling) for name, spelling in spellings.items()}
    assert len({json.dumps(spec.as_dict(), sort_keys=True) for spec in specs.values()}) == 1
    first = next(iter(specs.values()))
    assert all(spec == first for spec in specs.values())
    counters = [outputs(demo, spec, prompts[::5])[1] for spec in specs.values()]
    assert counters[0].num_accepted_tokens > 0
    assert all(stats == counters[0] for stats in counters)


def test_sglangs_ngram_reads_as_ngram_and_says_that_it_searches_otherwise(demo: Target) -> None:
    report = specctl.check(["--speculative-algorithm", "NGRAM", "--speculative-num-draft-tokens", "5"], form="argv")
    assert report.config is not None
    assert (report.config.method.name, report.config.num_speculative_tokens) == ("ngram", 4)
    assert any(d.severity == "warning" and "search" in d.message.lower() for d in report.diagnostics)
    assert make_engine(demo, report.config, EngineOptions()).notes


def test_drafts_on_demo_are_lossless_and_accepted(demo: Target, prompts: list[tuple[str, list[int]]]) -> None:
    plain, _ = outputs(demo, None, prompts)
    lengths: dict[str, float] = {}
    for name, (source, options) in {"draft_model": DRAFT_MODEL["vllm"], "ngram": NGRAM["vllm"]}.items():
        drafted, stats = outputs(demo, read(source, options), prompts)
        lengths[name] = stats.mean_acceptance_length
        for i, (_, prompt) in enumerate(prompts):
            ours, theirs = drafted[str(i)]["tokens"], plain[str(i)]["tokens"]
            if ours != theirs:
                place = next(j for j, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b)
                assert top_margin(demo, prompt + theirs[:place]) <= near_tie_margin(demo)
    assert lengths["draft_model"] >= 2.2
    ended = sum(result["finish"] == "stop" for result in plain.values())
    assert ended >= 0.8 * len(prompts), "most answers of the bundled target end by themselves"
