"""Log probabilities of tokens as plain decoding has them: of the target's own logits, before any adjustment,
temperature or filter (vLLM's ``raw_logprobs``).
"""

from __future__ import annotations

from collections.abc import Sequence as Many

import torch
from torch import Tensor

from specctl.runtime.request import TokenLogprobs
from specctl.runtime.sequence import Sequence


def token_logprobs(logits: Tensor, tokens: Many[int], num_top: int) -> list[TokenLogprobs]:
    """For each row of ``logits`` [n, vocab] that of its token, and the ``num_top`` most likely ones, best first.

    In float32, or float64 where the model is.
    """
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(dim=-1)
    chosen = torch.tensor(tokens, device=wide.device).unsqueeze(-1)
    own = wide.gather(-1, chosen)
    ranks = ((wide > own).sum(dim=-1) + 1).tolist()
    values, ids = wide.topk(min(num_top, wide.shape[-1]), dim=-1)
    tops = zip(ids.tolist(), values.tolist(), strict=True)
    return [
        TokenLogprobs(token, float(value), rank, tuple(zip(top_ids, top_values, strict=True)))
        for token, value, rank, (top_ids, top_values) in zip(tokens, own[:, 0].tolist(), ranks, tops, strict=True)
    ]


def output_logprobs(sequence: Sequence, logits: Tensor, taken: list[int]) -> list[TokenLogprobs] | None:
    """Those of the new tokens ``taken``, which the rows of ``logits`` gave, where the request wants them."""
    wanted = sequence.request.sampling.logprobs
    return None if wanted is None else token_logprobs(logits[: len(taken)], taken, wanted)


def score_prompt(sequence: Sequence, begun: int, logits: Tensor) -> None:
    """Note those of the prompt's tokens behind the rows of a chunk, which begins at token ``begun``, where the request
    wants them.
    """
    wanted = sequence.request.sampling.prompt_logprobs
    if wanted is None or sequence.num_output:
        return
    behind = sequence.request.prompt_token_ids[begun + 1 : begun + 1 + len(logits)]
    if begun == 0:
        sequence.prompt_logprobs.append(None)
    sequence.prompt_logprobs += token_logprobs(logits[: len(behind)], behind, wanted)
