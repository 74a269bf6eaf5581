"""The header of a GGUF file: its metadata as a config.json would say it, its tokens, its tensors. No weight is read.

Layout (GGUF versions 2 and 3): magic, version, two counts, then the metadata (name, type, value), then of each tensor
name, dimensions, type and offset; the data begins at the next multiple of `general.alignment`."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

MAX_HEADER = 256 << 20
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9
# ggml type -> values in a block, bytes of a block.
_BLOCKS = {
    0: (1, 4),
    1: (1, 2),
    2: (32, 18),
    3: (32, 20),
    6: (32, 22),
    7: (32, 24),
    8: (32, 34),
    9: (32, 36),
    10: (256, 84),
    11: (256, 110),
    12: (256, 144),
    13: (256, 176),
    14: (256, 210),
    15: (256, 292),
    24: (1, 1),
    25: (1, 2),
    26: (1, 4),
    27: (1, 8),
    28: (1, 8),
    30: (1, 2),
}
_CLASSES = {
    "llama": "LlamaForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "qwen2moe": "Qwen2MoeForCausalLM",
    "qwen3moe": "Qwen3MoeForCausalLM",
    "gemma2": "Gemma2ForCausalLM",
    "gemma3": "Gemma3ForCausalLM",
    "phi3": "Phi3ForCausalLM",
    "gpt-oss": "GptOssForCausalLM",
    "deepseek2": "DeepseekV2ForCausalLM",
    "mistral": "MistralForCausalLM",
}
# Name in config.json -> name below the architecture's prefix.
_KEYS = {
    "hidden_size": "embedding_length",
    "num_hidden_layers": "block_count",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "head_dim": "attention.key_length",
    "intermediate_size": "feed_forward_length",
    "max_position_embeddings": "context_length",
    "vocab_size": "vocab_size",
    "num_nextn_predict_layers": "nextn_predict_layers",
    "num_experts": "expert_count",
    "num_experts_per_tok": "expert_used_count",
    "moe_intermediate_size": "expert_feed_forward_length",
    "kv_lora_rank": "attention.kv_lora_rank",
    "q_lora_rank": "attention.q_lora_rank",
    "sliding_window": "attention.sliding_window",
    "rope_theta": "rope.freq_base",
}


class BadHeader(ValueError):
    """The file is no GGUF file, or it ends before its header does."""


@dataclass(frozen=True)
class GgufHeader:
    """`metadata` by name; `shapes` of the tensors, in torch's order; `missing`: bytes that the file lacks."""

    metadata: Mapping[str, Any]
    shapes: Mapping[str, tuple[int, ...]]
    missing: int

    @property
    def config(self) -> dict[str, Any]:
        """The metadata under the names of a config.json."""
        kind = str(self.metadata.get("general.architecture", ""))
        found: dict[str, Any] = {"model_type": kind.replace("-", "_"), "architectures": [_CLASSES.get(kind, kind)]}
        for name, key in _KEYS.items():
            value = self.metadata.get(f"{kind}.{key}")
            if value is not None and not isinstance(value, list):
                found[name] = value
        tokens = self.metadata.get("tokenizer.ggml.tokens")
        if isinstance(tokens, list):
            found.setdefault("vocab_size", len(tokens))
        if "token_embd.weight" in self.shapes:
            found["vocab_size"] = self.shapes["token_embd.weight"][0]
            found["tie_word_embeddings"] = "output.weight" not in self.shapes
        if "num_nextn_predict_layers" in found:  # llama.cpp counts them among the blocks
            found["num_hidden_layers"] = found.get("num_hidden_layers", 0) - found["num_nextn_predict_layers"]
        return found


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self, form: str) -> Any:
        (value,) = struct.unpack_from(f"<{form}", self.data, self.at)
        self.at += struct.calcsize(f"<{form}")
        return value

    def text(self) -> str:
        length = self.number("Q")
        if self.at + length > len(self.data):
            raise BadHeader("it ends inside its header")
        found = self.data[self.at : self.at + length].decode("utf-8", "replace")
        self.at += length
        return found

    def value(self, kind: int, depth: int = 0) -> Any:
        if kind == _TEXT:
            return self.text()
        if kind != _LIST:
            if kind not in _NUMBERS:
                raise BadHeader(f"its header holds a value of the unknown type {kind}")
            return self.number(_NUMBERS[kind])
        inner, count = self.number("I"), self.number("Q")
        if depth > 2 or count > len(self.data):
            raise BadHeader("its header holds a list longer than the file")
        if inner in _NUMBERS:
            form = f"<{count}{_NUMBERS[inner]}"
            found = list(struct.unpack_from(form, self.data, self.at))
            self.at += struct.calcsize(form)
            return found
        return [self.value(inner, depth + 1) for _ in range(count)]


def read_header(path: Path) -> GgufHeader:
    """The header of a file. Raises `BadHeader` where it cannot be one, OSError where the file cannot be read."""
    stat = path.stat()
    return _read(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=16)
def _read(path: Path, _stamp: int, size: int) -> GgufHeader:
    with path.open("rb") as stream:
        start = stream.read(4 << 20)
        if start[:4] != b"GGUF":
            raise BadHeader(f"it begins with {start[:4]!r}, not with b'GGUF'")
        for limit in (4 << 20, 32 << 20, MAX_HEADER):
            start += stream.read(limit - len(start))
            try:
                return _parse(start, size)
            except struct.error:
                continue
            except BadHeader:
                if len(start) >= min(size, MAX_HEADER):
                    raise
    raise BadHeader("it ends inside its header")


def _parse(data: bytes, size: int) -> GgufHeader:
    reader = _Reader(data)
    reader.at = 4
    version = reader.number("I")
    if version not in (2, 3):
        raise BadHeader(f"its version is {version}; 2 or 3 was wanted")
    tensors, pairs = reader.number("Q"), reader.number("Q")
    metadata: dict[str, Any] = {}
    for _ in range(pairs):
        name = reader.text()
        metadata[name] = reader.value(reader.number("I"))
    shapes: dict[str, tuple[int, ...]] = {}
    ends: list[int] = []
    for _ in range(tensors):
        name = reader.text()
        dimensions = [reader.number("Q") for _ in range(reader.number("I"))]
        kind, offset = reader.number("I"), reader.number("Q")
        shapes[name] = tuple(reversed(dimensions))
        ends.append(offset + _size(dimensions, kind))
    alignment = metadata.get("general.alignment", 32)
    data_at = -(-reader.at // alignment) * alignment if isinstance(alignment, int) and alignment > 0 else reader.at
    return GgufHeader(metadata, shapes, max(0, data_at + max(ends, default=0) - size))


def _size(dimensions: list[int], kind: int) -> int:
    """Bytes of a tensor; at least one where its type is not in the table."""
    values = 1
    for each in dimensions:
        values *= each
    block, bytes_of_block = _BLOCKS.get(kind, (0, 1))
    return values // block * bytes_of_block if block else bytes_of_block
