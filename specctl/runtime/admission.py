"""From a request to what the engine works on, or the reason why it cannot."""

from __future__ import annotations

from collections.abc import Sequence as Many
from functools import partial
from numbers import Integral

from specctl.errors import SpecctlError
from specctl.runtime.adjust import make_adjustment
from specctl.runtime.request import Request
from specctl.runtime.sampling import Randomness
from specctl.runtime.sequence import Sequence
from specctl.runtime.target import Target
from specctl.runtime.text import TextStream


def check_prompt(prompt: Many[int], vocab_size: int, max_model_len: int) -> None:
    """Raises SpecctlError for a prompt that a target of so many tokens and places cannot take."""
    if not isinstance(prompt, list | tuple):
        raise SpecctlError(f"the prompt is {type(prompt).__name__}; wanted a list of token ids")
    if not prompt:
        raise SpecctlError("the prompt is empty", help="give at least one token")
    if len(prompt) >= max_model_len:
        raise SpecctlError(
            f"the prompt has {len(prompt)} tokens; with max_model_len {max_model_len} it may have "
            f"{max_model_len - 1}, so that one new token fits",
            help="shorten the prompt, or raise max_model_len where the target's own context allows it",
        )
    for token in prompt:
        if not isinstance(token, Integral) or not 0 <= int(token) < vocab_size:
            raise SpecctlError(f"token id {token!r} is not in the target's vocabulary of {vocab_size}")


def make_sequence(request: Request, target: Target, randomness: Randomness) -> Sequence:
    """A sequence that has not begun. Raises SpecctlError for sampling options that the target cannot follow."""
    prompt, sampling = list(request.prompt_token_ids), request.sampling
    decode = partial(target.decode, skip_special_tokens=sampling.skip_special_tokens)
    text = TextStream(decode, sampling.stop, sampling.include_stop)
    grammar = target.grammars.start(sampling.grammar) if sampling.grammar else None
    adjustment = make_adjustment(
        sampling, prompt, target.eos_token_ids, target.vocab_size, target.model.device, grammar
    )
    return Sequence(request, prompt, randomness, text, adjustment, grammar)
