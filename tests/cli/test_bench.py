"""`specctl bench` from the command line: exit statuses, what is printed, what is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specctl.bench.load import EngineRunner
from specctl.cli.main import run
from tests.runtime.kit import build


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    root = tmp_path_factory.mktemp("models")
    return str(build("qwen3", root / "target")), str(build("llama", root / "draft", seed=1))


@pytest.fixture
def prompts(tmp_path: Path) -> str:
    path = tmp_path / "prompts.jsonl"
    rows = [("abc abc abc", "coding"), ("one two", "math"), ("hello here here here", "coding"), ("so so", "math")]
    path.write_text("\n".join(json.dumps({"prompt": text, "category": name}) for text, name in rows))
    return str(path)


def bench(models: tuple[str, str], prompts: str, *more: str) -> int:
    quick = ["--repeats", "1", "--warmup", "0", "--output-len", "8", "--concurrency", "1,2", "--dtype", "float64"]
    quick += ["--threads", "1"]
    drafts = ["--draft", f"draft_model={models[1]}"]
    return run(["bench", models[0], *drafts, "--prompts", prompts, *quick, *more])


def test_a_run_prints_the_table_and_writes_the_report(
    models: tuple[str, str], prompts: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "out.json"
    assert bench(models, prompts, "--output-json", str(file), "--against", "transformers") == 0
    printed = capsys.readouterr()
    report = json.loads(file.read_text())
    cells = [(run["name"], run["k"], run["concurrency"], run["requests"]) for run in report["runs"]]
    assert cells == [
        ("baseline", None, 1, 4),
        ("ngram", 4, 1, 4),
        ("draft_model", 4, 1, 4),
        ("transformers", None, 1, 4),
        ("baseline", None, 2, 4),
        ("ngram", 4, 2, 4),
        ("draft_model", 4, 2, 4),
    ]
    assert {row["outputs"] for row in report["comparison"]} == {"identical"}
    assert report["environment"]["dtype"] == "float64"
    assert report["verdict"]["text"].split()[0] in printed.out
    assert "repeat 1/1, concurrency 2" in printed.err


def test_json_on_standard_output_and_nothing_else(
    models: tuple[str, str], prompts: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(models, prompts, "--methods", "ngram,draft_model", "--k", "1..2", "--format", "json", "-q") == 0
    printed = capsys.readouterr()
    runs = json.loads(printed.out)["runs"]
    assert [(run["name"], run["k"]) for run in runs[:5]] == [
        ("baseline", None),
        ("ngram", 1),
        ("ngram", 2),
        ("draft_model", 1),
        ("draft_model", 2),
    ]
    assert "requests]" not in printed.err


def test_outputs_that_differ_fail_the_run(
    models: tuple[str, str], prompts: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    honest = EngineRunner.run

    def spoilt(self: EngineRunner, jobs: object, concurrency: int, /) -> object:
        block = honest(self, jobs, concurrency)  # type: ignore[arg-type]
        if self.name == "ngram":
            block.records[0].token_ids[3] ^= 1
        return block

    monkeypatch.setattr(EngineRunner, "run", spoilt)
    assert bench(models, prompts) == 1
    printed = capsys.readouterr().out
    assert "Do not use it: ngram (k=4) changes the output" in " ".join(printed.split())
    assert "token 3, logit margin" in printed
    assert bench(models, prompts, "--no-check-outputs") == 0


def test_a_prompt_that_does_not_fit_is_a_failed_request_and_named(
    models: tuple[str, str], prompts: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with open(prompts, "a") as file:
        file.write("\n" + json.dumps({"prompt": "x" * 500, "id": "novel"}))
    assert bench(models, prompts, "--methods", "draft_model") == 1
    printed = capsys.readouterr()
    assert "request novel failed in baseline at concurrency 1: the prompt has 500 tokens" in printed.err
    assert "baseline at concurrency 1: 1 request failed." in printed.out


def test_every_runtime_asks_every_turn_and_answers_alike(
    models: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In float64 the answers of all are the same tokens, so the histories are the same, too, turn for turn."""
    path, out = tmp_path / "questions.jsonl", tmp_path / "out.json"
    rows: list[dict[str, object]] = [
        {"turns": ["abc abc", "and so", "so so"], "category": "chat"},
        {"prompt": "one two"},
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    assert bench(models, str(path), "--against", "transformers", "--output-json", str(out)) == 0
    report = json.loads(out.read_text())
    assert {run["requests"] for run in report["runs"]} == {4}
    assert {row["outputs"] for row in report["comparison"]} == {"identical"}
    assert {row["outputs_checked"] for row in report["comparison"]} == {4}
    assert all(list(row["by_turn"]) == ["1", "2", "3"] for row in report["comparison"])
    lengths = [turn["mean_prompt_tokens"] for turn in report["runs"][0]["by_turn"].values()]
    assert lengths == sorted(set(lengths))
    assert "by turn of the conversation" in capsys.readouterr().out


def test_ctrl_c_reports_what_was_measured(
    models: tuple[str, str],
    prompts: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    honest = EngineRunner.run
    calls = []

    def stopped(self: EngineRunner, jobs: object, concurrency: int, /) -> object:
        calls.append(self.name)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return honest(self, jobs, concurrency)  # type: ignore[arg-type]

    monkeypatch.setattr(EngineRunner, "run", stopped)
    file = tmp_path / "out.json"
    assert bench(models, prompts, "--output-json", str(file)) == 130
    assert "Interrupted" in capsys.readouterr().out
    report = json.loads(file.read_text())
    assert report["workload"]["interrupted"] is True
    assert [run["requests"] for run in report["runs"]] == [4, 4, 4, 0, 0, 0]
    assert report["runs"][3]["tpot_ms"] == {"mean": None, "median": None, "p99": None}


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["--methods", "ngrma"], 2, "no method is called 'ngrma'"),
        (["--methods", "eagle3"], 2, "eagle3 needs a draft"),
        (["--k", "0"], 2, "--k is '0'"),
        (["--k", "200"], 2, "between 1 and 128"),
        (["--concurrency", "two"], 2, "--concurrency is 'two'"),
        (["--concurrency", "99"], 2, "4 prompts cannot keep 99 requests in flight"),
        (["--num-prompts", "9"], 2, "9 prompts are wanted, 4 are there"),
        (["--categories", "poems"], 2, "no prompts of category 'poems'"),
        (["--repeats", "0"], 2, "--repeats"),
        (["--speculation", "sometimes"], 2, "must be set or auto"),
        (["--format", "xml"], 2, "--format is 'xml'"),
        (["--against", "vllm-cpu"], 2, "no peer is called 'vllm-cpu'"),
        (["--draft", "eagle"], 2, "must look like"),
        (["--top-p", "0"], 2, "top_p is 0.0"),
        (["--temperature", "nan"], 2, "temperature is nan"),
        (["--dtype", "float8"], 2, "dtype 'float8' is unknown"),
        (["--prompts", "absent.jsonl"], 3, "cannot read the prompts absent.jsonl"),
        (["--output-json", "absent/out.json"], 3, "cannot write absent/out.json"),
        (["--output-json", "/"], 3, "cannot write /"),
        (["--nonsense"], 2, "--nonsense"),
    ],
)
def test_wrong_usage(
    models: tuple[str, str],
    prompts: str,
    options: list[str],
    status: int,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["bench", models[0], "--prompts", prompts, "--concurrency", "1", *options]) == status
    printed = capsys.readouterr()
    assert message in printed.err
    assert "Traceback" not in printed.err
    assert printed.out == ""


