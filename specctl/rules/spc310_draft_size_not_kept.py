"""A head is told to run on one GPU beside a target on several: vLLM takes it, but releases differ in whether they
keep to it.

Several releases ran the head with the target's tensor-parallel size all the same. Plan memory and speed for both, or
leave the key out, which means the target's size everywhere.

args: {"tensor_parallel_size": 4}

Bad:

    vllm: {"method": "eagle3", "model": "org/head", "num_speculative_tokens": 3, "draft_tensor_parallel_size": 1}

Good:

    vllm: {"method": "eagle3", "model": "org/head", "num_speculative_tokens": 3}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading
from specctl.dialects.vllm import MODEL_FREE

ENGINES = ("vllm",)
SEVERITY = "warning"
KEY = "draft_tensor_parallel_size"


def check(reading: Reading) -> Iterator[Finding]:
    """Heads only: SPC302 looks at plain draft models and at sizes that vLLM refuses."""
    size, method = reading.around.args.get("tensor_parallel_size"), reading.notes.get("method")
    if reading.off or method in MODEL_FREE or method == "draft_model" or reading.get(KEY) != 1:
        return
    if isinstance(size, int) and size > 1:
        yield Finding(
            "SPC310",
            f"{KEY} is 1 beside a target on {size}; several releases ran the head on {size} all the same",
            reading.route(KEY),
            help=f"leave it out, which means {size}, or measure that the head stays on one",
        )
