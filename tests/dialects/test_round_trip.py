"""Law: read -> write -> read of a dialect loses nothing; and no input makes a traceback."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specctl.dialects import own, sglang, trtllm, vllm
from specctl.dialects.convert import read_back
from specctl.dialects.dialect import DIALECTS
from specctl.dialects.field import Field
from specctl.dialects.reading import Surroundings
from specctl.dialects.trtllm_line import is_new
from specctl.rules.checker import check
from specctl.source import Document
from specctl.spec import METHODS

FEW = settings(max_examples=60, deadline=None)
WORDS = st.sampled_from(["org/draft", "demo-draft", "x"])


def values_of(row: Field) -> st.SearchStrategy[Any]:
    if row.choices:
        return st.sampled_from(row.choices)
    low = int(row.minimum) if row.minimum is not None else 1
    high = int(row.maximum) if row.maximum is not None else 40
    kinds: dict[str, st.SearchStrategy[Any]] = {
        "int": st.integers(low, max(low, high)),
        "float": st.floats(row.minimum or 0, row.maximum if row.maximum is not None else 4, allow_nan=False),
        "bool": st.booleans(),
        "str": WORDS,
        "ints": st.lists(st.integers(0, 30), min_size=1, max_size=3),
        "floats": st.lists(st.floats(0, 1, allow_nan=False), min_size=1, max_size=3),
        "triples": st.just([[1, 4, 3], [5, 64, 0]]),
        "int_map": st.just({1: 4, 8: 2}),
        "object": st.just({"load_format": "dummy"}),
        "any": st.just("x"),
    }
    return kinds[row.kind]


def settings_of(rows: list[Field], fixed: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Any subset of the rows with fitting values, and the fixed keys."""
    free = [row for row in rows if row.key not in fixed]
    chosen = st.lists(st.sampled_from(free), max_size=5, unique_by=lambda row: row.key) if free else st.just([])
    return chosen.flatmap(lambda picked: st.fixed_dictionaries({row.key: values_of(row) for row in picked})).map(
        lambda more: fixed | more
    )


def survives(engine: str, release: str, document: Document, form: str) -> None:
    reading = DIALECTS[engine].read(document, Surroundings(), release, form)
    assert reading.spec is not None, reading.findings
    again = read_back(reading.spec, engine, release, Surroundings())
    assert again.spec == reading.spec, (document.value, DIALECTS[engine].write(reading.spec, release))


@FEW
@given(st.data())
@pytest.mark.parametrize("method", [name for name in vllm.METHOD_NAMES if not name.endswith("_mtp")])
def test_vllm(method: str, data: st.DataObject) -> None:
    fixed = {"method": method, "num_speculative_tokens": 3}
    if method not in vllm.MODEL_FREE - {"custom_class"} and method not in ("mtp", "dspark"):
        fixed["model"] = "org/draft"
    rows = [row for row in vllm.ROWS if row.key not in ("tensor_parallel_size", "draft_model_config", "model")]
    value = data.draw(settings_of(rows, fixed))
    survives("vllm", "0.31.0", Document("x", json.dumps(value), "json", value), "json")


@FEW
@given(st.data())
@pytest.mark.parametrize("release", ["1.2.1", "1.4.0rc0"])
def test_trtllm(release: str, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(trtllm.types(release))))
    fixed: dict[str, Any] = {"decoding_type": name, "max_draft_len": 4}
    if name == "MTP" and not is_new(release):
        fixed = {"decoding_type": name, "num_nextn_predict_layers": 4}
    skip = {"max_draft_len", "num_nextn_predict_layers", "max_total_draft_tokens"}
    rows = [row for row in trtllm.ROWS if row.in_release(release) and row.for_method(name) and row.key not in skip]
    value = {"speculative_config": data.draw(settings_of(rows, fixed))}
    survives("trtllm", release, Document("x", "", "yaml", value), "yaml")


@FEW
@given(st.data())
def test_sglang(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([name for name in sglang.ALGORITHMS if name != "NONE"]))
    fixed: dict[str, Any] = {"speculative_algorithm": name, "speculative_num_draft_tokens": 5}
    if name in sglang.EAGLE_FAMILY | {"FROZEN_KV_MTP", "NEXTN"}:
        fixed |= {"speculative_num_steps": 4, "speculative_eagle_topk": data.draw(st.sampled_from([1, 2]))}
    if name in ("EAGLE3", "STANDALONE", "DFLASH", "DSPARK", "FROZEN_KV_MTP"):
        fixed["speculative_draft_model_path"] = "org/draft"
    skip = {
        "speculative_adaptive",
        "speculative_adaptive_config",
        "speculative_dflash_block_size",
        "speculative_dspark_block_size",
        "speculative_num_steps",
        "speculative_eagle_topk",
        "speculative_use_block_verification",
    }
    value = data.draw(settings_of([row for row in sglang.ROWS if row.key not in skip], fixed))
    survives("sglang", "0.5.22", Document("x", "", "json", value), "python")


@FEW
@given(st.data())
def test_own(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(METHODS)))
    fixed = {"specctl": 1, "method": name, "num_speculative_tokens": 4}
    rows = [
        *own.method_rows(name),
        *(row for row in own.ROWS if row.key in ("target", "model", "draft_sample_method", "max_concurrency")),
    ]
    value = data.draw(settings_of(rows, fixed))
    value["draft"] = data.draw(settings_of(list(own.DRAFT), {}))
    value["schedule"] = [[1, 8, 4], [9, None, 0]]
    survives("specctl", "1", Document("x", "", "yaml", value), "yaml")


JSONISH = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 200) | st.floats() | st.text(max_size=6) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(sorted({row.key for rows in (vllm.ROWS, trtllm.ROWS, own.ROWS) for row in rows})) | st.text(
    max_size=6
)
METHODISH = st.sampled_from([*vllm.METHOD_NAMES, *trtllm.TYPES, *METHODS]) | JSONISH


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(KEYS, JSONISH, max_size=6), METHODISH, st.sampled_from(["vllm", "trtllm", "specctl", "sglang"]))
def test_any_mapping_is_judged_without_a_traceback(value: dict[str, Any], method: Any, engine: str) -> None:
    value = (
        value | {"method": method, "decoding_type": method, "specctl": 1}
        if engine == "specctl"
        else value | {"method" if engine == "vllm" else "decoding_type": method}
    )
    report = check(value, engine=engine, release="1.4.0rc0" if engine == "trtllm" else None)
    assert report.verdict in ("accepts", "refuses", "fails-at-start")


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60), st.sampled_from(["vllm", "trtllm", "sglang", "specctl", "auto"]))
def test_any_bytes_are_judged_without_a_traceback(data: bytes, engine: str) -> None:
    report = check(data, engine=engine)  # type: ignore[arg-type]
    lines = report.result.text.split("\n")
    for found in report.diagnostics:
        assert found.span is None or 1 <= found.span.line <= len(lines)


TOKENS = st.sampled_from(
    [
        "--speculative-config",
        "-sc",
        "{}",
        "--speculative-algorithm",
        "EAGLE3",
        "3",
        "--speculative-num-steps",
        "--config",
        '{"method":"ngram"}',
        "--speculative-config.method",
        "ngram",
        "--tp",
        "x.yaml",
        "--spec",
        "--speculative-adaptive",
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(TOKENS | st.text(max_size=8), max_size=8), st.sampled_from(["vllm", "sglang", "trtllm"]))
def test_any_command_line_is_judged_without_a_traceback(tokens: list[str], engine: str) -> None:
    report = check(tokens, engine=engine, form="argv")
    assert report.verdict in ("accepts", "refuses", "fails-at-start")