def test_a_target_that_is_not_there(prompts: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "no-such-model", "--prompts", prompts, "--concurrency", "1"]) == 3
    assert "no-such-model" in capsys.readouterr().err


def test_the_output_file_is_tried_before_the_target_is_loaded(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "no-such-model", "--output-json", "absent/out.json"]) == 3
    assert "cannot write" in capsys.readouterr().err


def test_threads_are_chosen_by_a_trial_and_said(
    models: tuple[str, str], prompts: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    monkeypatch.setattr("specctl.bench.run.fastest", lambda *given: given[-1](1) or 1)
    try:
        quick = ["--repeats", "1", "--warmup", "0", "--output-len", "4", "--concurrency", "1", "--format", "json"]
        assert run(["bench", models[0], "--prompts", prompts, *quick]) == 0
        printed = capsys.readouterr()
        assert json.loads(printed.out)["environment"]["threads"] == 1
        assert "measured with 1 of 2 CPU threads" in printed.err
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("value", ["null", ""])
def test_a_setting_that_is_off_leaves_nothing_to_measure(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "demo", "--speculative-config", value]) == 1
    assert "leaves speculation off" in capsys.readouterr().err


def test_the_table_comes_before_a_file_that_cannot_be_written(
    models: tuple[str, str], prompts: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(models, prompts, "--output-json", "/dev/full") == 3
    shown = capsys.readouterr()
    assert "baseline" in shown.out
    assert "/dev/full" in shown.err


def test_a_draft_that_is_accepted_as_by_chance_raises_the_alarm(
    models: tuple[str, str], prompts: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "out.json"
    assert bench(models, prompts, "--output-json", str(file), "--output-len", "40", "--concurrency", "2") == 0
    printed = capsys.readouterr().out
    runs = {run["name"]: run for run in json.loads(file.read_text())["runs"]}
    alarm = runs["draft_model"]["alarm"]
    assert alarm["num_drafts"] == runs["draft_model"]["num_drafts"] > 55
    assert alarm["upper_bound"] < alarm["stated_bound"]
    assert alarm["causes"][0]["name"] == "wrong target"
    assert runs["ngram"]["alarm"] is None
    assert runs["baseline"]["alarm"] is None
    assert "ALARM (!): draft_model (k=4): draft_model looks broken" in printed
    assert " % !" in printed


def test_synthetic_acceptance_comes_out_as_it_was_set(models: tuple[str, str], prompts: str, tmp_path: Path) -> None:
    """Length 2.7 of at most 5: one draft always, a second in 7 of 10 steps, no third (docs/bench.md: 10,000 steps)."""
    file = tmp_path / "out.json"
    setting = {
        "method": "draft_model",
        "model": models[1],
        "num_speculative_tokens": 4,
        "rejection_sample_method": "synthetic",
        "synthetic_acceptance_length": 2.7,
    }
    words = ["--speculative-config", json.dumps(setting), "--ignore-eos", "--output-len", "60", "--concurrency", "4"]
    words += ["--prompts", prompts, "--repeats", "2", "--warmup", "0", "--output-json", str(file), "-q"]
    assert run(["bench", models[0], *words]) == 0
    baseline, found = json.loads(file.read_text())["runs"]
    histogram = found["acceptance_length_histogram"]
    steps = found["num_verify_steps"]
    assert baseline["output_tokens"] == found["output_tokens"] == 480
    assert (found["num_drafts"], found["num_draft_tokens"]) == (steps, sum(histogram) * 4)
    assert found["num_accepted_tokens"] == sum(length * count for length, count in enumerate(histogram))
    assert (histogram[0], histogram[3:]) == (0, [0, 0])
    assert found["acceptance_per_position"][0] == 1.0
    assert found["mean_acceptance_length"] == pytest.approx(2.7, abs=3 * (0.7 * 0.3 / steps) ** 0.5)


def test_what_an_engine_says_of_its_draft_stands_in_the_report(
    models: tuple[str, str], prompts: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "out.json"
    assert bench(models, prompts, "--methods", "draft_model", "--output-json", str(file)) == 0
    told = "draft_model (k=4): chat template: the target has none"
    assert any(note.startswith(told) for note in json.loads(file.read_text())["notes"])
    printed = capsys.readouterr()
    assert "draft_model (k=4): chat template" in printed.out
    assert "chat template" not in printed.err
    assert bench(models, prompts, "--methods", "draft_model", "--format", "json") == 0
    assert f"note: {told}" in capsys.readouterr().err
