"""validate-config on files that hold an engine's command line: places in the file, exit statuses, what is left open."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specctl.cli.main import run
from specctl.rules.checker import check_file
from specctl.source.document import from_bytes

BAD = '{"method": "ngram", "num_speculative_tokens": 0, "prompt_lookup_min": 2, "prompt_lookup_max": 4}'
SCRIPT = f"""\
export VLLM_USE_V2_MODEL_RUNNER=0
vllm serve /models/m --logits-processors a.b \\
  --speculative-config '{BAD}'
sglang serve m --speculative-algorithm EAGLE3 --speculative-draft-model-path $DRAFT --speculative-num-steps 3 \\
  --speculative-eagle-topk 1 --speculative-num-draft-tokens 8
"""
MANIFEST = f"""\
apiVersion: v1
kind: ConfigMap
data:
  run.sh: |
    vllm serve m \\
      --speculative-config '{BAD}'
  trt.yaml: |
    speculative_config:
      decoding_type: NGram
      max_draft_len: -1
---
kind: Deployment
spec:
  containers:
  - image: vllm/vllm-openai:v0.31.0
    args: ["--model", "m", "--speculative-config", "{BAD.replace('"', chr(92) + '"')}"]
"""


@pytest.fixture
def checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.chdir(tmp_path)

    def called(name: str, text: str, *options: str) -> tuple[int, list[dict[str, Any]]]:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
        status = run(["validate-config", name, "--format", "json", *options])
        return status, json.loads(capsys.readouterr().out)["results"]

    return called


def place(text: str, found: dict[str, Any]) -> str:
    """The text that a diagnostic points to."""
    lines = text.split("\n")
    assert found["line"] == found["end_line"]
    return lines[found["line"] - 1][found["column"] - 1 : found["end_column"] - 1]


def test_a_script(checked: Any) -> None:
    status, (vllm, sglang) = checked("run.sh", SCRIPT)
    assert (status, vllm["source"], vllm["engine"], sglang["engine"]) == (1, "run.sh", "vllm", "sglang")
    wrong = next(each for each in vllm["diagnostics"] if each["code"] == "SPC104")
    assert (wrong["line"], place(SCRIPT, wrong)) == (3, "0")
    changed = next(each for each in sglang["diagnostics"] if each["code"] == "SPC323")
    assert (changed["line"], place(SCRIPT, changed)) == (5, "8")
    assert any("$DRAFT" in note for note in sglang["assumptions"])
    assert "SPC201" not in {each["code"] for each in vllm["diagnostics"]}  # /models is on another machine


def test_a_manifest_of_several_documents(checked: Any) -> None:
    status, results = checked("k8s.yaml", MANIFEST)
    assert status == 1
    assert [each["engine"] for each in results] == ["vllm", "trtllm", "vllm"]
    lines = [
        [(each["line"], place(MANIFEST, each)) for each in one["diagnostics"] if each["severity"] == "error"]
        for one in results
    ]
    assert lines[0] == [(6, "0")]
    assert (10, "-1") in lines[1]
    assert lines[2] == [(16, "0")]


@pytest.mark.parametrize(
    ("name", "text", "named"),
    [
        ("a.sh", "vllm serve m --spec-method ngram --spec-tokens $K\n", "$K"),
        ("b.sh", 'vllm serve m --speculative-config "{\\"num_speculative_tokens\\": ${K:-3}}"\n', "${K:-3}"),
        ("c.yaml", "args: [vllm, serve, m, --spec-tokens, '{{ .Values.k }}']\n", "{{ .Values.k }}"),
        ("d.yaml", "run: sglang serve m --speculative-num-steps ${{ inputs.k }}\n", "${{ inputs.k }}"),
    ],
)
def test_open_values_are_named_not_guessed(checked: Any, name: str, text: str, named: str) -> None:
    status, (one,) = checked(name, text)
    assert (status, [each["code"] for each in one["diagnostics"]]) == (0, ["SPC015"])
    assert named in one["diagnostics"][0]["message"]
    assert (one["spec"], one["effective"]) == (None, {})


def test_a_file_of_the_engine_that_lies_elsewhere(checked: Any) -> None:
    status, (one,) = checked("a.sh", "trtllm-serve m --config /etc/trt.yaml\n")
    assert (status, one["diagnostics"][0]["code"], one["diagnostics"][0]["severity"]) == (0, "SPC012", "warning")
    text = "cat > /etc/trt.yaml <<EOF\nspeculative_config: {decoding_type: SA, max_draft_len: 3}\nEOF\n"
    status, results = checked("b.sh", text + "trtllm-serve m --config /etc/trt.yaml\n", "--release", "1.4.0rc0")
    assert (status, [len(each["diagnostics"]) for each in results]) == (0, [0, 0])


def test_commands_without_speculation(checked: Any) -> None:
    status, (one,) = checked("a.sh", "vllm serve m\n")
    assert (status, one["diagnostics"][0]["code"]) == (1, "SPC013")
    assert "starts vLLM without one" in one["diagnostics"][0]["message"]


def test_a_folder(checked: Any, capsys: pytest.CaptureFixture[str]) -> None:
    checked("ops/run.sh", SCRIPT)
    checked("ops/k8s.yaml", MANIFEST)
    checked("ops/other.sh", "echo vllm\n")
    checked("ops/service.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: vllm}\n")
    assert run(["validate-config", "ops", "--format", "json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert len(data["results"]) == 5
    assert data["skipped_files"] == 1


def test_flag_and_value_in_one_list_item(checked: Any) -> None:
    _, (one,) = checked("a.yaml", "args:\n- vllm\n- serve\n- m\n- --speculative-config {}\n")
    assert "make them two" in one["diagnostics"][0]["help"]
    assert one["diagnostics"][0]["line"] == 5


def test_variables_in_front_of_a_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    setting = BAD.replace(": 0", ": 3")
    words = ["vllm", "serve", "m", "--speculative-config", setting]
    assert run(["validate-config", "--", "VLLM_USE_V2_MODEL_RUNNER=1", *words]) == 1
    assert "VLLM_USE_V2_MODEL_RUNNER=1 forces" in capsys.readouterr().out
    assert run(["validate-config", "--", "env", "VLLM_USE_V2_MODEL_RUNNER=0", *words]) == 0


def test_blanks_behind_an_equals_sign(capsys: pytest.CaptureFixture[str]) -> None:
    setting = BAD.replace(": 0", ": 3")
    assert run(["validate-config", f"--speculative-config={setting}"]) == 0
    assert run(["validate-config", "--", "vllm", "serve", "m", f"-sc={setting}"]) == 0
    assert "accepts" in capsys.readouterr().out


PIECES = (
    "vllm serve m ",
    "sglang serve ",
    "--speculative-config ",
    "--speculative-num-steps ",
    BAD,
    "'",
    '"',
    "\\",
    "\n",
)
PIECES += ("$X", "X=", "run: |\n  ", "args:\n- ", "- ", " ", "{{ x }}", "é", "\u2028", "\r", "--spec-tokens 3", "&&")


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join), st.sampled_from(["a.sh", "a.yaml", "Dockerfile"]))
def test_places_lie_inside_the_file(text: str, name: str) -> None:
    document = from_bytes(name, text.encode())
    lines = document.text.split("\n")
    for report in check_file(document):
        assert report.verdict in ("accepts", "refuses", "fails-at-start")
        for span in (each.span for each in report.diagnostics if each.span is not None):
            assert 1 <= span.line <= span.end_line <= len(lines)
            assert 1 <= span.column <= len(lines[span.line - 1]) + 1
            assert 1 <= span.end_column <= len(lines[span.end_line - 1]) + 1


def test_a_file_of_the_engine_that_is_here(checked: Any) -> None:
    body = "max_batch_size: 64\nspeculative_config:\n  decoding_type: NGram\n  max_draft_len: 0\n"
    Path("trt.yaml").write_text(body)
    status, (one,) = checked("a.sh", "#!/bin/sh\n\ntrtllm-serve m --max_batch_size 32 --config trt.yaml\n")
    assert (status, one["source"]) == (1, "trt.yaml")
    wrong = next(each for each in one["diagnostics"] if each["code"] == "SPC151" and "max_draft_len" in each["message"])
    assert (wrong["line"], place(body, wrong)) == (4, "0")
