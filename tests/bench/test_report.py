"""The JSON shape word for word, and how it prints."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from specctl.bench.outputs import TieRule
from specctl.bench.records import Block, Job, Record
from specctl.bench.report import plain, show
from specctl.bench.results import Setup, build_report, differing, num_failed
from specctl.bench.session import Measured, Schedule, measure
from specctl.runtime import SamplingParams, SpecStats
from specctl.spec.config import Acceptance, SpecDecodeConfig
from specctl.spec.methods import DraftModel, Ngram
from tests.bench.stand_ins import workload
from tests.bench.test_session import Told

ENVIRONMENT = {
    "specctl": "0.1.0",
    "engine": "specctl",
    "release": "0.1.0",
    "torch": "2.14",
    "device": "cpu",
    "dtype": "float32",
    "threads": 2,
}
NGRAM = SpecDecodeConfig(Ngram(2, 4), 4)
DRAFT = SpecDecodeConfig(DraftModel(), 4, model="demo-draft")


class Steady:
    """Answers with `tokens`, `tpot_s` apart; the level multiplies the throughput."""

    def __init__(
        self,
        name: str,
        tpot_s: float,
        spec: SpecDecodeConfig | None = None,
        tokens: Sequence[int] = (7, 8, 9, 2),
        max_concurrency: int | None = None,
    ) -> None:
        self.name = name
        self.k = None if spec is None else spec.num_speculative_tokens
        self.spec = spec
        self.lossless = spec is None or not spec.acceptance.lossy
        self.max_concurrency = max_concurrency
        self._tpot_s = tpot_s
        self._tokens = tokens

    def run(self, jobs: Sequence[Job], concurrency: int, /) -> Block:
        records = tuple(self._record(job) for job in jobs)
        return Block(records, len(jobs) * len(self._tokens) * self._tpot_s / concurrency)

    def _record(self, job: Job) -> Record:
        stats = SpecStats()
        stats.record(4 if self.spec else 0, 2 if self.spec else 0)
        last = 0.1 + self._tpot_s * (len(self._tokens) - 1)
        return Record(job, 0.0, 0.1, last, list(self._tokens), "stop", stats)


def report_of(*runners: Steady, levels: tuple[int, ...] = (1, 4), **sampling: Any) -> dict[str, Any]:
    schedule = Schedule(levels, 2, 0, 0, SamplingParams(max_tokens=64, **sampling))
    work = workload("coding", "math", "summarization", "writing")
    measured = measure(schedule, work, runners, Told())
    setup = Setup("demo", frozenset({2}), schedule, work, runners)
    return build_report(setup, measured, ENVIRONMENT, TieRule(lambda *_: 0.5, 1e-3))[0]


def usual() -> dict[str, Any]:
    return report_of(
        Steady("baseline", 0.01),
        Steady("ngram", 0.008, NGRAM),
        Steady("draft_model", 0.005, DRAFT),
        Steady("transformers", 0.02, max_concurrency=1),
        Steady("transformers-assisted", 0.02, max_concurrency=1),
    )


RUN_KEYS = """name k spec lossless concurrency requests failed num_verify_steps num_drafts num_draft_tokens
num_accepted_tokens
acceptance_rate mean_acceptance_length mean_acceptance_length_all_steps acceptance_per_position
conditional_acceptance_per_position acceptance_length_histogram by_category ttft_ms tpot_ms e2e_ms output_tokens
output_throughput total_throughput duration_s by_context chunk_gap_ms input_tokens draft_time_share verify_time_share
request_rate request_goodput goodput_share kv_cache_bytes draft_weight_bytes draft_kv_cache_bytes per_request std_ms
tpot_ms_ci output_throughput_ci alarm by_turn cached_input_tokens"""
COMPARISON_KEYS = """baseline candidate k concurrency tpot_speedup throughput_ratio tpot_speedup_ci
break_even_acceptance_length by_category outputs first_divergence keep by_context confidence pairs break_even_basis
cost_per_accepted_token_ms baseline_tpot_ms outputs_checked differences decision bound share_of_bound
draft_cost verify_cost by_turn"""


def test_the_shape_is_the_designs() -> None:
    report = usual()
    assert list(report) == [
        *("format_version", "environment", "workload", "runs", "comparison", "verdict", "failures", "notes"),
    ]
    for run in report["runs"]:
        assert sorted(run) == sorted(RUN_KEYS.split())
    for row in report["comparison"]:
        assert sorted(row) == sorted(COMPARISON_KEYS.split())
    assert sorted(report["verdict"]) == sorted(
        ["keep_up_to_concurrency", "text", "candidate", "k", "best_k", "by_concurrency", "settings"]
    )
    json.dumps(report, allow_nan=False)


def test_what_was_measured_stands_where_it_belongs() -> None:
    report = usual()
    cells = [(run["name"], run["k"], run["concurrency"]) for run in report["runs"]]
    assert cells[:4] == [("baseline", None, 1), ("ngram", 4, 1), ("draft_model", 4, 1), ("transformers", None, 1)]
    assert cells[5:] == [("baseline", None, 4), ("ngram", 4, 4), ("draft_model", 4, 4)]
    assert report["runs"][1]["spec"] == NGRAM.as_dict()
    assert report["runs"][0]["spec"] is None
    assert report["runs"][2]["requests"] == 8
    assert report["comparison"][1]["tpot_speedup"] == pytest.approx(2.0)
    assert report["verdict"]["keep_up_to_concurrency"] == 4


def test_the_workload_describes_prompts_and_answers() -> None:
    work = usual()["workload"]
    assert work["prompts"] == {"coding": 1, "math": 1, "summarization": 1, "writing": 1}
    assert (work["repeats"], work["output_len"], work["temperature"], work["seed"]) == (2, 64, 0.0, 0)
    assert work["prompts_file"] is None
    assert work["prompt_tokens"] == {"min": 1, "mean": 1.0, "max": 1}
    assert work["ended_by_eos_share"] == 1.0
    assert work["repeated_4gram_share"]["math"] == {"max": 0.0, "mean": 0.0}


def test_a_wrong_output_is_found_and_fails() -> None:
    report = report_of(Steady("baseline", 0.01), Steady("ngram", 0.005, NGRAM, tokens=(7, 5, 9, 2)), levels=(1,))
    [row] = differing(report)
    assert row["first_divergence"] == {
        "request": 0, "turn": 0, "token": 1, "margin": 0.5, "kind": "real", "unit": "token",
    }  # fmt: skip
    assert row["differences"] == {"real": 8}
    assert "Do not use it: ngram (k=4)" in report["verdict"]["text"]
    told = "ngram (k=4) at concurrency 1, different (8 real of 8 outputs): request p0, token 1, logit margin 0.5."
    assert told in " ".join(plain(report).split())


@pytest.mark.parametrize("method", ["synthetic", "typical", "relaxed"])
def test_lossy_settings_are_not_checked(method: str) -> None:
    lossy = SpecDecodeConfig(Ngram(), 4, acceptance=Acceptance(method))
    report = report_of(Steady("baseline", 0.01), Steady("ngram", 0.005, lossy, tokens=(1, 1, 1, 1)), levels=(1,))
    assert report["comparison"][0]["outputs"] == "not-checked"
    assert differing(report) == []
    assert [run["lossless"] for run in report["runs"]] == [True, False]
    told = " ".join(plain(report).split())
    assert f"are not compared: ngram (k=4) ({method} acceptance)." in told
    assert " lossy " in told
    assert "Lossless: ngram (k=4), " in " ".join(plain(usual()).split())


def test_sampled_outputs_are_not_checked() -> None:
    report = report_of(
        Steady("baseline", 0.01), Steady("ngram", 0.005, NGRAM, tokens=(1, 1)), levels=(1,), temperature=0.8
    )
    assert report["comparison"][0]["outputs"] == "not-checked"


def test_peers_do_not_enter_the_verdict() -> None:
    report = report_of(Steady("baseline", 0.01), Steady("transformers", 0.005, max_concurrency=1))
    assert report["comparison"][0]["keep"] is True
    assert report["verdict"]["keep_up_to_concurrency"] is None


def test_text_fits_into_100_columns_and_names_everything() -> None:
    text = plain(usual())
    assert max(map(len, text.split("To run it:")[0].splitlines())) <= 100
    for expected in (
        "demo, float32 on cpu, 2 threads",
        "4 prompts (1 coding, 1 math, 1 summarization, 1 writing), at most 64 new tokens, greedy, 2 repeats",
        "draft_model 4 1",
        "2.00x [",
        "identical",
        "100 % of the baseline's answers ended by EOS.",
        "Plain decoding here is 2.00x as fast as transformers (TPOT).",
        "Keep draft_model (k=4) at every concurrency tested, up to 4",
    ):
        assert expected in " ".join(text.split())


@pytest.mark.parametrize("width", [60, 61, 70, 80, 99, 100])
def test_a_terminal_gets_what_it_is_wide_for(width: int) -> None:
    """The verdict's figures stand at every width; what is pasted is never broken."""
    text = plain(usual(), width).split("To run it:")[0]
    assert max(map(len, text.splitlines())) <= width
    header = next(line for line in text.splitlines() if line.startswith("method"))
    assert all(name in header for name in ("conc", "TPOT ms", "speed-up [95 %]"))
    assert all(name in text for name in ("coding", "math", "summarization", "writing", "break-even", "of bound"))


