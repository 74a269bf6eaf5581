"""The same figures in every format, and the page."""

from __future__ import annotations

import csv
import io
import json
import re
from html.parser import HTMLParser

import pytest

from specctl.bench.formats import as_text, check_format
from specctl.bench.page import page
from specctl.bench.plots import nice_ticks
from specctl.errors import UsageError
from tests.bench.test_report import usual

VLLM_KEYS = """date endpoint_type backend label model_id tokenizer_id num_prompts request_rate burstiness
max_concurrency duration completed failed total_input_tokens total_output_tokens request_throughput request_goodput
output_throughput total_token_throughput max_output_tokens_per_s max_concurrent_requests rtfx latencies queue_times"""
SPEC_KEYS = """acceptance_rate acceptance_length num_drafts draft_tokens accepted_tokens
per_position_acceptance_rates"""


def test_vllms_keys_and_units() -> None:
    baseline, ngram, *_ = (json.loads(line) for line in as_text(usual(), "vllm").splitlines())
    times = [
        f"{part}_{name}_ms" for name in ("ttft", "tpot", "itl", "e2el") for part in ("mean", "median", "std", "p99")
    ]
    assert list(baseline) == [*VLLM_KEYS.split(), *times]
    assert [key for key in ngram if key not in baseline] == [f"spec_decode_{key}" for key in SPEC_KEYS.split()]
    assert ngram["spec_decode_acceptance_rate"] == 50.0  # percent
    assert ngram["spec_decode_per_position_acceptance_rates"] == [1.0, 1.0, 0.0, 0.0]  # fractions
    assert ngram["spec_decode_acceptance_length"] == 3.0
    assert (ngram["mean_tpot_ms"], ngram["request_rate"], ngram["max_concurrency"]) == (pytest.approx(8.0), "inf", 1)
    assert (ngram["completed"], ngram["total_output_tokens"], len(ngram["latencies"])) == (8, 32, 8)


def test_csv_has_the_figures_of_the_json_and_nothing_for_nothing() -> None:
    report = usual()
    rows = list(csv.DictReader(io.StringIO(as_text(report, "csv"))))
    assert len(rows) == len(report["runs"])
    for row, run in zip(rows, report["runs"], strict=True):
        assert float(row["mean_tpot_ms"]) == run["tpot_ms"]["mean"]
        assert row["request_goodput"] == ""
    assert (rows[0]["tpot_speedup"], rows[1]["decision"]) == ("", "keep")


def test_json_leaves_the_lists_of_requests_out_unless_asked() -> None:
    short, long = (json.loads(as_text(usual(), "json", detailed)) for detailed in (False, True))
    assert "per_request" not in short["runs"][0]
    assert long["runs"][0]["per_request"]["output_lens"] == [4] * 8


def test_markdown_is_a_table_with_the_verdict_and_the_setting() -> None:
    text = as_text(usual(), "markdown")
    assert text.startswith("**Keep draft_model (k=4)")
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in table}) == 1
    assert len(table) == 2 + len(usual()["runs"])
    assert '"num_speculative_tokens": 4}' in text


def test_an_unknown_format_is_named() -> None:
    with pytest.raises(UsageError, match="--format is 'xml'"):
        check_format("xml")


class Reader(HTMLParser):
    """Collects what a page refers to and checks that its tags are closed."""

    VOID = ("meta", "line", "circle", "rect", "polyline", "path", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.refers: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.refers += [str(value) for name, value in attrs if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_the_page_stands_alone_and_shows_the_figures_of_the_json() -> None:
    report = usual()
    text = page([report])
    reader = Reader()
    reader.feed(text)
    assert (reader.open, reader.refers) == ([], [])
    assert not re.search(r"https?://|@import|url\(|<script", text)
    words = " ".join(reader.text)
    for run in report["runs"]:
        assert f"{run['tpot_ms']['mean']:.2f}" in words
        assert f"{run['output_throughput']:.1f}" in words
    for title in ("Time per output token", "Output throughput", "One user against all", "Acceptance per position"):
        assert title in words
    assert "Accepted lengths" in words
    assert "Speed-up by category" in words
    assert "prefers-color-scheme:dark" in text
    assert "@media print" in text
    assert report["verdict"]["text"] in words


def test_points_lie_where_their_values_are() -> None:
    """The baseline's TPOT is 10 ms; under a top tick of 20 that is half way up."""
    svg = re.search(r'<svg[^>]*aria-label="TPOT against concurrency".*?</svg>', page([usual()]), re.S)
    assert svg is not None
    heights = {float(y) for y in re.findall(r'<circle[^>]*--c0\)"[^>]*cy="([\d.]+)"', svg.group(0))}
    ticks = nice_ticks(20.0)
    assert ticks[-1] == 20.0
    assert heights == {280 - 40 - 10 / 20 * (280 - 14 - 40)}


def test_markup_in_names_is_shown_and_not_obeyed() -> None:
    report = usual()
    report["workload"]["target"] = "<b>demo</b>"
    assert "<b>demo</b>" not in page([report])


def test_several_reports_make_one_page() -> None:
    text = page([usual(), usual()], ["before", "after"])
    assert text.count('class="verdict"') == 2
    assert "before" in text


@pytest.mark.parametrize(
    ("top", "last"), [(0.0, 1.0), (0.79, 0.8), (2.15, 2.5), (9.0, 10.0), (600.0, 600.0), (17.0, 20.0)]
)
def test_ticks_are_round(top: float, last: float) -> None:
    ticks = nice_ticks(top)
    assert ticks[0] == 0.0
    assert ticks[-1] == pytest.approx(last)
    assert 2 <= len(ticks) <= 8
