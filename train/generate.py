"""Greedy outputs in float32 through transformers, as a user would get them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from train.corpus.words import Example

NEW_TOKENS = 128


class Generator:
    """A published model folder, ready to answer."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer: Any = AutoTokenizer.from_pretrained(str(folder))
        self.model: Any = AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.float32)
        self.model.train(False)

    def prompt_ids(self, example: Example) -> list[int]:
        """The rendered prompt."""
        messages = [{"role": "user", "content": example.prompt}]
        text = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    @torch.no_grad()
    def answer(self, examples: list[Example], batch: int = 16) -> list[list[int]]:
        """Output ids of every example, with the end mark where the model set one."""
        outputs: list[list[int]] = []
        for begin in range(0, len(examples), batch):
            prompts = [self.prompt_ids(e) for e in examples[begin : begin + batch]]
            width = max(map(len, prompts))
            pad, end = self.tokenizer.pad_token_id, self.tokenizer.eos_token_id
            ids = torch.tensor([[pad] * (width - len(p)) + p for p in prompts])
            mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
            made = self.model.generate(
                ids, attention_mask=mask, max_new_tokens=NEW_TOKENS, do_sample=False, pad_token_id=pad
            )
            for row in made[:, width:].tolist():
                outputs.append(row[: row.index(end) + 1] if end in row else row)
        return outputs

    def text(self, output: list[int]) -> str:
        """Without the end mark."""
        decoded: str = self.tokenizer.decode(output, skip_special_tokens=True)
        return decoded
