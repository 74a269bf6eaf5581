"""`specctl plan` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specctl.cli.main import run
from specctl.planning.known_targets import TARGETS
from specctl.planning.models import target_named
from specctl.planning.shape import shape_of

TARGET, HEAD = "meta-llama/Llama-3.1-8B-Instruct", "RedHatAI/Llama-3.1-8B-Instruct-speculator.eagle3"
PAIR = (TARGET, "--draft", HEAD, "--gpu", "h100")


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)

    def called(*argv: str) -> tuple[int, str, str]:
        status = run(["plan", *argv])
        said = capsys.readouterr()
        return status, said.out, said.err

    return called


def planned(call: Any, *argv: str) -> Any:
    status, out, err = call(*argv, "--format", "json")
    assert status == 0, err
    return json.loads(out)


def test_the_shape_of_the_answer(call: Any) -> None:
    data = planned(call, *PAIR, "--context", "8192", "--concurrency", "1,8,32,128")
    assert set(data) == {
        "format_version", "inputs", "memory", "single_stream_tokens_per_s", "curve", "pays_up_to_concurrency", "best_k",
    }  # fmt: skip
    assert set(data["memory"]) == {
        "weights_bytes", "draft_weights_bytes", "kv_bytes_per_token", "kv_bytes_per_conversation",
        "draft_kv_bytes_per_conversation", "other_bytes", "conversations", "conversations_with_draft",
    }  # fmt: skip
    row = {
        "concurrency", "k", "tpot_ms", "output_throughput", "baseline_tpot_ms", "baseline_output_throughput",
    }  # fmt: skip
    assert [set(each) for each in data["curve"]] == [row] * 4
    assert [each["concurrency"] for each in data["curve"]] == [1, 8, 32, 128]
    assert list(data["best_k"]) == ["1", "8", "32", "128"]
    assert data["memory"]["kv_bytes_per_token"] == 131_072
    assert data["memory"]["draft_weights_bytes"] == pytest.approx(1.9e9, rel=0.001)
    assert data["single_stream_tokens_per_s"] == pytest.approx(208.6, abs=0.1)


def test_text_names_units_sources_and_assumptions(call: Any) -> None:
    status, out, err = call(*PAIR, "--concurrency", "1,8")
    assert (status, err) == (0, "")
    for words in ("GiB", "tokens/s", "TPOT ms", "fit at once", "mean over HumanEval", "break-even", "Assumptions"):
        assert words in out, words
    assert "51 without a draft, 48 with it (3 fewer" in out


def test_without_a_draft(call: Any) -> None:
    data = planned(call, TARGET, "--gpu", "h100")
    assert data["memory"]["draft_weights_bytes"] is None
    assert data["memory"]["conversations_with_draft"] is None
    assert (data["pays_up_to_concurrency"], data["best_k"]) == (None, {})
    assert all(row["tpot_ms"] is None and row["baseline_tpot_ms"] > 0 for row in data["curve"])


def test_an_unknown_acceptance_gives_the_break_even(call: Any) -> None:
    data = planned(call, "Qwen/Qwen3-8B", "--draft", "Qwen/Qwen3-0.6B", "--gpu", "h100", "--concurrency", "1")
    assert data["inputs"]["acceptance"]["source"] == "unknown"
    assert 1 < data["inputs"]["acceptance"]["break_even_acceptance_length"]["1"] < 4
    assert data["pays_up_to_concurrency"] is None
    _, out, _ = call("Qwen/Qwen3-8B", "--draft", "Qwen/Qwen3-0.6B", "--gpu", "h100")
    assert "Whether the draft pays is not known" in out
    known = planned(
        call, "Qwen/Qwen3-8B", "--draft", "Qwen/Qwen3-0.6B", "--gpu", "h100", "--k", "5", "--acceptance-rate", "0.7"
    )
    assert known["inputs"]["acceptance"]["lengths"] == {"5": 4.5}
    assert {row["k"] for row in known["curve"]} == {5}


def test_weights_that_do_not_fit(call: Any) -> None:
    status, out, err = call("meta-llama/Llama-3.3-70B-Instruct", "--gpu", "h100")
    assert status == 1
    assert "131.42 GiB" in err
    assert "use --tp 4" in err  # two would hold the weights, but no conversation
    assert "left for conversations" in out
    status, out, err = call("meta-llama/Llama-3.3-70B-Instruct", "--gpu", "h100", "--format", "json")
    assert (status, json.loads(out)["curve"], json.loads(out)["memory"]["conversations"]) == (1, [], 0)
    assert call("meta-llama/Llama-3.3-70B-Instruct", "--gpu", "h100", "--tp", "4")[0] == 0


def test_a_conversation_or_a_draft_that_does_not_fit(call: Any) -> None:
    status, _, err = call("meta-llama/Llama-3.1-8B-Instruct", "--gpu", "rtx-4090", "--context", "65536")
    assert status == 1
    assert "not one conversation of 65536 tokens fits" in err
    assert "--context" in err
    status, _, err = call("Qwen/Qwen3-32B", "--gpu", "h100", "--draft", "Qwen/Qwen3-8B", "--context", "1024")
    assert status == 1
    assert "the draft's weights do not fit" in err
    assert "a smaller draft" in err


@pytest.mark.parametrize(
    ("argv", "status", "words"),
    [
        ((TARGET, "--gpu", "h1000"), 2, "did you mean h100?"),
        ((TARGET,), 2, "no GPU is given"),
        (("--gpu", "h100"), 2, "no target is given"),
        (("meta-llama/Llama-3.1-8B-Instrukt", "--gpu", "h100"), 3, "did you mean meta-llama/Llama-3.1-8B-Instruct?"),
        ((TARGET, "--gpu", "h100", "--draft", "org/none"), 3, "unknown draft"),
        (("./nowhere", "--gpu", "h100"), 3, "does not exist"),
        (("", "--gpu", "h100"), 3, "unknown model"),
        ((*PAIR, "--concurrency", "0"), 2, "--concurrency"),
        ((*PAIR, "--concurrency", "a,b"), 2, "--concurrency"),
        ((*PAIR, "--concurrency", ""), 2, "--concurrency"),
        ((*PAIR, "--context", "0"), 2, "--context is 0"),
        ((*PAIR, "--context", "500000"), 2, "131072 positions"),
        ((*PAIR, "--tp", "3"), 2, "--tp is 3"),
        ((*PAIR, "--tp", "0"), 2, "--tp is 0"),
        ((*PAIR, "--tp", "4", "--draft-tp", "2"), 2, "--draft-tp is 2"),
        ((*PAIR, "--k", "0"), 2, "--k is 0"),
        ((*PAIR, "--acceptance-length", "5", "--k", "3"), 2, "between 1 and 4"),
        ((*PAIR, "--acceptance-length", "nan"), 2, "not possible"),
        ((*PAIR, "--acceptance-rate", "1.5"), 2, "between 0 and 1"),
        ((*PAIR, "--acceptance-rate", "0.5", "--acceptance-length", "2"), 2, "give one"),
        ((TARGET, "--gpu", "h100", "--acceptance-rate", "0.5"), 2, "needs a draft"),
        ((*PAIR, "--quantization", "q4_k"), 2, "--quantization 'q4_k'"),
        ((*PAIR, "--dtype", "int3"), 2, "--dtype 'int3'"),
        ((*PAIR, "--kv-dtype", "fp3"), 2, "--kv-dtype 'fp3'"),
        ((*PAIR, "--gpu-memory-utilization", "1.2"), 2, "--gpu-memory-utilization"),
        ((*PAIR, "--gpu-memory-utilization", "nan"), 2, "--gpu-memory-utilization"),
        ((*PAIR, "--reserve-gib", "-1"), 2, "--reserve-gib"),
        ((*PAIR, "--reserve-gib", "nan"), 2, "--reserve-gib"),
        ((*PAIR, "--format", "yaml"), 2, "unknown format"),
        ((TARGET, "--gpu", "h100", "--draft", "mtp"), 1, "no prediction layers"),
    ],
)
def test_wrong_use(call: Any, argv: tuple[str, ...], status: int, words: str) -> None:
    found, out, err = call(*argv)
    assert found == status, err
    assert words in err
    assert out == ""


def test_a_setting_names_method_draft_and_count(call: Any) -> None:
    setting = json.dumps({"method": "eagle3", "model": HEAD, "num_speculative_tokens": 2})
    data = planned(call, TARGET, "--gpu", "h100", "--speculative-config", setting)
    assert (data["inputs"]["draft"], data["inputs"]["method"]) == (HEAD, "eagle3")
    assert {row["k"] for row in data["curve"]} == {2}
    ngram = '{"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_min": 2, "prompt_lookup_max": 4}'
    data = planned(call, TARGET, "--gpu", "h100", "-sc", ngram)
    assert (data["inputs"]["method"], data["memory"]["draft_weights_bytes"]) == ("ngram", 0)
    Path("own.yaml").write_text(
        f"specctl: 1\ntarget: {TARGET}\nmethod: eagle3\nmodel: {HEAD}\nnum_speculative_tokens: 3\n"
    )
    data = planned(call, "--gpu", "h100", "--spec", "own.yaml")
    assert (data["inputs"]["target"], data["inputs"]["draft"]) == (TARGET, HEAD)


def test_a_folder_is_planned_by_its_config(call: Any) -> None:
    Path("model").mkdir()
    Path("model/config.json").write_text(json.dumps(TARGETS["Qwen/Qwen3-8B"]))
    data = planned(call, "./model", "--gpu", "h100")
    assert data["memory"]["weights_bytes"] == 2 * 8_190_735_360
    Path("model/config.json").write_text("{}")
    status, _, err = call("./model", "--gpu", "h100")
    assert status == 3
    assert "hidden_size" in err
    Path("model/config.json").write_text("{")
    assert call("./model", "--gpu", "h100")[0] == 3


def test_figures_of_another_target_do_not_count(call: Any) -> None:
    data = planned(call, "meta-llama/Llama-3.3-70B-Instruct", "--gpu", "h100", "--tp", "4", "--draft", HEAD)
    assert data["inputs"]["acceptance"]["source"] == "unknown"
    assert any("was made for meta-llama/Llama-3.1-8B-Instruct" in each for each in data["inputs"]["assumptions"])


def test_the_usual_length_keeps_to_the_models_limit(call: Any) -> None:
    assert planned(call, "demo", "--gpu", "l4")["inputs"]["context"] == 1024
    assert planned(call, TARGET, "--gpu", "h100")["inputs"]["context"] == 8192


def test_bundled_models_can_be_planned(call: Any) -> None:
    data = planned(call, "demo", "--gpu", "l4", "--context", "256", "--draft", "demo-draft")
    assert 0 < data["memory"]["draft_weights_bytes"] < data["memory"]["weights_bytes"]
    facts = target_named("demo")
    assert facts.stored_bytes == data["memory"]["weights_bytes"] == 2 * shape_of(facts.facts).parts.total
