"""Start weights with copying built in: previous-token heads in layer 0, match-and-copy heads in layer 1.

A model this small does not find copying by itself in an hour on two cores; with this start it copies after a hundred
steps.
Everything is trained afterwards as usual, and the architecture stays plain Qwen3.
"""

from __future__ import annotations

import torch
from torch import Tensor

from train.model import Attention, Shape, TinyQwen3

FAST, SLOW = 0.05, 0.02
"""RoPE rates (radians a token): above FAST a head can tell neighbours apart, below SLOW it does not see distance."""


def _rates(shape: Shape) -> Tensor:
    half = shape.head_dim // 2
    return shape.theta ** (-torch.arange(half, dtype=torch.float32) / half)


def _orthonormal(rows: int, width: int, off: Tensor | None = None) -> Tensor:
    """Random orthonormal rows, orthogonal to the rows of `off`."""
    random = torch.randn(rows, width)
    if off is not None:
        random = random - random @ off.T @ off
    basis: Tensor = torch.linalg.qr(random.T).Q
    return basis.T[:rows]


def _ordinary(model: TinyQwen3) -> None:
    depth = (2 * model.shape.layers) ** -0.5
    for name, weight in model.named_parameters():
        if weight.ndim == 1:
            torch.nn.init.ones_(weight)
        else:
            end = name.endswith(("o_proj.weight", "down_proj.weight"))
            torch.nn.init.normal_(weight, std=0.03 * (depth if end else 1.0))


def _turned(vector: Tensor, steps: float, rates: Tensor) -> Tensor:
    half = len(rates)
    cos, sin = torch.cos(steps * rates), torch.sin(steps * rates)
    left, right = vector[:half], vector[half:]
    return torch.cat((left * cos - right * sin, right * cos + left * sin))


def _previous(attention: Attention, constant: Tensor, view: Tensor, spaces: list[Tensor]) -> None:
    """Heads of the first key group look one, two, … tokens back and write what they see into a space of their own."""
    shape, dim = attention.shape, attention.shape.head_dim
    rates = _rates(shape)
    fast = (rates > FAST).float().repeat(2)
    key = torch.randn(dim) * fast
    key = key / key.norm() * dim**0.5
    attention.k_proj.weight[:dim] = torch.outer(key, constant)
    attention.v_proj.weight[:dim] = view
    for head, space in enumerate(spaces):
        rows = slice(head * dim, (head + 1) * dim)
        # Rotating the query back by d makes its product with the key peak d tokens before it.
        attention.q_proj.weight[rows] = torch.outer(_turned(key, -float(head + 1), rates), constant)
        attention.o_proj.weight[:, rows] = 0.06 * space.T
    attention.q_norm.weight.fill_(1.6)
    attention.k_norm.weight.fill_(1.6)


def _match(attention: Attention, group: int, view: Tensor, spaces: list[Tensor], two: bool) -> None:
    """One key group: its first query finds the places that follow the current tokens, and copies what stands there."""
    shape, dim = attention.shape, attention.shape.head_dim
    slow = torch.nonzero((_rates(shape) < SLOW).float().repeat(2)).flatten()
    keep = slice(group * dim, (group + 1) * dim)
    first = slice(group * (shape.heads // shape.kv_heads) * dim, (group * (shape.heads // shape.kv_heads) + 1) * dim)
    query, key = torch.zeros(dim, shape.width), torch.zeros(dim, shape.width)
    mix = _orthonormal(len(slow), dim)
    query[slow], key[slow] = mix @ view, mix @ spaces[0]
    if two:
        other = _orthonormal(len(slow), dim)
        query[slow] += other @ spaces[0]
        key[slow] += other @ spaces[1]
    attention.q_proj.weight[first], attention.k_proj.weight[keep] = query, key
    copied = _orthonormal(dim, shape.width)
    attention.v_proj.weight[keep] = copied
    attention.o_proj.weight[:, first] = 0.08 * copied.T


@torch.no_grad()
def copying_start(model: TinyQwen3) -> None:
    """Fill the model with the start weights (uses torch's global generator: seed it first)."""
    _ordinary(model)
    shape, dim = model.shape, model.shape.head_dim
    constant = _orthonormal(1, shape.width)
    spaces = [_orthonormal(dim, shape.width, constant)]
    spaces.append(_orthonormal(dim, shape.width, torch.cat((constant, spaces[0]))))
    taken = torch.cat((constant, *spaces))
    view = _orthonormal(dim, shape.width, taken)
    table = model.model.embed_tokens.weight
    table -= table @ taken.T @ taken
    table += 0.3 * table.norm(dim=1).mean() * constant
    blocks = list(model.blocks())
    _previous(blocks[0].self_attn, constant[0], view, spaces)
    if shape.layers > 1:
        for group, two in enumerate((False, True, True)[: shape.kv_heads]):
            _match(blocks[1].self_attn, group, view, spaces, two)
        blocks[1].self_attn.q_norm.weight.fill_(1.4)
        blocks[1].self_attn.k_norm.weight.fill_(1.4)
