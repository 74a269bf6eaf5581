# ruff: noqa: E501 (examples stand on one line)
"""A wide tree makes CUDA graphs of very many tokens.

Each captured graph holds batch size x verified nodes; large products run out of memory while capturing.

Bad:

    sglang: --speculative-algorithm EAGLE --speculative-draft-model-path org/head --speculative-num-steps 5 --speculative-eagle-topk 8 --speculative-num-draft-tokens 64

Good:

    sglang: --speculative-algorithm EAGLE --speculative-draft-model-path org/head --speculative-num-steps 5 --speculative-eagle-topk 8 --speculative-num-draft-tokens 64 --cuda-graph-max-bs-decode 32
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

ENGINES = ("sglang",)
SEVERITY = "advice"
LIMIT = 8192
DEFAULT_BATCH = 256


def check(reading: Reading) -> Iterator[Finding]:
    """Largest graph batch times width."""
    width, topk = reading.effective.get("speculative_num_draft_tokens"), reading.effective.get("speculative_eagle_topk")
    batch = reading.around.args.get("cuda_graph_max_bs_decode", DEFAULT_BATCH)
    if reading.off or width is None or topk is None or topk <= 1 or not isinstance(batch, int):
        return
    if width * batch > LIMIT:
        yield Finding(
            "SPC506",
            f"a tree of {width} nodes in graphs of {batch} requests makes {width * batch} tokens a graph",
            reading.route("speculative_num_draft_tokens"),
            help=f"add --cuda-graph-max-bs-decode {max(LIMIT // width, 1)}, or verify fewer nodes",
        )
