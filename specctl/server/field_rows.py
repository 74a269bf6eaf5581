"""The request fields: which there are, how each is read, and which values of an unsupported one ask for nothing.

One row a field. A field that becomes supported moves from `NEUTRAL` to a `Field` row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specctl.server.fields import (
    Field,
    at_least,
    boolean,
    integer,
    logit_bias,
    mapping,
    number,
    some_token_ids,
    stop_strings,
    stop_token_ids,
    text,
    texts,
    token_ids,
    top_k,
)
from specctl.server.messages import messages, prompts

MAX_CHOICES = 128  # OpenAI's limit for n
MAX_LOGPROBS = 20  # OpenAI's for chat, vLLM's for both


def _any(name: str, value: Any) -> Any:
    """A value that another module reads (`formats`, `tools`)."""
    del name
    return value


SAMPLING: Mapping[str, Field] = {
    # OpenAI's default, not greedy: a client that leaves it out means this one.
    "temperature": Field(number, 1.0),
    "top_p": Field(number, 1.0),
    "top_k": Field(top_k, 0),
    "min_p": Field(number, 0.0),
    "seed": Field(integer),
    "stop": Field(stop_strings, ()),
    "stop_token_ids": Field(stop_token_ids, ()),
    "ignore_eos": Field(boolean, False),
    "min_tokens": Field(at_least(0), 0),
    "presence_penalty": Field(number, 0.0),
    "frequency_penalty": Field(number, 0.0),
    "repetition_penalty": Field(number, 1.0),
    "logit_bias": Field(logit_bias, ()),
    "allowed_token_ids": Field(some_token_ids, ()),
    "include_stop_str_in_output": Field(boolean, False),
    "skip_special_tokens": Field(boolean, True),
    "prompt_logprobs": Field(at_least(0, MAX_LOGPROBS)),
}

FORMATS: Mapping[str, Field] = {
    "response_format": Field(mapping),
    "structured_outputs": Field(mapping),
    "guided_json": Field(_any),
    "guided_regex": Field(text),
    "guided_choice": Field(texts),
    "guided_grammar": Field(text),
}

COMMON: Mapping[str, Field] = {
    **SAMPLING,
    **FORMATS,
    "model": Field(text),
    "n": Field(at_least(1, MAX_CHOICES), 1),
    "stream": Field(boolean, False),
    "stream_options": Field(mapping),
    "return_token_ids": Field(boolean, False),
    "return_tokens_as_token_ids": Field(boolean, False),
    "truncate_prompt_tokens": Field(at_least(1)),
    "bad_words": Field(texts, ()),
    # Names that a client gives for its own book-keeping; they never change an answer.
    "user": Field(text),
    "safety_identifier": Field(text),
    "prompt_cache_key": Field(text),
}

CHAT: Mapping[str, Field] = {
    **COMMON,
    "messages": Field(messages),
    "max_tokens": Field(at_least(1)),
    "max_completion_tokens": Field(at_least(1)),
    "logprobs": Field(boolean, False),
    "top_logprobs": Field(at_least(0, MAX_LOGPROBS)),
    "tools": Field(_any),
    "tool_choice": Field(_any),
    "parallel_tool_calls": Field(boolean, True),
}

COMPLETION: Mapping[str, Field] = {
    **COMMON,
    "prompt": Field(prompts),
    "max_tokens": Field(at_least(0)),
    "echo": Field(boolean, False),
    "logprobs": Field(at_least(0, MAX_LOGPROBS)),
    "add_special_tokens": Field(boolean, True),
}

TOKENIZE: Mapping[str, Field] = {
    "model": Field(text),
    "prompt": Field(text),
    "messages": Field(messages),
    "add_special_tokens": Field(boolean, True),
    "return_token_strs": Field(boolean, False),
}

DETOKENIZE: Mapping[str, Field] = {"model": Field(text), "tokens": Field(token_ids)}

# Not supported: each with the values that ask for nothing, which clients send as defaults. null is neutral everywhere.
NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "best_of": (1,),
    "cache_salt": (),
    "detokenize": (True,),
    "kv_transfer_params": (),
    "length_penalty": (1,),
    "logits_processors": ([],),
    "metadata": ({},),
    "priority": (0,),
    "request_id": (),
    "service_tier": ("auto", "default"),
    "spaces_between_special_tokens": (True,),
    "store": (False,),
    "use_beam_search": (False,),
}

CHAT_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    **NEUTRAL,
    "add_generation_prompt": (True,),
    "add_special_tokens": (False,),
    "audio": (),
    "chat_template": (),
    "chat_template_kwargs": ({},),
    "continue_final_message": (False,),
    "documents": ([],),
    "echo": (False,),
    "function_call": ("none", "auto"),
    "functions": ([],),
    "include_reasoning": (True, False),
    "mm_processor_kwargs": ({},),
    "modalities": (["text"],),
    "prediction": (),
    "reasoning_effort": ("none",),
    "verbosity": (),
    "web_search_options": (),
}

COMPLETION_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    **NEUTRAL,
    "prompt_embeds": (),
    "suffix": ("",),
    "top_logprobs": (0,),
}

TOKENIZE_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "add_generation_prompt": (True,),
    "continue_final_message": (False,),
}
