"""Door sign: the bundled engine, the only room with torch in it.

Here: models, KV cache, scheduler, sampling, proposers, verification, statistics. Not here: settings and their rules,
HTTP, measuring. May enter: server, bench and cli, through the names below; importing this package loads torch and
transformers, so callers that must start fast import it late.
"""

from specctl.runtime.build import environment, make_engine, near_tie_margin, top_margin
from specctl.runtime.engine import Engine
from specctl.runtime.footprint import footprint
from specctl.runtime.meter import Meter, StepCosts
from specctl.runtime.options import EngineOptions
from specctl.runtime.request import Emission, Request, SamplingParams
from specctl.runtime.stats import SpecStats
from specctl.runtime.target import Target, load_target, set_threads

__all__ = [
    "Emission",
    "Engine",
    "EngineOptions",
    "Meter",
    "Request",
    "SamplingParams",
    "SpecStats",
    "StepCosts",
    "Target",
    "environment",
    "footprint",
    "load_target",
    "make_engine",
    "near_tie_margin",
    "set_threads",
    "top_margin",
]
