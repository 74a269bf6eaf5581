"""A plan of known models in one call."""

from __future__ import annotations

from typing import Any

from specctl.planning.hardware import gpu_named
from specctl.planning.models import draft_named, target_named
from specctl.planning.plan import Plan, Request


def plan(target: str, gpu: str, draft: str | None = None, context: int = 8192, **options: Any) -> Plan:
    known = target_named(target)
    drafting = draft_named(draft, known) if draft else None
    return Plan(Request(known, gpu_named(gpu), context, draft=drafting, **options))
