"""UNO's requirements are not met.

UNO drafts with the target itself through a LoRA adapter, on CUDA with FA3 attention, without any parallelism.

Bad:

    sglang: --speculative-algorithm UNO --speculative-num-draft-tokens 4

Good:

    sglang: --speculative-algorithm UNO --uno-lora-path adapter --speculative-num-draft-tokens 4
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading
from specctl.dialects.sglang_resolve import attention_dp

ENGINES = ("sglang",)
STEPS, TOPK, WIDTH = "speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens"


def check(reading: Reading) -> Iterator[Finding]:
    """The first fault is the one SGLang names."""
    if reading.notes.get("algorithm") != "UNO":
        return
    fault = _fault(reading) or _tree(reading) or _surroundings(reading)
    if fault:
        message, help_text = fault
        yield Finding("SPC133", f"UNO {message}", reading.route("speculative_algorithm"), help=help_text)


def _fault(reading: Reading) -> tuple[str, str] | None:
    width = reading.get(WIDTH)
    if reading.notes["device"] != "cuda" or (reading.around.platform or "").lower().startswith("mi"):
        return "runs with FA3 attention on NVIDIA GPUs only", "use another algorithm on this platform"
    if reading.given("speculative_draft_model_path"):
        return "drafts with the target itself and takes no draft", "leave out --speculative-draft-model-path"
    if not reading.given("uno_lora_path"):
        return "needs its adapter", "add --uno-lora-path FOLDER"
    if width is None or width < 1:
        return "needs a positive number of draft tokens", "add --speculative-num-draft-tokens 4"
    if (reading.get(TOPK) or 1) < 1:
        return "needs topk of at least 1", "write --speculative-eagle-topk 1"
    return None


def _tree(reading: Reading) -> tuple[str, str] | None:
    topk, steps, width = reading.get(TOPK) or 1, reading.get(STEPS), reading.get(WIDTH)
    if topk <= 1:
        return None
    if steps is None or steps < 1:
        return "as a tree needs its number of steps", "add --speculative-num-steps 4"
    capacity = sum(topk**depth for depth in range(min(steps, 12) + 1))
    limit = min(128, 2048 // topk, capacity, topk * (steps - 1) + 2)
    if width < steps + 1:
        return f"as a tree verifies at least steps + 1 = {steps + 1} nodes, not {width}", f"write {steps + 1} or more"
    if width > limit:
        return f"as a tree of {steps} steps and topk {topk} holds {limit} nodes, not {width}", f"write {limit} or less"
    thresholds = (
        reading.get("speculative_accept_threshold_single", 1.0),
        reading.get("speculative_accept_threshold_acc", 1.0),
    )
    return ("as a tree needs both accept thresholds at 1.0", "leave them out") if thresholds != (1.0, 1.0) else None


def _surroundings(reading: Reading) -> tuple[str, str] | None:
    args = reading.around.args
    if (
        (args.get("tp_size") or 1, args.get("pp_size") or 1) != (1, 1)
        or attention_dp(reading) > 1
        or (args.get("attn_cp_size") or 1) > 1
    ):
        return "runs without any parallelism", "leave out --tp-size, --pp-size and attention DP"
    for key in ("enable_lora", "lora_paths", "enable_deterministic_inference", "enable_strict_thinking"):
        if args.get(key):
            return f"does not go with --{key.replace('_', '-')}", "leave it out"
    if reading.get("speculative_use_rejection_sampling"):
        return "verifies in its own way", "leave out --speculative-use-rejection-sampling"
    used = (
        args.get("prefill_attention_backend") or reading.effective["attention_backend"],
        args.get("decode_attention_backend") or reading.effective["attention_backend"],
    )
    return (
        ("needs FA3 attention for prefill and decode", "add --attention-backend fa3")
        if used != ("fa3", "fa3")
        else None
    )
