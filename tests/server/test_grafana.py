"""The Grafana board asks only for what /metrics has."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.server.live import Live

BOARD = json.loads((Path(__file__).parents[2] / "grafana" / "specctl-serve.json").read_text("utf-8"))


def queries(thing: Any) -> list[str]:
    """Every query of the board."""
    if isinstance(thing, dict):
        own = [thing[key] for key in ("expr", "query") if isinstance(thing.get(key), str)]
        return own + [query for value in thing.values() for query in queries(value)]
    return [query for item in thing for query in queries(item)] if isinstance(thing, list) else []


def test_every_metric_of_the_board_is_exported(fake: Live) -> None:
    fake.client().completions.create(model="fake", prompt="hello", max_tokens=30, temperature=0)
    fake.post("/v1/completions", json={"nonsense": 1})
    exported = {line.split("{")[0].split(" ")[0] for line in fake.get("/metrics").text.splitlines() if line[:1] != "#"}
    asked = {name for query in queries(BOARD) for name in re.findall(r"\b(?:vllm|specctl):\w+", query)}
    assert len(asked) > 20
    assert asked <= exported


def test_every_panel_has_queries_and_a_place_of_its_own() -> None:
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in BOARD["panels"]]
    assert len(set(places)) == len(places) >= 12
    assert all(panel["targets"] for panel in BOARD["panels"])
