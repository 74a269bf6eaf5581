"""The training forward is the mathematics that transformers runs, and the start weights look where they should."""

from __future__ import annotations

import pytest
import torch

from train.model import Shape, TinyQwen3, _turn, rope_tables
from train.start import copying_start

SMALL = Shape(layers=3, width=128, heads=4, kv_heads=2, inner=96, vocabulary=300)


def made(shape: Shape = SMALL) -> TinyQwen3:
    """A model with start weights."""
    torch.manual_seed(3)
    model = TinyQwen3(shape)
    copying_start(model)
    return model


def test_forward_equals_transformers() -> None:
    transformers = pytest.importorskip("transformers")
    model = made()
    config = transformers.Qwen3Config(**SMALL.config(eos=2, pad=0))
    theirs = transformers.Qwen3ForCausalLM(config).eval()
    missing, unexpected = theirs.load_state_dict(model.state_dict(), strict=False)
    assert set(missing) <= {"lm_head.weight"}
    assert not unexpected
    theirs.tie_weights()
    ids = torch.randint(0, 300, (2, 40))
    with torch.no_grad():
        assert torch.allclose(model(ids), theirs(ids).logits, atol=2e-4)


def test_padding_on_the_right_changes_nothing() -> None:
    model = made()
    ids = torch.randint(0, 300, (1, 20))
    longer = torch.cat((ids, torch.zeros(1, 7, dtype=ids.dtype)), dim=1)
    with torch.no_grad():
        assert torch.allclose(model(ids), model(longer)[:, :20], atol=1e-5)


def test_start_weights_look_one_and_two_tokens_back() -> None:
    model = made()
    attention = next(model.blocks()).self_attn
    cos, sin = rope_tables(30, SMALL)
    constant = model.model.embed_tokens.weight.mean(0)
    key = _turn((attention.k_proj.weight @ constant)[:32].expand(30, -1), cos, sin)
    for head in (0, 1):
        query = _turn((attention.q_proj.weight @ constant)[head * 32 : head * 32 + 32].expand(30, -1), cos, sin)
        scores = query[20] @ key[:21].T
        assert int(scores.argmax()) == 20 - (head + 1)
