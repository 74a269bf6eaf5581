"""Exit statuses and output of validate-config, convert and explain, as a user types them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from specctl.cli.main import run

GOOD = (
    "speculative_config:\n  decoding_type: NGram\n  max_draft_len: 4\n"
    "  max_matching_ngram_size: 4\n  is_public_pool: false\n"
)
NGRAM = '{"method":"ngram","num_speculative_tokens":3,"prompt_lookup_min":2,"prompt_lookup_max":4}'


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)

    def called(*argv: str) -> tuple[int, str, str]:
        status = run(list(argv))
        said = capsys.readouterr()
        return status, said.out, said.err

    return called


def write(name: str, text: str | bytes) -> str:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_bytes(text.encode() if isinstance(text, str) else text)
    return name


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        (GOOD, 0, "accepts"),
        ("", 1, "empty"),
        ("speculative_config:\n\tdecoding_type: NGram\n", 1, "tab"),
        (b"\x00\x01\x02\x03", 1, "binary"),
        ("speculative_config:\n  - decoding_type: NGram\n", 1, "a list"),
        ("- a\n", 1, "a list"),
        ("foo: 1\n", 1, "none of its keys"),
        ("speculative_config: {decoding_type: NGram}\nspeculative-algorithm: NGRAM\n", 2, ""),
    ],
)
def test_files(call: Any, text: str | bytes, status: int, said: str) -> None:
    found, out, err = call("validate-config", write("f.yaml", text))
    assert found == status
    assert said in out
    assert "Traceback" not in out + err


def test_malformed_json_names_the_column(call: Any) -> None:
    status, out, _ = call("validate-config", "--speculative-config", '{"method": "ngram" "num_speculative_tokens": 3}')
    assert status == 1
    assert "column 20" in out
    status, out, _ = call(
        "validate-config", write("f.json", '{"method": "ngram" "num_speculative_tokens": 3}'), "--format", "json"
    )
    found = json.loads(out)["results"][0]["diagnostics"][0]
    assert (status, found["line"], found["column"]) == (1, 1, 20)


@pytest.mark.parametrize(
    ("count", "status"),
    [("0", 1), ("-1", 1), ("3.5", 1), ("null", 1), ('"3"', 0), ("3.0", 0), ("true", 0), ("1000000000", 1)],
)
def test_counts(call: Any, count: str, status: int) -> None:
    setting = NGRAM.replace(":3,", f":{count},")
    assert call("validate-config", "--speculative-config", setting)[0] == status
    assert call("validate-config", "--strict", "--speculative-config", setting)[0] == 1


def test_missing_things_end_with_three(call: Any) -> None:
    status, _, err = call("validate-config", "nowhere.yaml")
    assert (status, "nowhere.yaml" in err) == (3, True)
    status, _, err = call("validate-config", "--target", "nowhere", "--speculative-config", NGRAM)
    assert status == 3
    assert "looked for" in err
    setting = '{"method":"draft_model","model":"./nowhere","num_speculative_tokens":3}'
    status, out, _ = call("validate-config", "--speculative-config", setting)
    assert status == 3
    assert "looked for" in out
    Path("bare").mkdir()
    status, out, _ = call("validate-config", "--target", "bare", "--speculative-config", NGRAM)
    assert (status, "config.json" in out) == (3, True)


def test_usage_ends_with_two(call: Any) -> None:
    status, _, err = call("validate-config", "--speculative-algorithm", "NGRAM", "--speculative-config", "{}")
    assert status == 2
    assert "--speculative-algorithm" in err
    assert "--speculative-config" in err
    for argv in (
        ["validate-config"],
        ["validate-confg"],
        ["validate-config", "--foo"],
        ["validate-config", "--format", "xml", "f"],
    ):
        assert call(*argv)[0] == 2
    assert call("validate-config", "--release", "latest", "--speculative-config", NGRAM)[0] == 2
    assert call("explain", "SPC999")[0] == 2


def test_a_draft_of_another_vocabulary(call: Any) -> None:
    for name, size in (("target", 512), ("draft", 640)):
        write(
            f"{name}/config.json",
            json.dumps({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": size}),
        )
    setting = '{"method":"draft_model","model":"./draft","num_speculative_tokens":3}'
    status, out, _ = call("validate-config", "--target", "./target", "--speculative-config", setting)
    assert status == 1
    assert "640" in out
    assert "512" in out


def test_json_shape(call: Any) -> None:
    status, out, _ = call("validate-config", "--format", "json", "--speculative-config", NGRAM)
    data = json.loads(out)
    assert status == 0
    assert set(data) == {"format_version", "valid", "results", "skipped_files", "errors", "warnings"}
    one = data["results"][0]
    assert {"source", "dialect", "engine", "release", "verdict", "spec", "effective", "diagnostics", "skipped"} <= set(
        one
    )
    assert (one["engine"], one["release"], one["verdict"]) == ("vllm", "0.31.0", "accepts")


def test_folders(call: Any) -> None:
    write("ops/a.yaml", GOOD)
    write("ops/deep/b.json", NGRAM)
    write("ops/.hidden/c.yaml", "speculative_config: {")
    write("ops/other.yaml", "replicas: 2\n")
    write("ops/mixed.yaml", "speculative_config: {decoding_type: NGram}\nspeculative-algorithm: NGRAM\n")
    status, out, _ = call("validate-config", "ops", "--format", "json")
    data = json.loads(out)
    assert status == 1
    assert data["skipped_files"] == 1
    assert {Path(one["source"]).name: one["verdict"] for one in data["results"]} == {
        "a.yaml": "accepts",
        "b.json": "accepts",
        "mixed.yaml": "refuses",
    }


def test_an_engines_own_command_line(call: Any) -> None:
    status, out, _ = call("validate-config", "--", "vllm", "serve", "org/m", "--speculative-config", NGRAM, "-tp", "2")
    assert (status, "vLLM 0.31.0 accepts" in out) == (0, True)
    status, out, _ = call(
        "validate-config", "--", "python", "-m", "sglang.launch_server", "--speculative-algorithm", "NGRAM"
    )
    assert (status, "no model" in out) == (1, True)
    status, _, _ = call("validate-config", "--", "trtllm-serve", "org/m", "--config", write("f.yaml", GOOD))
    assert status == 0


def test_standard_input(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GOOD.encode())))
    assert call("validate-config", "-")[0] == 0


def test_another_engines_rules(call: Any) -> None:
    file = write(
        "f.yaml",
        "speculative_config: {decoding_type: Draft_Target, max_draft_len: 200, speculative_model: demo-draft}\n",
    )
    status, out, _ = call("validate-config", file, "--engine", "vllm")
    assert status == 1
    assert "at most 128" in out


def test_select_and_ignore(call: Any) -> None:
    setting = NGRAM.replace(":3,", ':"3",')
    assert "SPC010" in call("validate-config", "--speculative-config", setting)[1]
    assert "SPC010" not in call("validate-config", "--ignore", "SPC01", "--speculative-config", setting)[1]
    assert call("validate-config", "--strict", "--ignore", "SPC010", "--speculative-config", setting)[0] == 0
    assert "SPC010" not in call("validate-config", "--select", "SPC2", "--speculative-config", setting)[1]


def test_comments_ignore(call: Any) -> None:
    text = "speculative-config:\n  method: ngram\n  num_speculative_tokens: '3'  # specctl: ignore SPC010\n"
    text += "  prompt_lookup_min: 2\n  prompt_lookup_max: 4\n"
    assert "SPC010" not in call("validate-config", write("f.yaml", text))[1]
    assert "SPC010" in call("validate-config", write("g.yaml", text.replace("  # specctl: ignore SPC010", "")))[1]
    whole = "# specctl: ignore-file SPC010\n" + text.replace("  # specctl: ignore SPC010", "")
    assert "SPC010" not in call("validate-config", write("h.yaml", whole))[1]


def test_output_file(call: Any) -> None:
    status, out, _ = call("validate-config", "--speculative-config", NGRAM, "--format", "json", "--output", "o.json")
    assert (status, out) == (0, "")
    assert json.loads(Path("o.json").read_text())["valid"] is True


def test_convert(call: Any) -> None:
    status, out, err = call("convert", write("f.yaml", "# why\n" + GOOD), "--to", "vllm")
    assert (status, err) == (0, "")
    assert json.loads(out) == {
        "method": "ngram",
        "num_speculative_tokens": 4,
        "prompt_lookup_min": 1,
        "prompt_lookup_max": 4,
    }
    status, out, _ = call("convert", "f.yaml", "--to", "trtllm", "--to-release", "1.2.1")
    assert (status, out.startswith("# why\n")) == (0, True)
    status, out, err = call(
        "convert",
        "--speculative-config",
        '{"method":"medusa","model":"m","num_speculative_tokens":3}',
        "--to",
        "sglang",
    )
    assert (status, out) == (1, "")
    assert "SPC401" in err
    status, out, err = call("convert", "--speculative-config", NGRAM, "--to", "trtllm")
    assert status == 0
    assert "is_public_pool: false" in out
    assert "lower bound" in err


def test_explain(call: Any) -> None:
    assert "SPC104" in call("explain", "spc104")[1]
    assert "SPC104" in call("explain", "value-out-of-range")[1]
    assert "acceptance rate" in call("explain", "metrics")[1]


@pytest.mark.parametrize(
    "code",
    [
        "import specctl",
        "from specctl.cli.main import run; run(['--help'])",
        "from specctl.cli.main import run; run(['validate-config', '--spec-method', 'ngram', '--spec-tokens', '3'])",
    ],
)
def test_nothing_heavy_is_loaded(code: str) -> None:
    heavy = ["torch", "transformers", "numpy", "fastapi", "jsonschema", "pydantic"]
    check = f"{code}\nimport sys; print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert done.stderr.strip().splitlines()[-1] == "[]"
