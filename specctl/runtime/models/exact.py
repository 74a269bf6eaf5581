"""float64 that is float64 throughout.

The layers of transformers compute their norms, routers and recurrent states in float32 whatever the dtype. Where a run
in float64 must give the same logits for every batch width, that is one rounding too many: under `Exact` they stay in
float64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode


class Exact(TorchFunctionMode):
    """Every request for float32 becomes one for float64."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is Tensor.float:
            return args[0].double()
        if any(value is torch.float32 for value in args):
            args = tuple(map(_wider, args))
        if kwargs:
            return func(*args, **{key: _wider(value) for key, value in kwargs.items()})
        return func(*args)


def _wider(value: Any) -> Any:
    return torch.float64 if value is torch.float32 else value


def make_exact(module: nn.Module) -> None:
    """Let ``module`` run under `Exact` from now on."""
    forward = module.forward

    def exact(*args: Any, **kwargs: Any) -> Any:
        with Exact():
            return forward(*args, **kwargs)

    module.forward = exact
