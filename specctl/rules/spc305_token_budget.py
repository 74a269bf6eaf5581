"""The token budget of a step is too small for speculation.

args: {"enable_lora": true, "max_num_batched_tokens": 512, "max_num_seqs": 256}

Bad:

    vllm: {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 2, "prompt_lookup_max": 4}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

ENGINES = ("vllm",)


def check(reading: Reading) -> Iterator[Finding]:
    """With LoRA every sequence needs k + 1 tokens; without, the extra slots of one request must fit."""
    args, count = reading.around.args, reading.effective.get("num_speculative_tokens")
    budget = args.get("max_num_batched_tokens")
    if count is None or not isinstance(budget, int):
        return
    sequences = args.get("max_num_seqs")
    if args.get("enable_lora") and isinstance(sequences, int) and budget < sequences * (count + 1):
        yield Finding(
            "SPC305",
            f"max_num_batched_tokens {budget} is below max_num_seqs x (k + 1) = {sequences * (count + 1)}, "
            "which LoRA needs",
            reading.route("num_speculative_tokens"),
            help=f"raise it to {sequences * (count + 1)} or lower max_num_seqs",
        )
    slots = reading.effective.get("extra_slots_per_request") or 0
    if budget <= slots:
        yield Finding(
            "SPC305",
            f"max_num_batched_tokens {budget} leaves no room beside {slots} draft slots of one request",
            reading.route("num_speculative_tokens"),
            help="raise max_num_batched_tokens",
        )
