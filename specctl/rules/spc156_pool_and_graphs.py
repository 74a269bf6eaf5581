# ruff: noqa: E501 (examples stand on one line)
"""A size beside the setting contradicts another one.

Bad:

    trtllm@1.4.0rc0: speculative_config: {decoding_type: SA, max_draft_len: 4, enable_global_pool: true, global_pool_size: 64}

Good:

    trtllm@1.4.0rc0: {max_batch_size: 32, speculative_config: {decoding_type: SA, max_draft_len: 4, enable_global_pool: true, global_pool_size: 64}}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading
from specctl.dialects.trtllm_line import is_new

ENGINES = ("trtllm",)
POOL = "global_pool_size"


def check(reading: Reading) -> Iterator[Finding]:
    """The pool of SA, the block of DSpark, the sizes of CUDA graphs."""
    pool, batch = reading.get(POOL), reading.around.args.get("max_batch_size", 2048)
    if pool is not None and isinstance(batch, int):
        if not reading.get("enable_global_pool"):
            yield Finding(
                "SPC156",
                f"{POOL} needs enable_global_pool",
                reading.route(POOL),
                at_key=True,
                help="add enable_global_pool: true",
            )
        elif pool < batch:
            yield Finding(
                "SPC156",
                f"{POOL} {pool} is below max_batch_size {batch}",
                reading.route(POOL),
                help=f"write {POOL}: {batch}, or lower max_batch_size",
            )
    block, length = reading.get("block_size"), reading.effective.get("max_draft_len")
    if block is not None and length is not None and block != length:
        yield Finding(
            "SPC156",
            f"block_size {block} must equal max_draft_len {length}",
            reading.route("block_size"),
            help="leave it out",
        )
    yield from _graphs(reading)


def _graphs(reading: Reading) -> Iterator[Finding]:
    graphs = reading.around.args.get("cuda_graph_config")
    if not isinstance(graphs, dict):
        return
    sizes, limit = graphs.get("batch_sizes"), graphs.get("max_batch_size")
    if not isinstance(sizes, list) or not isinstance(limit, int) or not all(isinstance(size, int) for size in sizes):
        return
    wanted = _generated(limit, bool(graphs.get("enable_padding")))
    fits = max(sizes, default=limit) == limit if is_new(reading.release) else sorted(sizes) == wanted or not sizes
    if not fits:
        yield Finding(
            "SPC156",
            f"cuda_graph_config: batch_sizes {sizes} and max_batch_size {limit} disagree",
            ("cuda_graph_config", "batch_sizes"),
            help="keep one of them",
        )


def _generated(limit: int, padding: bool) -> list[int]:
    """The list of sizes that 1.2.1 makes out of a largest one."""
    sizes = [1, 2, 4] + [number * 8 for number in range(1, 17)] if padding else [*range(1, 32), 32, 64, 128]
    sizes = [size for size in sizes if size <= limit]
    return sizes if limit in sizes else [*sizes, limit]
