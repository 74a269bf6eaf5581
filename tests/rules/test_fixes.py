"""A fix that is offered, applied to the input, gives a setting that the engine takes."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from specctl.rules.checker import check

BOUNDS = {"prompt_lookup_min": 2, "prompt_lookup_max": 4}
NGRAM = {"method": "ngram", "num_speculative_tokens": 3} | BOUNDS
EAGLE = {"decoding_type": "Eagle3", "max_draft_len": 4, "speculative_model": "org/head"}
LOOKUP = {"decoding_type": "NGram", "max_draft_len": 4, "max_matching_ngram_size": 2, "is_public_pool": False}


def trt(**keys: Any) -> dict[str, Any]:
    return {"speculative_config": {key: value for key, value in keys.items() if value is not ...}}


WRONG: list[tuple[str, str | None, Any]] = [
    ("vllm", None, NGRAM | {"num_speculative_tokens": "3"}),
    ("vllm", None, NGRAM | {"num_speculative_tokens": 3.0}),
    ("vllm", None, NGRAM | {"method": "NGRAM"}),
    ("vllm", None, NGRAM | {"method": "prompt_lookup"}),
    ("vllm", None, {"method": "ngram", "num_speculative_tokrns": 3} | BOUNDS),
    ("vllm", None, {"method": "ngram", "num_spec_tokens": 3} | BOUNDS),
    (
        "vllm",
        None,
        {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 2, "ngram_prompt_lookup_max": 4},
    ),
    ("vllm", None, {"method": "draft_model", "draft_model": "org/small", "num_speculative_tokens": 5}),
    ("vllm", None, {"method": "eagle-3", "model": "org/head", "num_speculative_tokens": 5}),
    ("vllm", None, {"method": "deepseek_MTP", "num_speculative_tokens": 1}),
    ("vllm", None, NGRAM | {"disable_mqa_scorer": True}),
    ("vllm", None, NGRAM | {"suffix_decoding_max_tree_depth": 12}),
    ("vllm", None, [NGRAM]),
    ("vllm", None, NGRAM | {"prompt_lookup_min": 0}),
    ("vllm", None, {"model": "org/draft", "num_speculative_tokens": 3, "rejection_sample_method": "Standard"}),
    ("vllm", None, {"model": "org/draft", "num_speculative_tokens": 3, "moe_backend": "Triton"}),
    ("trtllm", "1.4.0rc0", trt(**(EAGLE | {"decoding_type": "EAGLE3"}))),
    ("trtllm", "1.4.0rc0", trt(**(EAGLE | {"decoding_type": "DraftTarget"}))),
    ("trtllm", "1.4.0rc0", trt(**(EAGLE | {"allow_advanced_sampling": True}))),
    ("trtllm", "1.2.1", trt(**(LOOKUP | {"decoding_type": "Ngram"}))),
    ("trtllm", "1.2.1", trt(**(LOOKUP | {"max_draft_len": "4"}))),
    ("trtllm", "1.2.1", trt(decoding_type="MTP", max_draft_len=3)),
    ("trtllm", "1.2.1", {"speculative_decoding_config": LOOKUP}),
    ("trtllm", "1.4.0rc0", trt(**(EAGLE | {"use_dynamic_tree": True, "dynamic_tree_max_topk": 4}))),
    ("sglang", None, ["--speculative-algorithm", "EAGLE-3", "--speculative-draft-model-path", "org/head"]),
    ("sglang", None, ["--speculative_algorithm", "EAGLE3", "--speculative-draft-model-path", "org/head"]),
    ("specctl", None, {"specctl": 1, "method": "n-gram", "num_speculative_tokens": 4}),
    ("specctl", None, {"specctl": 1, "method": "ngram", "num_speculative_token": 4}),
]


def applied(value: Any, route: list[Any], replacement: Any) -> Any:
    """`replacement` put at `route`."""
    if not route:
        return replacement
    value = copy.deepcopy(value)
    at = value
    for part in route[:-1]:
        at = at[part]
    at[route[-1]] = replacement
    return value


def ask(engine: str, release: str | None, value: Any) -> Any:
    if engine == "sglang":
        return check(value, engine=engine, form="argv")
    form = "json" if engine == "vllm" else "yaml"
    return check(json.dumps(value), engine=engine, release=release, form=form)


@pytest.mark.parametrize(("engine", "release", "value"), WRONG)
def test_the_fix_is_right(engine: str, release: str | None, value: Any) -> None:
    for _ in range(3):
        report = ask(engine, release, value)
        fixes = [each.fix for each in report.diagnostics if each.fix is not None]
        if not fixes:
            break
        value = applied(value, fixes[0].as_dict()["route"], fixes[0].as_dict()["replacement"])
    report = ask(engine, release, value)
    assert report.verdict == "accepts", [(each.code, each.message) for each in report.diagnostics]
    assert not [each for each in report.diagnostics if each.fix is not None]


@pytest.mark.parametrize(("engine", "release", "value"), WRONG)
def test_the_message_alone_says_what_to_change(engine: str, release: str | None, value: Any) -> None:
    found = ask(engine, release, value).diagnostics[0]
    assert found.help
    assert found.message
    assert found.span is not None


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ("max_draft_len: -1", "max_draft_len is -1"),
        ("max_draft_len: 4, use_dynamic_tree: true, dynamic_tree_max_topK: 4", "dynamic_tree_max_topK has no effect"),
    ],
)
def test_no_fix_is_offered_that_leaves_the_setting_refused(keys: str, named: str) -> None:
    text = f"speculative_config: {{decoding_type: Eagle, speculative_model: d, {keys}}}"
    found = [each for release in ("1.2.1", "1.4.0rc0") for each in check(text, release=release).diagnostics]
    about = [each for each in found if each.message.startswith(named)]
    assert about
    assert not [each.fix for each in about if each.fix is not None]