def test_a_narrow_terminal_gets_80_columns_and_keeps_the_answer() -> None:
    text = plain(usual(), 80)
    assert max(map(len, text.split("To run it:")[0].splitlines())) <= 80
    header = next(line for line in text.splitlines() if line.startswith("method"))
    assert [name for name in ("TPOT ms", "speed-up [95 %]", "outputs", "TTFT ms") if name in header] == [
        "TPOT ms",
        "speed-up [95 %]",
        "outputs",
    ]


def test_the_setting_to_paste_is_one_line_each() -> None:
    lines = plain(usual()).split("To run it:\n")[1].splitlines()
    assert lines[0] == (
        "vllm 0.31.0: --speculative-config "
        """'{"method": "draft_model", "model": "demo-draft", "num_speculative_tokens": 4}'"""
    )
    assert lines[1].startswith("sglang 0.5.22: --speculative-algorithm STANDALONE")


def test_the_main_table_row_by_row() -> None:
    lines = plain(usual()).splitlines()
    row = next(line.split() for line in lines if line.startswith("ngram"))
    assert row == [
        "ngram",
        "4",
        "1",
        "50.0",
        "%",
        "3.00",
        "8.00",
        "100.0",
        "125.0",
        "1.25x",
        "[1.05,",
        "1.49]",
        "identical",
    ]
    row = next(line.split() for line in lines if line.startswith("baseline"))
    assert row == ["baseline", "-", "1", "-", "-", "10.00", "100.0", "100.0", "-", "reference"]


