"""Which models nobody beats in both size and latency."""

from __future__ import annotations

from orchestrator.analysis.pareto import sized_models
from orchestrator.analysis.summary import summarise
from orchestrator.trial import Trial
from tests.unit.trial_factory import make_cell, make_trial

BYTES = {"small": 1_000, "middle": 2_000, "large": 3_000}


def trials(latencies_us: dict[tuple[str, int], float], load: str = "idle") -> list[Trial]:
    return [
        make_trial(
            cell=make_cell(model=model, model_sha256=model, threads=threads, load=load),
            block=block,
            median_us=latency_us,
        )
        for (model, threads), latency_us in latencies_us.items()
        for block in range(2)
    ]


def front(found: list[Trial], bytes_of: dict[str, int] = BYTES) -> dict[str, bool]:
    return {sized.found.cell.model: sized.is_on_front for sized in sized_models(summarise(found).cells, bytes_of)}


def test_a_larger_and_slower_model_is_beaten() -> None:
    """A larger one that is faster is not."""
    found = trials({("small", 1): 900, ("middle", 1): 1000, ("large", 1): 500})
    assert front(found) == {"small": True, "middle": False, "large": True}


def test_a_model_counts_by_its_fastest_setting() -> None:
    """Two threads save it."""
    found = sized_models(summarise(trials({("small", 1): 900, ("large", 1): 1000, ("large", 2): 500})).cells, BYTES)
    assert [(sized.found.cell.model, sized.found.cell.threads, sized.is_on_front) for sized in found] == [
        ("small", 1, True),
        ("large", 2, True),
    ]


def test_of_equal_latencies_the_smaller_wins() -> None:
    """As fast and larger is beaten."""
    assert front(trials({("small", 1): 900, ("large", 1): 900})) == {"small": True, "large": False}


def test_loads_have_fronts_of_their_own() -> None:
    """What wins when idle need not win under load."""
    busy = trials({("small", 1): 900, ("large", 1): 950}, load="app")
    found = sized_models(summarise([*trials({("small", 1): 900, ("large", 1): 500}), *busy]).cells, BYTES)
    assert [(sized.found.cell.load, sized.is_on_front) for sized in found] == [
        ("idle", True),
        ("idle", True),
        ("app", True),
        ("app", False),
    ]


def test_a_model_of_unknown_size_is_left_out() -> None:
    """Imported runs have no model files."""
    assert front(trials({("small", 1): 900, ("large", 1): 500}), {"small": 1}) == {"small": True}
