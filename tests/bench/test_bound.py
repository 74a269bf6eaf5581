"""The bound E / (γc + v(γ + 1)): its arithmetic, the meter that feeds it, and its place in the report."""

from __future__ import annotations

import pytest

from specctl.bench.bound import bound_figures, bound_of
from specctl.bench.bound_table import places
from specctl.bench.records import Block
from specctl.runtime import EngineOptions, Meter, Request, SamplingParams, StepCosts, load_target, make_engine
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import DraftModel, Ngram
from tests.bench.stand_ins import record

PLAIN = StepCosts(steps=100, target_s=0.2)


def test_the_bound_is_the_formula() -> None:
    # γ = 4, E = 3, c = 0.1, v = 1.5: 3 / (0.4 + 1.5).
    drafted = StepCosts(steps=50, drafted=200, accepted=100, target_s=0.15, draft_s=0.04)
    found = bound_of(PLAIN, drafted)
    assert found is not None
    assert found.draft_cost == pytest.approx(0.1)
    assert found.verify_cost == pytest.approx(1.5)
    assert found.speedup == pytest.approx(3 / 1.9)


def test_rounds_without_a_draft_count_as_they_were() -> None:
    # Half of the rounds drafted nothing and cost one row; a search takes no network.
    found = bound_of(PLAIN, StepCosts(steps=100, drafted=200, accepted=100, target_s=0.25))
    assert found is not None
    assert found.speedup == pytest.approx(2 / 1.25)
    assert found.draft_cost == 0


@pytest.mark.parametrize("costs", [None, StepCosts()])
def test_nothing_metered_is_no_bound(costs: StepCosts | None) -> None:
    assert bound_of(PLAIN, costs) is None
    assert bound_of(costs, PLAIN) is None


def test_medians_over_repeats() -> None:
    plain, drafted = [], []
    for repeat, target_s in enumerate((0.1, 0.2, 0.4)):
        plain.append(Block((record(0, repeat, tpot_s=0.02),), 1.0, costs=PLAIN))
        costs = StepCosts(steps=100, drafted=100, accepted=100, target_s=target_s)
        drafted.append(Block((record(0, repeat, tpot_s=0.01),), 1.0, costs=costs))
    found = bound_figures(plain, drafted)
    assert found["bound"] == pytest.approx(2.0)
    assert found["share_of_bound"] == pytest.approx(1.0)
    assert found["verify_cost"] == pytest.approx(1.0)
    assert found["draft_cost"] == 0


def test_blocks_that_were_not_metered_have_no_figures() -> None:
    block = Block((record(),), 1.0)
    assert set(bound_figures([block], [block]).values()) == {None}


def test_the_meter_counts_the_steps_of_one_stream() -> None:
    target, meter = load_target("demo"), Meter()
    prompt = target.encode_chat([{"role": "user", "content": "Write a short story about a fox."}])
    for spec in (None, SpecDecodeConfig(DraftModel(), 3, model="demo-draft"), SpecDecodeConfig(Ngram(), 3)):
        engine = make_engine(target, spec, EngineOptions(max_num_seqs=1, max_model_len=256))
        meter.watch(engine)
        meter.reset()
        engine.add(Request("a", prompt, SamplingParams(max_tokens=12)))
        while engine.has_work():
            engine.step()
        costs, stats = meter.costs, engine.stats
        assert (costs.steps, costs.drafted) == (stats.num_verify_steps, stats.num_draft_tokens)
        assert costs.accepted == stats.num_accepted_tokens
        assert costs.target_s > 0
        assert (costs.draft_s > 0) == (spec is not None and spec.model is not None)


def test_places_end_where_no_draft_got() -> None:
    assert places([0.5, 1.0, 0.0, None]) == ".50 1.0 .00"
    assert len(places([0.9] * 20).split()) == 7
