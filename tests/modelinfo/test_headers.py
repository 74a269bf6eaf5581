"""Headers of weight files: what they say, and how damage is named without reading a weight."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from specctl.cli.main import run
from specctl.modelinfo import ModelFacts, ModelProblem, read_facts
from specctl.modelinfo.damage import damage_of
from specctl.modelinfo.gguf import BadHeader, read_header
from specctl.modelinfo.tokens import token_table
from specctl.rules.checker import check

CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 4}


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def pair(name: str, value: Any) -> bytes:
    head = text(name)
    if isinstance(value, str):
        return head + struct.pack("<I", 8) + text(value)
    if isinstance(value, float):
        return head + struct.pack("<If", 6, value)
    if isinstance(value, int):
        return head + struct.pack("<II", 4, value)
    if isinstance(value[0], str):
        return head + struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(text, value))
    return head + struct.pack("<IIQ", 9, 5, len(value)) + struct.pack(f"<{len(value)}i", *value)


def gguf(path: Path, *, cut: int = 0, version: int = 3, tokens: tuple[str, ...] = ("a", "b", "c", "<s>")) -> Path:
    pairs = {
        "general.architecture": "llama",
        "llama.block_count": 2,
        "llama.embedding_length": 8,
        "llama.attention.head_count": 2,
        "llama.context_length": 64,
        "llama.rope.freq_base": 10000.0,
        "tokenizer.ggml.tokens": list(tokens),
        "tokenizer.ggml.token_type": [1] * (len(tokens) - 1) + [3],
    }
    data = b"GGUF" + struct.pack("<IQQ", version, 1, len(pairs)) + b"".join(pair(*each) for each in pairs.items())
    data += text("token_embd.weight") + struct.pack("<IQQIQ", 2, 8, len(tokens), 0, 0)
    data += b"\0" * (-len(data) % 32) + b"\0" * 4 * 8 * len(tokens)
    path.write_bytes(data[: len(data) - cut])
    return path


def test_a_gguf_header_reads_as_a_config(tmp_path: Path) -> None:
    header = read_header(gguf(tmp_path / "m.gguf"))
    assert header.config == {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 8,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "max_position_embeddings": 64,
        "rope_theta": 10000.0,
        "vocab_size": 4,
        "tie_word_embeddings": True,
    }
    assert (header.shapes, header.missing) == ({"token_embd.weight": (4, 8)}, 0)
    table = token_table(tmp_path / "m.gguf")
    assert table is not None
    assert (table.ordinary, table.added) == ({0: "a", 1: "b", 2: "c"}, {3: "<s>"})


def test_rules_about_models_read_gguf_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    gguf(tmp_path / "target.gguf")
    gguf(tmp_path / "draft.gguf", tokens=("a", "x", "c", "d", "<s>"))
    report = check(
        {"model": "./draft.gguf", "num_speculative_tokens": 3}, engine="vllm", form="json", target="./target.gguf"
    )
    assert {"SPC203", "SPC218"} <= {each.code for each in report.diagnostics}
    assert "SPC203" not in {each.code for each in report.skipped}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cut": 10}, "10 bytes more than the file has"),
        ({"cut": 300}, "ends inside its header"),
        ({"version": 9}, "version is 9"),
    ],
)
def test_a_damaged_gguf_file(
    tmp_path: Path, change: dict[str, int], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = gguf(tmp_path / "m.gguf", **change)  # type: ignore[arg-type]
    assert run(["validate-config", "--target", str(path), "--spec-method", "ngram", "--spec-tokens", "3"]) == 3
    assert said in capsys.readouterr().out


def test_any_bytes_behind_the_magic(tmp_path: Path) -> None:
    whole = gguf(tmp_path / "m.gguf").read_bytes()
    for at in range(0, len(whole), 3):
        path = tmp_path / f"{at}.gguf"
        path.write_bytes(whole[:at] + b"\xff" * 8 + whole[at + 8 :])
        assert _answer(path) is not None


def _answer(path: Path) -> object:
    """A header or a named fault; anything else that is raised ends the test."""
    try:
        return read_header(path)
    except BadHeader as error:
        return str(error) or None


def safetensors(path: Path, *, missing: int = 0) -> None:
    header = json.dumps({"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * (16 - missing))


def folder(path: Path) -> Path:
    path.mkdir()
    (path / "config.json").write_text(json.dumps(CONFIG))
    return path


def test_whole_safetensors(tmp_path: Path) -> None:
    place = folder(tmp_path / "m")
    assert damage_of(place) is None
    safetensors(place / "model.safetensors")
    damage_of.cache_clear()
    assert damage_of(place) is None


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, "5 bytes more than the file has"),
        (b"", "is cut off"),
        (b"\xff" * 40, "has no safetensors header"),
        (struct.pack("<Q", 4) + b"{{{{", "no readable safetensors header"),
        (struct.pack("<Q", 2) + b"[]", "no readable safetensors header"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "pointer of Git LFS"),
    ],
)
def test_damaged_safetensors(tmp_path: Path, data: bytes | None, said: str) -> None:
    place = folder(tmp_path / "m")
    safetensors(place / "model.safetensors", missing=5)
    if data is not None:
        (place / "model.safetensors").write_bytes(data)
    report = check({"method": "ngram", "num_speculative_tokens": 3}, engine="vllm", target=place)
    found = [each for each in report.diagnostics if each.code == "SPC201"]
    assert said in found[0].message
    assert report.exit_code() == 3


def test_a_missing_shard(tmp_path: Path) -> None:
    place = folder(tmp_path / "m")
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (place / "model.safetensors.index.json").write_text(json.dumps(index))
    assert damage_of(place) is None
    safetensors(place / "model-1.safetensors")
    damage_of.cache_clear()
    assert "model-2.safetensors, which is not there" in (damage_of(place) or "")


def test_facts_and_problems(tmp_path: Path) -> None:
    assert isinstance(read_facts(str(gguf(tmp_path / "m.gguf"))), ModelFacts)
    (tmp_path / "n.gguf").write_bytes(b"hello")
    found = read_facts(str(tmp_path / "n.gguf"))
    assert isinstance(found, ModelProblem)
    assert found.kind == "damaged"
