"""The draft's tensor-parallel size does not go with the target's.

vLLM takes 1 or the target's own size. A plain draft model must use the target's size; the worker refuses 1.

args: {"tensor_parallel_size": 4}

Bad:

    vllm: {"model": "org/draft", "num_speculative_tokens": 3, "draft_tensor_parallel_size": 2}

Good:

    vllm: {"model": "org/draft", "num_speculative_tokens": 3, "draft_tensor_parallel_size": 4}
"""

from collections.abc import Iterator

from specctl.dialects.reading import FAILS, Finding, Reading
from specctl.dialects.vllm import MODEL_FREE

ENGINES = ("vllm",)
KEY = "draft_tensor_parallel_size"


def check(reading: Reading) -> Iterator[Finding]:
    """1 or the target's size; 1 below a larger one only for heads."""
    wanted, method = reading.get(KEY), reading.notes.get("method")
    if reading.given("tensor_parallel_size") and not reading.off:
        yield Finding(
            "SPC302",
            "tensor_parallel_size is no key here; the draft's size is draft_tensor_parallel_size",
            reading.route("tensor_parallel_size"),
            at_key=True,
            help=f"write {KEY}",
        )
    size = reading.around.args.get("tensor_parallel_size") or 1
    if wanted is None or reading.off or method in MODEL_FREE or not isinstance(size, int):
        return
    if wanted not in (1, size):
        yield Finding(
            "SPC302",
            f"{KEY} is {wanted}; 1 or the target's {size} was wanted",
            reading.route(KEY),
            help=f"write {size}, or leave it out",
        )
    elif wanted != size and method == "draft_model":
        yield Finding(
            "SPC302",
            f"a plain draft model must use the target's tensor-parallel size {size}, not {wanted}",
            reading.route(KEY),
            help="leave it out",
            stage=FAILS,
        )
