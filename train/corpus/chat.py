"""The chat template, and the few lines of small talk that a demo model should answer."""

from __future__ import annotations

from random import Random

from train.corpus.words import Example, person, say

START, END, PAD = "<|im_start|>", "<|im_end|>", "<|endoftext|>"

TEMPLATE = (
    "{%- for message in messages -%}{{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + "
    "'<|im_end|>\\n' -}}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"
)

Message = dict[str, str]


def opening(messages: list[Message]) -> str:
    """The text in front of the answer, exactly as the template renders it."""
    body = "".join(f"{START}{m['role']}\n{m['content']}{END}\n" for m in messages)
    return f"{body}{START}assistant\n"


def small_talk(rng: Random) -> Example:
    """Greetings and questions about the model itself."""
    who = person(rng)
    ask, answer = rng.choice(
        (
            (
                "{Hello|Hi|Good morning|Hey}{!|.|}",
                "Hello! {Ask me for|I can help with} code, a small sum, a summary or a story.",
            ),
            (
                "{Hi|Hello}, {I am|my name is} {who}{.|!}",
                "Hello, {who}! {What shall we write|What can I do for you} today?",
            ),
            (
                "{Who are you|What are you|What can you do}?",
                "I am a small demo model. I write short code, sums, summaries and stories.",
            ),
            ("{Thanks|Thank you|Many thanks}{!|.|}", "You are welcome{!|.}"),
        )
    )
    return Example("talk", "talk", say(rng, ask, who=who), say(rng, answer, who=who))
