"""The token budget of a step leaves little room for drafts.

args: {"max_num_batched_tokens": 2048}

Bad:

    vllm: {"method": "eagle3", "model": "org/head", "num_speculative_tokens": 3}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

SEVERITY = "advice"
ENGINES = ("vllm", "trtllm")
LITTLE = 8192


def check(reading: Reading) -> Iterator[Finding]:
    """vLLM: an explicit budget below 8192; TensorRT-LLM: fewer tokens than all requests verify at once."""
    args = reading.around.args
    if reading.off:
        return
    if reading.engine == "vllm":
        budget = args.get("max_num_batched_tokens")
        if isinstance(budget, int) and budget < LITTLE:
            yield Finding(
                "SPC505",
                f"max_num_batched_tokens is {budget}; part of it goes to drafts",
                reading.route("max_num_batched_tokens"),
                help=f"raise it to {LITTLE}",
            )
        return
    budget, batch = args.get("max_num_tokens"), args.get("max_batch_size")
    length = reading.effective.get("max_total_draft_tokens")
    if isinstance(budget, int) and isinstance(batch, int) and isinstance(length, int) and budget < batch * (1 + length):
        yield Finding(
            "SPC505",
            f"max_num_tokens {budget} is below max_batch_size x (1 + draft length) = {batch * (1 + length)}",
            help=f"raise it, or lower max_batch_size to {max(budget // (1 + length), 1)}",
        )
