"""The commands that measure for the documents: what they read, when they are satisfied, what they write."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks.against_vllm_bench import CLIENTS, MEASURES, key_difference, miscounted, table, told
from benchmarks.bench_page import PAGE, PARTS, shown, written
from specctl.bench.formats import as_vllm
from tests.bench.test_report import usual

DRAFTED = {"spec_decode_num_drafts": 10, "spec_decode_draft_tokens": 40, "spec_decode_accepted_tokens": 25}
SERVER = {"drafts": 10, "draft_tokens": 40, "accepted_tokens": 25}


def row(value: float, **more: Any) -> dict[str, Any]:
    return dict.fromkeys(MEASURES, value) | DRAFTED | {"server": SERVER} | more


def test_medians_are_compared_and_one_odd_run_does_not_count() -> None:
    found = {CLIENTS[0]: [row(10.0), row(10.4), row(30.0)], CLIENTS[1]: [row(10.0), row(9.9), row(10.1)]}
    lines, agree = table(found)
    assert agree
    assert lines[0].split()[:4] == ["median", "of", "3", "runs"]
    assert lines[1].split() == ["mean_ttft_ms", "10.40", "10.00", "1.040"]


@pytest.mark.parametrize(("value", "agree"), [(10.9, True), (11.2, False), (8.9, False)])
def test_ten_percent_is_the_limit(value: float, agree: bool) -> None:
    assert table({CLIENTS[0]: [row(value)], CLIENTS[1]: [row(10.0)]})[1] is agree


def test_counters_must_be_the_servers() -> None:
    assert list(miscounted([row(1.0)])) == []
    [(place, why)] = miscounted([row(1.0), row(1.0, spec_decode_num_drafts=9)])
    assert place == 1
    assert "'drafts': 9" in why


def test_result_files_must_have_the_same_keys() -> None:
    assert key_difference(row(1.0), row(2.0)) == ""
    assert key_difference(row(1.0, ours=1), row(2.0, theirs=1)) == (
        "only in specctl bench: ours; only in vllm bench serve: theirs"
    )


def test_the_whole_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert told({name: [row(1.0)] for name in CLIENTS}) == 0
    assert "all held" in capsys.readouterr().out
    assert told({CLIENTS[0]: [row(1.0)], CLIENTS[1]: [row(2.0)]}) == 1
    assert "within 10%: NO" in capsys.readouterr().out


def test_our_own_result_is_read() -> None:
    """Every line that `--format vllm` prints of a run that drafts has what is compared."""
    drafted = json.loads(as_vllm(usual()).splitlines()[1])
    assert {*MEASURES, *DRAFTED} <= drafted.keys()


def test_the_page_takes_what_was_measured() -> None:
    text = PAGE.read_text("utf-8")
    new = written(text, {"a-a": shown(usual()), "vllm-client": "all held"})
    assert "Keep draft_model (k=4)" in new.split("<!-- measured: a-a -->")[1].split("<!-- end -->")[0]
    assert "<!-- measured: vllm-client -->\n```\nall held\n```\n<!-- end -->" in new
    assert new.split("<!-- measured: slow-down -->")[1].split("<!-- end -->")[0] in text
    for part in PARTS:
        assert written(text, {part: "x"}) != text
    with pytest.raises(KeyError, match="no mark for other"):
        written(text, {"other": "x"})
