"""How model families name their prediction layers and draft heads."""

from __future__ import annotations

from dataclasses import dataclass

from specctl.modelinfo.facts import ModelFacts


@dataclass(frozen=True)
class MtpFamily:
    """`keys`: where the layer count stands; `default`: the count where the config says nothing (None: no layers
    then).
    """

    name: str
    architecture: str
    keys: tuple[str, ...] = ("num_nextn_predict_layers",)
    default: int | None = None
    multi_layer: bool = False


# model_type -> the family's prediction layers, as vLLM 0.31 recognises them (config/speculative.py).
MTP_FAMILIES: dict[str, MtpFamily] = {
    "deepseek_v3": MtpFamily("deepseek_mtp", "DeepSeekMTPModel", default=1),
    "deepseek_v32": MtpFamily("deepseek_mtp", "DeepSeekMTPModel", default=1),
    "glm_moe_dsa": MtpFamily("deepseek_mtp", "DeepSeekMTPModel", default=1),
    "deepseek_v4": MtpFamily("deepseek_mtp", "DeepSeekV4MTPModel", default=1),
    "pangu_ultra_moe": MtpFamily("pangu_ultra_moe_mtp", "OpenPanguMTPModel", default=1),
    "kimi_k3": MtpFamily("kimi_k3_mtp", "KimiK3MTPModel", default=1),
    "mimo": MtpFamily("mimo_mtp", "MiMoMTPModel", default=1),
    "mimo_v2": MtpFamily("mimo_v2_mtp", "MiMoV2MTPModel", default=3, multi_layer=True),
    "mimo_v2_flash": MtpFamily("mimo_v2_mtp", "MiMoV2MTPModel", default=3, multi_layer=True),
    "glm4_moe": MtpFamily("glm4_moe_mtp", "Glm4MoeMTPModel", default=1),
    "glm4_moe_lite": MtpFamily("glm4_moe_lite_mtp", "Glm4MoeLiteMTPModel", default=1),
    "glm_ocr": MtpFamily("glm_ocr_mtp", "GlmOcrMTPModel", default=1),
    "ernie4_5_moe": MtpFamily("ernie_mtp", "ErnieMTPModel", default=1),
    "nemotron_h": MtpFamily("nemotron_h_mtp", "NemotronHMTPModel"),
    "qwen3_next": MtpFamily("qwen3_next_mtp", "Qwen3NextMTP", default=1),
    "qwen4_exp": MtpFamily("qwen4_exp_mtp", "Qwen4ExpMTP", ("mtp_num_hidden_layers",), 1),
    "qwen4_exp_text": MtpFamily("qwen4_exp_mtp", "Qwen4ExpMTP", ("mtp_num_hidden_layers",), 1),
    "qwen3_5": MtpFamily("qwen3_5_mtp", "Qwen3_5MTP", ("mtp_num_hidden_layers",), 1),
    "qwen3_5_text": MtpFamily("qwen3_5_mtp", "Qwen3_5MTP", ("mtp_num_hidden_layers",), 1),
    "qwen3_5_moe": MtpFamily("qwen3_5_mtp", "Qwen3_5MoeMTP", ("mtp_num_hidden_layers",), 1),
    "qwen3_5_moe_text": MtpFamily("qwen3_5_mtp", "Qwen3_5MoeMTP", ("mtp_num_hidden_layers",), 1),
    "intern_s2_preview": MtpFamily("qwen3_5_mtp", "Qwen3_5MoeMTP", ("mtp_num_hidden_layers",), 1),
    "interns2_mobius": MtpFamily("qwen3_5_mtp", "Qwen3_5MoeMTP", ("mtp_num_hidden_layers",), 1),
    "bailing_hybrid": MtpFamily("bailing_hybrid_mtp", "BailingHybridMTP", default=1),
    "bailing_hybrid_v3": MtpFamily("bailing_hybrid_v3_mtp", "BailingHybridV3MTP", default=1),
    "exaone_moe": MtpFamily("exaone_moe_mtp", "ExaoneMoeMTP", default=1),
    "exaone4_5": MtpFamily("exaone4_5_mtp", "Exaone4_5MTP", default=1),
    "longcat_flash": MtpFamily("longcat_flash_mtp", "LongCatFlashMTPModel", default=1),
    "step3p5": MtpFamily("step3p5_mtp", "Step3p5MTP", default=1, multi_layer=True),
    "step3p7": MtpFamily("step3p5_mtp", "Step3p5MTP", default=1, multi_layer=True),
    "hy_v3": MtpFamily("hy_v3_mtp", "HYV3MTPModel", default=1),
    "hy_v4": MtpFamily("hy_v4_mtp", "HYV4MTPModel", default=1),
    "inkling": MtpFamily("inkling_mtp", "InklingMTPModel", multi_layer=True),
    "gemma4_assistant": MtpFamily("gemma4_mtp", "Gemma4MTPModel", (), 1),
    "minimax_m3": MtpFamily("minimax_m3_mtp", "MiniMaxM3MTP", ("num_mtp_modules",), 1),
    "glm5_next": MtpFamily("glm5_next_mtp", "Glm5NextMTP", default=1),
    "dots3_note": MtpFamily("dots3_note_mtp", "Dots3NoteMTP", default=1),
}
MTP_NAMES = frozenset(family.name for family in MTP_FAMILIES.values())
_BY_ARCHITECTURE = {"MiMoForCausalLM": "mimo", "MiMoV2ForCausalLM": "mimo_v2", "MiMoV2FlashForCausalLM": "mimo_v2"}


def mtp_family(facts: ModelFacts) -> MtpFamily | None:
    """The prediction-layer family of a checkpoint, or None where it has none."""
    kind = facts.model_type if facts.model_type in MTP_FAMILIES else _BY_ARCHITECTURE.get(facts.architecture, "")
    family = MTP_FAMILIES.get(kind) or MTP_FAMILIES.get(str(facts.text.get("model_type")))
    if family is None:
        return None
    return family if mtp_layers(facts, family) is not None else None


def mtp_layers(facts: ModelFacts, family: MtpFamily) -> int | None:
    """How many prediction layers the config declares; the family's default where it is silent."""
    found = facts.number(*family.keys) if family.keys else None
    if family.default is None and not found:
        return None
    return family.default if found is None else found


def is_eagle3_head(facts: ModelFacts) -> bool:
    """Whether the config describes an EAGLE-3 head, whatever its folder is called."""
    name = facts.architecture
    return (
        "Eagle3" in name
        or name.startswith("Peagle")
        or facts.speculators_type in ("eagle3", "peagle")
        or facts.config.get("draft_vocab_size") is not None
    )


def is_eagle_head(facts: ModelFacts) -> bool:
    """Whether the config describes an EAGLE head of the first generations."""
    return facts.architecture.startswith("Eagle") and not is_eagle3_head(facts)


def is_head(facts: ModelFacts) -> bool:
    """Whether the checkpoint is a draft head of any kind, not a language model of its own."""
    name = facts.architecture
    marks = ("Medusa", "DFlash", "DSpark", "MLPSpeculator", "Assistant")
    return (
        is_eagle3_head(facts) or is_eagle_head(facts) or any(mark in name for mark in marks) or bool(facts.speculators)
    )
