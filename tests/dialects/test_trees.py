"""Trees in the spellings of the engines, and what is said of those that cannot be."""

from __future__ import annotations

import re
from typing import Any

import pytest

import specctl
from specctl.dialects.choices import read_choices
from specctl.dialects.coerce import BadValue
from specctl.spec import SpecDecodeConfig, Tree
from specctl.spec.methods import Eagle3, Medusa

PATHS = ((0,), (1,), (0, 0), (0, 2))


def own(**keys: Any) -> dict[str, Any]:
    return {"specctl": 1, "method": "eagle3", "model": "head", "num_speculative_tokens": 2, **keys}


@pytest.mark.parametrize(
    "written", [[[0, 2], [0], [1], [0, 0]], "[(0,), (0, 0), (0, 2), (1,)]", "[[0],[1],[0,0],[0,2],[0]]"]
)
def test_choices_are_a_list_or_the_text_of_one(written: Any) -> None:
    assert read_choices(written) == PATHS
    report = specctl.check(own(tree={"choices": written}))
    assert report.valid
    assert report.spec["tree"] == {"choices": [list(path) for path in PATHS]}
    assert SpecDecodeConfig.from_dict(report.spec).tree == Tree(choices=PATHS)


@pytest.mark.parametrize("written", [[], "[", [0], [[]], [["a"]], [[True]], 3, "__import__('os')", "[" * 9999])
def test_what_is_no_list_of_paths(written: Any) -> None:
    with pytest.raises(BadValue, match="a list of paths"):
        read_choices(written)


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"tree": {"choices": [[0], [1, 0]]}}, r"path \[1, 0\] without \[1\]"),
        ({"tree": {"choices": [[0], [0, -1]]}}, "ranks from 0 on"),
        ({"tree": {"choices": [[0]], "topk": 2}}, "topk or num_nodes as well"),
        ({"tree": {"num_nodes": 4}}, "neither topk nor choices"),
        ({"tree": {"choices": "no"}}, "a list of paths was wanted"),
        ({"tree": {"choices": [[0]]}}, "num_speculative_tokens is 2, and the longest path of the tree has 1"),
        ({"tree": {"topk": 2}, "method": "ngram", "model": None}, "drafts no trees with method ngram"),
        ({"tree": {"topk": 2}, "acceptance": {"method": "block"}}, "block verification judges chains"),
    ],
)
def test_trees_that_cannot_be_are_named(keys: dict[str, Any], says: str) -> None:
    report = specctl.check({key: value for key, value in own(**keys).items() if value is not None})
    assert not report.valid
    assert any(re.search(says, each.message) for each in report.diagnostics), report.diagnostics


def trtllm(**keys: Any) -> dict[str, Any]:
    return {"speculative_config": {"speculative_model": "head", **keys}}


def test_the_choices_of_tensorrt_llm_are_a_tree() -> None:
    """An Eagle drafts as deep as its choices are, Medusa's length counts nodes."""
    report = specctl.check(trtllm(decoding_type="Eagle", max_draft_len=4, eagle_choices=[[0], [1], [0, 0], [0, 2]]))
    spec = SpecDecodeConfig.from_dict(report.spec)
    assert (spec.tree, spec.num_speculative_tokens) == (Tree(choices=PATHS), 2)
    assert report.effective["max_draft_len"] == 2
    assert any("eagle_choices are 2 deep" in each.message for each in report.diagnostics)
    report = specctl.check(
        {"backend": "tensorrt"}
        | trtllm(decoding_type="Medusa", max_draft_len=4, medusa_choices="[[0], [1], [0, 0], [0, 2]]")
    )
    assert SpecDecodeConfig.from_dict(report.spec).tree == Tree(choices=PATHS)
    assert report.spec["num_speculative_tokens"] == 2


@pytest.mark.parametrize("method", [Eagle3(), Medusa()])
def test_a_static_tree_goes_to_tensorrt_llm_and_back(method: Any) -> None:
    spec = SpecDecodeConfig(method, 2, model="head", tree=Tree(choices=PATHS))
    written = specctl.convert({"specctl": 1, **spec.as_dict()}, to="trtllm", to_release="1.2.1")
    back = specctl.check(written.text, release="1.2.1")
    assert SpecDecodeConfig.from_dict(back.spec) == spec
    for engine, release in (("vllm", None), ("sglang", None), ("trtllm", "1.4.0rc0")):
        lost = specctl.convert({"specctl": 1, **spec.as_dict()}, to=engine, to_release=release)
        assert any(each.code in ("SPC401", "SPC402", "SPC404") for each in lost.report.diagnostics), engine


def test_relaxed_acceptance_keeps_its_thinking_tokens() -> None:
    keys = {"decoding_type": "MTP", "num_nextn_predict_layers": 2, "use_relaxed_acceptance_for_thinking": True}
    spec = specctl.check(trtllm(**keys, relaxed_topk=4)).spec
    assert (spec["acceptance"]["thinking_begin_token"], spec["acceptance"]["thinking_end_token"]) == (128798, 128799)
    spec = specctl.check(trtllm(**keys, begin_thinking_phase_token=5, end_thinking_phase_token=6)).spec
    assert (spec["acceptance"]["thinking_begin_token"], spec["acceptance"]["thinking_end_token"]) == (5, 6)
