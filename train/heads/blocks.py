"""Drafts that fill masks in one forward: PARD (arXiv 2504.18583) and DFlash (arXiv 2602.06036).

Blocks of masks are trained at a sample of anchors, all at once: each sees the text up to its anchor and itself.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from train.heads.batches import Batch
from train.heads.parts import Layer, Own, Seen, Sizes, past, product, rms, start
from train.heads.recipe import TAPS, Recipe, Teacher, falling, surprise

PLACES = 8
"""Places of a block, the newest token's included."""
ANCHORS = 8
MASK = 0
"""The end-of-text token: it pads and never stands in a conversation."""
PLACE_SHARE = 0.85


class Blocks(Recipe):
    """Masks behind the newest token."""

    def chosen(self, batch: Batch) -> Tensor:
        """A sample of the columns from where answers begin, counted from there, in order."""
        return torch.randperm(batch.anchors)[:ANCHORS].sort().values

    def block_loss(self, batch: Batch, chosen: Tensor, scores: Tensor) -> Tensor:
        """`scores` [rows, n, places, vocab]: of the tokens 1, 2, … behind each chosen anchor."""
        wanted, known = self.teacher.logits(batch), batch.known
        losses = []
        for place in range(scores.shape[2]):
            columns = chosen + place
            inside = columns < batch.anchors
            if not bool(known[:, columns[inside]].any()):
                break
            losses.append(surprise(scores[:, inside, place], wanted[:, columns[inside]], known[:, columns[inside]]))
        return falling(losses, PLACE_SHARE)


def look(layer: Layer, stream: Tensor, positions: Tensor, text: Seen, among: Tensor) -> Tensor:
    """A layer over blocks `stream` [rows, n, R, width] at `positions` [n, R], which see `text` and `among` [R, R]
    themselves.
    """
    entered, attention = layer.enter(stream), layer.self_attn
    own = Own(attention.keys(entered, positions), attention.values(entered), among)
    return layer.leave(stream, attention.attend(attention.queries(entered, positions), text, own))


class PardRecipe(Blocks):
    """The separate draft model, taught to go on at masks, with one more layer to do it in."""

    method = "pard"
    peak = 2e-3

    def __init__(self, teacher: Teacher, draft: dict[str, Tensor], sizes: Sizes, config: dict[str, Any]) -> None:
        super().__init__(teacher)
        self._sizes, self._config = sizes, config
        self.embed_tokens = nn.Embedding(teacher.vocabulary, sizes.width)
        self.layers = nn.ModuleList(Layer(sizes, qk_norm=True) for _ in range(2))
        self.norm = nn.RMSNorm(sizes.width, sizes.eps)
        known = {name.removeprefix("model."): weight for name, weight in draft.items()}
        missing = self.load_state_dict(known, strict=False).missing_keys
        assert all(name.startswith("layers.1.") for name in missing), "the draft has one layer"

    def loss(self, batch: Batch) -> Tensor:
        chosen = self.chosen(batch)
        columns = batch.begin + chosen
        real, ids = batch.real, batch.ids
        ahead = torch.arange(1, PLACES)
        positions = columns.unsqueeze(1) + ahead
        stream = F.embedding(ids, self.embed_tokens.weight)
        masks = self.embed_tokens.weight[MASK].expand(len(ids), len(columns), PLACES - 1, -1)
        among = torch.ones(PLACES - 1, PLACES - 1, dtype=torch.bool).tril()
        for layer in self.layers:
            assert isinstance(layer, Layer)
            mixed, seen = layer.text(layer.enter(stream), real)
            stream = layer.leave(stream, mixed)
            masks = look(layer, masks, positions, Seen(seen.keys, seen.values, seen.visible[:, columns]), among)
        out = torch.cat((stream[:, columns].unsqueeze(2), masks), dim=2)
        out = rms(out, self.norm.weight, self._sizes.eps)
        return self.block_loss(batch, chosen, product(out, self.embed_tokens.weight))

    def tensors(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        return {f"model.{name}": weight for name, weight in weights.items()}

    def config(self) -> dict[str, Any]:
        """An ordinary model's, with the mask token under PARD's key."""
        kept = {key: value for key, value in self._config.items() if key != "layer_types"}
        return copy.deepcopy(kept) | {"num_hidden_layers": len(self.layers), "pard_token": MASK}


class DFlashRecipe(Blocks):
    """Two layers; blocks of varying length, since a served k fixes how many masks there are."""

    method = "dflash"
    LAYERS = 2

    def __init__(self, teacher: Teacher, taps: tuple[int, ...] = TAPS) -> None:
        super().__init__(teacher)
        sizes, width = teacher.sizes, teacher.sizes.width
        self.taps = taps
        self.fc = nn.Linear(len(taps) * width, width, bias=False)
        start(self)
        self.hidden_norm = nn.RMSNorm(width, sizes.eps)
        self.layers = nn.ModuleList(Layer(sizes, qk_norm=True) for _ in range(self.LAYERS))
        self.norm = nn.RMSNorm(width, sizes.eps)
        with torch.no_grad():
            self.fc.weight[:, -width:] += torch.eye(width)
            self.norm.weight.copy_(teacher.norm)

    def loss(self, batch: Batch) -> Tensor:
        eps = self.teacher.sizes.eps
        count = int(torch.randint(4, PLACES + 1, ()))
        chosen = self.chosen(batch)
        columns = batch.begin + chosen
        context = rms(product(self.teacher.states(batch, self.taps), self.fc.weight), self.hidden_norm.weight, eps)
        places = torch.arange(context.shape[1])
        # The newest token's own state is not there yet.
        visible = past(batch.real)[:, columns - 1]
        masks = torch.full((*batch.ids[:, columns].shape, count - 1), MASK)
        tokens = torch.cat((batch.ids[:, columns].unsqueeze(-1), masks), dim=-1)
        positions = columns.unsqueeze(1) + torch.arange(count)
        stream = F.embedding(tokens, self.teacher.embedding)
        among = torch.ones(count, count, dtype=torch.bool)
        for layer in self.layers:
            assert isinstance(layer, Layer)
            text = Seen(layer.self_attn.keys(context, places), layer.self_attn.values(context), visible)
            stream = look(layer, stream, positions, text, among)
        out = rms(stream[:, :, 1:], self.norm.weight, eps)
        return self.block_loss(batch, chosen, product(out, self.teacher.head))

    def config(self) -> dict[str, Any]:
        """z-lab's layout; its ids name the layer whose output is meant."""
        return {
            "architectures": ["DFlashDraftModel"], "model_type": "qwen3", "num_hidden_layers": self.LAYERS,
            "block_size": PLACES, "num_target_layers": self.teacher.num_layers,
            "dflash_config": {"mask_token_id": MASK, "target_layer_ids": [tap - 1 for tap in self.taps]},
            **self.layer_config(self.teacher.sizes),
        }  # fmt: skip
