"""Heads that chain on their own output: EAGLE-1, EAGLE-3 and multi-token prediction.

A row takes the state at t and the embedding of token t + 1 and scores token t + 2. From the second guess on the state
is the head's own. EAGLE-3 learns that by doing it ("training-time test", arXiv 2503.01840), and so does the prediction
layer here; EAGLE-1 learns one step (arXiv 2401.15077). What each scores also learns to resemble the target's next
state: EAGLE-1's own idea, and with a million tokens instead of billions it is what teaches all three most.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from specctl.runtime.models.hidden import FINAL
from train.heads.batches import Batch
from train.heads.parts import Layer, Own, Seen, product, rms, start
from train.heads.recipe import Recipe, Teacher, falling, surprise

STEP_SHARE = 0.9
GUESS_SHARES = (0.1, 0.6)
"""The weight of guesses beside likeness of states, at the start and at the end: likeness teaches fast, guesses last."""
ANCHORS = 20
"""Places of an answer, at random, from which guesses after the first are trained; the first is trained at all."""


class Unrolled(Recipe):
    """`layer` is the head's only one; `steps`: guesses in a row that are trained."""

    layer: Layer
    steps: int

    @abstractmethod
    def enter(self, batch: Batch) -> Tensor:
        """The target's states as the head takes them [rows, T, width]."""

    @abstractmethod
    def fuse(self, embedded: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
        """The stream [..., width] and what attention reads of it."""

    @abstractmethod
    def leave(self, out: Tensor) -> tuple[Tensor, Tensor]:
        """What the vocabulary head multiplies, and the next row's state."""

    def scores(self, scored: Tensor) -> Tensor:
        """Logits [..., vocab]."""
        return product(scored, self.teacher.head)

    def wanted(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The target's logits [rows, A, vocab], and where they count."""
        return self.teacher.logits(batch), batch.known

    def loss(self, batch: Batch) -> Tensor:
        """Of each step: how far what it scores is from the target's next state, and how well it guesses."""
        wanted, known = self.wanted(batch)
        final = self.teacher.states(batch, (FINAL,))[:, batch.begin : batch.begin + batch.anchors]
        first, last = GUESS_SHARES
        guess_share = first + self.progress * (last - first)
        losses = []
        for scored, columns in self.rows(batch):
            here = known[:, columns]
            if bool(here.any()):
                apart = F.smooth_l1_loss(scored, final[:, columns], reduction="none").mean(-1)
                guess = surprise(self.scores(scored), wanted[:, columns], here)
                losses.append(apart[here].mean() + guess_share * guess)
        return falling(losses, STEP_SHARE)

    def rows(self, batch: Batch) -> list[tuple[Tensor, Tensor]]:
        """What each step scores, [rows, n, width], and the columns [n] of the labels that it should find."""
        count, first = batch.anchors, batch.begin - 1
        asking = slice(first, first + count)
        stream, entered = self.fuse(self.embedded(batch), self.enter(batch)[:, :-1])
        mixed, seen = self.layer.text(entered, batch.real[:, :-1], asking)
        scored, states = self.leave(self.layer.leave(stream[:, asking], mixed))
        found = [(scored, torch.arange(count))]
        kept = torch.randperm(count)[:ANCHORS].sort().values
        states = states[:, kept]
        own: list[tuple[Tensor, Tensor]] = []
        for step in range(1, self.steps):
            # Answers end: an anchor too near to it has nothing more to guess. Anchors are in order, so the last go.
            kept = kept[kept < count - step]
            if not len(kept):
                break
            tokens = batch.ids[:, batch.begin + step + kept]
            stream, entered = self.fuse(self._look_up(tokens), states[:, : len(kept)])
            text = Seen(seen.keys, seen.values, seen.visible[:, kept])
            mixed = self._guess(entered, first + step + kept, text, own)
            scored, states = self.leave(self.layer.leave(stream, mixed))
            found.append((scored, kept + step))
        return found

    def _guess(self, entered: Tensor, positions: Tensor, text: Seen, own: list[tuple[Tensor, Tensor]]) -> Tensor:
        """Attention of one guess an anchor, over the text up to the anchor and its guesses so far, which grow."""
        attention, count = self.layer.self_attn, entered.shape[1]
        own.append((attention.keys(entered, positions), attention.values(entered)))
        keys, values = (torch.stack([pair[side][:, :, :count] for pair in own], dim=3) for side in (0, 1))
        all_seen = torch.ones(1, len(own), dtype=torch.bool)
        queries = attention.queries(entered, positions).unsqueeze(-2)
        return attention.attend(queries, text, Own(keys, values, all_seen)).squeeze(2)

    def embedded(self, batch: Batch) -> Tensor:
        """The embedding of each row's token, the one behind its state."""
        return self._look_up(batch.ids[:, 1:])

    def _look_up(self, tokens: Tensor) -> Tensor:
        return F.embedding(tokens, self.teacher.embedding)


class EagleRecipe(Unrolled):
    """One step, with noise on the states, as published."""

    method = "eagle"
    steps = 1
    NOISE = 0.1

    def __init__(self, teacher: Teacher) -> None:
        super().__init__(teacher)
        width = teacher.sizes.width
        self.fc = nn.Linear(2 * width, width, bias=False)
        start(self)
        self.layer = Layer(teacher.sizes, input_norm=False)
        with torch.no_grad():
            self.fc.weight[:, width:] += torch.eye(width)

    def enter(self, batch: Batch) -> Tensor:
        return self.teacher.states(batch, (FINAL,))

    def fuse(self, embedded: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
        noise = self.NOISE * states.std() * (2 * torch.rand_like(states) - 1)
        stream = product(torch.cat((embedded, states + noise), dim=-1), self.fc.weight)
        return stream, stream

    def leave(self, out: Tensor) -> tuple[Tensor, Tensor]:
        return out, out

    def tensors(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        return {name.replace("layer.", "layers.0.", 1): weight for name, weight in weights.items()}

    def config(self) -> dict[str, Any]:
        """SafeAILab's layout."""
        return {
            "architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 1, "bias": False,
            **self.layer_config(self.teacher.sizes),
        }  # fmt: skip


class Eagle3Recipe(Unrolled):
    """States of three layers, each behind a norm of its own (`fc_norm`, as EAGLE-3.1 has it), a vocabulary of the
    tokens that answers use, and all steps trained on own guesses.
    """

    method = "eagle3"

    def __init__(self, teacher: Teacher, vocabulary: Tensor, taps: tuple[int, ...], steps: int = 5) -> None:
        super().__init__(teacher)
        sizes, width = teacher.sizes, teacher.sizes.width
        self.taps, self.steps = taps, steps
        self.vocabulary = vocabulary
        self.fc = nn.Linear(len(taps) * width, width, bias=False)
        start(self)
        self.fc_norm = nn.ModuleList(nn.RMSNorm(width, sizes.eps) for _ in taps)
        self.midlayer = Layer(sizes, entering=2 * width)
        self.midlayer.hidden_norm = nn.RMSNorm(width, sizes.eps)
        self.norm = nn.RMSNorm(width, sizes.eps)
        self.lm_head = nn.Linear(width, len(vocabulary), bias=False)
        with torch.no_grad():
            self.fc.weight[:, -width:] += torch.eye(width)
            self.norm.weight.copy_(teacher.norm)
            self.lm_head.weight.copy_(teacher.head[vocabulary])

    @property
    def layer(self) -> Layer:  # type: ignore[override]
        return self.midlayer

    def enter(self, batch: Batch) -> Tensor:
        pieces = zip(self.teacher.directions(batch, self.taps), self.fc_norm.parameters(), strict=True)
        return product(torch.cat([piece * weight for piece, weight in pieces], dim=-1), self.fc.weight)

    def fuse(self, embedded: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
        norm = self.midlayer.hidden_norm
        assert isinstance(norm, nn.RMSNorm)
        pair = self.midlayer.enter(embedded), rms(states, norm.weight, self.teacher.sizes.eps)
        return states, torch.cat(pair, dim=-1)

    def leave(self, out: Tensor) -> tuple[Tensor, Tensor]:
        return rms(out, self.norm.weight, self.teacher.sizes.eps), out

    def scores(self, scored: Tensor) -> Tensor:
        return product(scored, self.lm_head.weight)

    def wanted(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Over the draft vocabulary; a token outside it teaches nothing."""
        return self.teacher.logits(batch, self.vocabulary), batch.known & torch.isin(batch.labels, self.vocabulary)

    def tensors(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        held = torch.zeros(self.teacher.vocabulary, dtype=torch.bool)
        held[self.vocabulary] = True
        return weights | {"d2t": self.vocabulary - torch.arange(len(self.vocabulary)), "t2d": held}

    def config(self) -> dict[str, Any]:
        """SafeAILab's layout; ids count layers passed, as EAGLE's own code and vLLM do."""
        return {
            "architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "num_hidden_layers": 1, "bias": False,
            "draft_vocab_size": len(self.vocabulary), "target_hidden_size": self.teacher.sizes.width, "fc_norm": True,
            "norm_output": False,
            "eagle_config": {"eagle_aux_hidden_state_layer_ids": list(self.taps), "use_aux_hidden_state": True},
            **self.layer_config(self.teacher.sizes),
        }  # fmt: skip


class MtpRecipe(Unrolled):
    """One prediction layer in MiMo's layout, used again for each further token and trained so."""

    method = "mtp"

    def __init__(self, teacher: Teacher, steps: int = 2) -> None:
        super().__init__(teacher)
        sizes, width = teacher.sizes, teacher.sizes.width
        self.steps = steps
        self.input_proj = nn.Linear(2 * width, width, bias=False)
        start(self)
        self.layer = Layer(sizes, bias=True)
        self.token_layernorm = nn.RMSNorm(width, sizes.eps)
        self.hidden_layernorm = nn.RMSNorm(width, sizes.eps)
        self.final_layernorm = nn.RMSNorm(width, sizes.eps)
        with torch.no_grad():
            self.input_proj.weight[:, :width] += torch.eye(width)
            self.final_layernorm.weight.copy_(teacher.norm)

    def enter(self, batch: Batch) -> Tensor:
        return self.teacher.states(batch, (FINAL,))

    def embedded(self, batch: Batch) -> Tensor:
        """The text's first row has zeros instead of an embedding, as engines run this layout."""
        first = batch.real.int().argmax(dim=1)
        blank = torch.arange(batch.ids.shape[1] - 1) == first.unsqueeze(1)
        return super().embedded(batch).masked_fill(blank.unsqueeze(-1), 0.0)

    def fuse(self, embedded: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
        eps = self.teacher.sizes.eps
        pair = rms(states, self.hidden_layernorm.weight, eps), rms(embedded, self.token_layernorm.weight, eps)
        stream = product(torch.cat(pair, dim=-1), self.input_proj.weight)
        return stream, self.layer.enter(stream)

    def leave(self, out: Tensor) -> tuple[Tensor, Tensor]:
        normed = rms(out, self.final_layernorm.weight, self.teacher.sizes.eps)
        return normed, normed

    def tensors(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        return {f"model.mtp_layers.0.{name.removeprefix('layer.')}": weight for name, weight in weights.items()}

    def config(self) -> dict[str, Any]:
        """As MiMo's own, whose target carries the layer; here it has a folder of its own."""
        return {
            "architectures": ["MiMoForCausalLM"], "model_type": "mimo", "num_nextn_predict_layers": 1,
            "num_hidden_layers": self.teacher.num_layers, **self.layer_config(self.teacher.sizes),
            "attention_bias": True,
        }  # fmt: skip