def test_many_categories_are_spread_over_tables() -> None:
    schedule = Schedule((1,), 1, 0, 0, SamplingParams())
    work = workload(*(f"category-{n}" for n in range(6)))
    runners = [Steady("baseline", 0.01), Steady("ngram", 0.008, NGRAM)]
    setup = Setup("demo", frozenset({2}), schedule, work, runners)
    text = plain(build_report(setup, measure(schedule, work, runners, Told()), ENVIRONMENT, None)[0])
    assert text.count("acceptance length and speed-up by category") == 2
    assert max(len(line) for line in text.splitlines() if line.startswith(("ngram", "method"))) <= 100


def test_an_interrupted_run_without_blocks_still_prints() -> None:
    schedule = Schedule((1, 8), 5, 4, 0, SamplingParams())
    runners = [Steady("baseline", 0.01), Steady("ngram", 0.008, NGRAM)]
    setup = Setup("demo", frozenset({2}), schedule, workload("coding", "math"), runners)
    report, _ = build_report(setup, Measured(interrupted=True), ENVIRONMENT, None)
    json.dumps(report, allow_nan=False)
    assert report["workload"]["ended_by_eos_share"] is None
    assert {run["tpot_ms"]["mean"] for run in report["runs"]} == {None}
    assert "Interrupted" in plain(report)
    assert num_failed(report) == 0


def test_repeats_that_did_not_fit_are_told() -> None:
    report = usual()
    assert "repeats fitted" not in plain(report)
    report["workload"]["repeats"] = 5
    assert "Only 2 of 5 repeats fitted into the time; --repeats 5 runs them all." in plain(report)


def test_a_terminal_gets_the_same_figures(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    show(usual())
    shown = capsys.readouterr().out
    for figure in ("2.00x [", "125.0", "transformers", "Keep draft_model (k=4)"):
        assert figure in shown


def test_a_server_is_no_other_runtime() -> None:
    report = usual()
    report["environment"]["servers"] = [{"run": "transformers", "model": "demo", "url": "http://localhost:8000"}]
    assert "Plain decoding here is" not in plain(report)
