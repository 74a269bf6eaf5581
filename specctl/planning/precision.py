"""Bits a weight and bytes a cached element, by the names that engines and checkpoints use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from specctl.errors import UsageError
from specctl.modelinfo import ModelFacts
from specctl.planning.shape import Parts

DTYPES: dict[str, float] = {
    "bfloat16": 16, "bf16": 16, "float16": 16, "fp16": 16, "half": 16, "float32": 32, "fp32": 32, "float": 32,
}  # fmt: skip
# Four-bit formats carry a scale of 8 bits for 16 (NVFP4) or 32 (MXFP4) weights, of 16 bits for 128 (AWQ, GPTQ).
QUANTIZATIONS: dict[str, float] = {
    "fp8": 8, "int8": 8, "nvfp4": 4.5, "mxfp4": 4.25, "awq": 4.125, "gptq": 4.125, "int4": 4.125,
}  # fmt: skip
KV_DTYPES: dict[str, float] = DTYPES | {
    "fp8": 8, "fp8_e4m3": 8, "fp8_e5m2": 8, "int8": 8, "nvfp4": 4.5, "int4": 4.125,
}  # fmt: skip
PART_WORDS = {"attention": ("self_attn", "linear_attn"), "mlp": ("mlp",), "experts": ("experts",), "head": ("lm_head",)}


@dataclass(frozen=True)
class Precision:
    """Bits a weight, by kind of weight, and what to say of it."""

    name: str
    embedding: float = 16
    head: float = 16
    attention: float = 16
    mlp: float = 16
    experts: float = 16
    other: float = 16
    lookup: float = 16
    note: str = ""

    def size(self, parts: Parts) -> float:
        """Bytes of `parts`."""
        kinds = ("embedding", "head", "attention", "mlp", "experts", "other", "lookup")
        return float(sum(getattr(parts, kind) * getattr(self, kind) for kind in kinds) / 8)

    def scaled(self, factor: float) -> Precision:
        """Every kind of weight by a factor, for a checkpoint whose true size is known."""
        kinds = ("embedding", "head", "attention", "mlp", "experts", "other", "lookup")
        return replace(self, **{kind: getattr(self, kind) * factor for kind in kinds})

    def with_bits(self, bits: Mapping[str, float]) -> Precision:
        """Other bits for some kinds of weight."""
        return replace(self, **dict[str, Any](bits))

    @property
    def eight_bit_arithmetic(self) -> bool:
        """Whether the products run on 8-bit units (weights and activations in FP8 or NVFP4)."""
        return self.name in ("fp8", "nvfp4")


def _all(name: str, bits: float, note: str = "") -> Precision:
    return Precision(name, bits, bits, bits, bits, bits, bits, bits, note)


def _linear(name: str, bits: float, plain: float = 16, note: str = "") -> Precision:
    return Precision(name, plain, plain, bits, bits, bits, plain, plain, note)


def known_dtype(flag: str, name: str, table: Mapping[str, float]) -> str:
    """`name` in its plain form; raises `UsageError` that lists the table."""
    key = name.lower().removeprefix("torch.")
    if key not in table:
        raise UsageError(f"{flag} {name!r} is not known", help=f"one of {', '.join(table)}")
    return key


def precision_of(facts: ModelFacts, dtype: str | None = None, quantization: str | None = None) -> Precision:
    """How a checkpoint's weights are kept: as asked, else as its config declares. Raises `UsageError` for a name that
    is not known.
    """
    plain = DTYPES[known_dtype("--dtype", dtype, DTYPES)] if dtype and dtype != "auto" else None
    declared = _declared(facts)
    if quantization is not None and quantization != "none":
        name = known_dtype("--quantization", quantization, QUANTIZATIONS)
        if declared is not None and declared.name == name:
            return declared
        return _asked(name)
    if plain is not None or quantization == "none":
        bits = plain or 16
        return _all(f"{bits:g}-bit floats", bits)
    if declared is not None:
        return declared
    bits = DTYPES.get(str(facts.dtype or "bfloat16").removeprefix("torch."), 16)
    return _all(f"{bits:g}-bit floats", bits)


def _asked(name: str) -> Precision:
    bits = QUANTIZATIONS[name]
    if bits == 8:
        return _all(
            name, bits, f"{name}: one byte for every weight; embedding and head left in 16 bits would add to it"
        )
    return _linear(name, bits, note=f"{name}: {bits:g} bits for the linear layers, embedding and head in 16 bits")


def _declared(facts: ModelFacts) -> Precision | None:
    found = facts.text.get("quantization_config") or facts.config.get("quantization_config")
    if not isinstance(found, Mapping):
        return None
    method = str(found.get("quant_method") or "").lower()
    if method == "mxfp4":
        return Precision("mxfp4", experts=4.25, note="mxfp4: 4.25 bits for the experts, everything else in 16 bits")
    if isinstance(found.get("config_groups"), Mapping):
        return _of_groups(found, facts)
    bits = found.get("bits") or found.get("w_bit") or {"fp8": 8, "fbgemm_fp8": 8}.get(method)
    if method == "bitsandbytes":
        bits = 4 if found.get("load_in_4bit") else 8
    if not isinstance(bits, int):
        return None
    group = found.get("group_size")
    scale = 16 / group if bits < 8 and isinstance(group, int) and group > 0 else 0
    return _linear(
        "fp8" if bits == 8 and "fp8" in method else method,
        bits + scale,
        note=f"{method} of the checkpoint: {bits + scale:g} bits for the linear layers, embedding and head in 16 bits",
    )


def _of_groups(found: Mapping[str, Any], facts: ModelFacts) -> Precision:
    """compressed-tensors and ModelOpt: groups of targets, and what is left out."""
    algorithm = str(found.get("quant_algo") or found.get("format") or found.get("quant_method")).lower()
    name = next((each for each in ("nvfp4", "mxfp4", "fp8") if each in algorithm), algorithm)
    result = Precision(name)
    for group in found["config_groups"].values():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if not isinstance(weights, Mapping) or not isinstance(weights.get("num_bits"), int):
            continue
        bits = weights["num_bits"]
        each = weights.get("group_size") if bits < 8 else None
        scale = (8 if weights.get("type") == "float" else 16) / each if isinstance(each, int) and each else 0.0
        targets = [str(target) for target in group.get("targets") or ()]
        chosen = {
            part: bits + scale
            for part, words in PART_WORDS.items()
            if "Linear" in targets or any(word in target for target in targets for word in words)
        }
        result = result.with_bits(chosen)
    left_out = {part: 16.0 for part in PART_WORDS if _left_out(part, found.get("ignore"), facts)}
    kept = ", ".join(sorted(left_out)) or "nothing"
    note = f"{name} of the checkpoint, {kept} left in 16 bits"
    return replace(result.with_bits(left_out), note=note)


def _left_out(part: str, ignore: Any, facts: ModelFacts) -> bool:
    """Whether an ignore list spares a part: by a pattern, or in at least half of the layers one by one."""
    listed = [str(each) for each in ignore] if isinstance(ignore, list) else []
    words = {"attention": ("self_attn",), "mlp": ("shared_experts", ".mlp", "mlp."), "head": ("lm_head",)}
    hits = [each for each in listed if any(word in each for word in words.get(part, ("mlp.experts",)))]
    whole = any(each.startswith("re:") or "layers." not in each for each in hits)
    return bool(hits) and (whole or len(hits) * 2 >= (facts.num_layers or 1))


def kv_bits(facts: ModelFacts, kv_dtype: str | None) -> tuple[float, str]:
    """Bits of a cached element and what it is called: as asked, else the checkpoint's scheme, else its dtype."""
    if kv_dtype is not None and kv_dtype != "auto":
        name = known_dtype("--kv-dtype", kv_dtype, KV_DTYPES)
        return KV_DTYPES[name], name
    found = facts.text.get("quantization_config") or facts.config.get("quantization_config")
    scheme = found.get("kv_cache_scheme") if isinstance(found, Mapping) else None
    if isinstance(scheme, Mapping) and scheme.get("num_bits") == 8:
        return 8, "fp8 (the checkpoint's kv_cache_scheme)"
    name = str(facts.dtype or "bfloat16").removeprefix("torch.")
    bits = DTYPES.get(name, 16)
    return bits, name if name in DTYPES else "bfloat16"
