"""compare, show and history of files, as a user runs them: the contract of their JSON, exit codes, and refusals."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import Done, Workplace

CELL = {
    "device": "pixel8",
    "model": "mobilenet_v2",
    "model_sha256": "ab" * 32,
    "runner": "litert_runner",
    "delegate": "xnnpack",
    "threads": 1,
    "affinity": "any",
    "load": "idle",
}
PROMISED = {
    *CELL,
    *("metric", "verdict", "effect_percent", "ci_low_percent", "ci_high_percent", "p_adjusted"),
    *("n_base", "n_new", "trust"),
}
RNG = np.random.default_rng(1)


def trial(
    *, block: int, level: float = 800.0, arm: str | None = None, samples: int = 80, **fields: Any
) -> dict[str, Any]:
    """An export line with noise of 1 % a trial and 2 % an iteration."""
    median = level * np.exp(RNG.normal(0, 0.01))
    values = (median * np.exp(RNG.normal(0, 0.02, samples))).round(3).tolist()
    line = {"schema": "devbench.trial", "version": 1, "run": "run-1", "session": "s", "outcome": "measured"}
    return line | CELL | {"arm": arm, "block": block, "samples_us": values} | fields


def interleaved(*, blocks: int = 10, effect: float = 0.0, **fields: Any) -> list[dict[str, Any]]:
    """Both arms in every block, in either order, ten seconds a trial."""
    lines = []
    for block in range(blocks):
        for place in range(2):
            is_new = place ^ (block % 2)
            lines.append(
                trial(
                    block=block,
                    level=800.0 * (1 + effect * is_new),
                    arm=("baseline", "candidate")[is_new],
                    position=place,
                    started_at=f"2026-11-18T02:{block:02}:{10 * place:02}Z",
                    **fields,
                )
            )
    return lines


def alone(run: str, *, blocks: int = 10, level: float = 800.0, **fields: Any) -> list[dict[str, Any]]:
    return [trial(block=block, level=level, run=run, session=run, **fields) for block in range(blocks)]


def written(workplace: Workplace, name: str, lines: Iterable[dict[str, Any]]) -> Path:
    return workplace.write(name, "".join(f"{json.dumps(line)}\n" for line in lines))


def by_metric(done: Done) -> dict[str, dict[str, Any]]:
    return {row["metric"]: row for row in done.json["cells"]}


def refused(done: Done) -> str:
    assert done.status == 2, (done.status, done.stderr)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr


class TestCompare:
    def test_arms_of_one_file(self, workplace: Workplace) -> None:
        """The promised fields; 5 % slower is found by every metric, and that is exit 1."""
        done = workplace.devbench("compare", written(workplace, "t.jsonl", interleaved(effect=0.05)), "--json")
        assert done.status == 1, done.stderr
        content = done.json
        assert (content["schema"], content["version"]) == ("devbench.compare", 1)
        assert (content["base_arm"], content["new_arm"]) == ("baseline", "candidate")
        rows = by_metric(done)
        assert set(rows) == {"p50", "mean", "p95"}
        for row in rows.values():
            assert set(row) >= PROMISED
            assert (row["verdict"], row["n_base"], row["n_new"], row["trust"]) == ("slower", 10, 10, "trusted")
            assert row["ci_low_percent"] < row["effect_percent"] < row["ci_high_percent"]
            assert 3 < row["effect_percent"] < 7
            assert row["p_adjusted"] <= 0.05

    def test_nothing_changed(self, workplace: Workplace) -> None:
        """Proven the same by p50, and exit 0; a faster one does not fail either."""
        done = workplace.devbench("compare", written(workplace, "t.jsonl", interleaved(blocks=14)), "--json")
        assert (done.status, by_metric(done)["p50"]["verdict"]) == (0, "same")
        done = workplace.devbench("compare", written(workplace, "t.jsonl", interleaved(effect=-0.2)), "--json")
        assert (done.status, by_metric(done)["p50"]["verdict"]) == (0, "faster")

    def test_two_files_are_suspected_at_most(self, workplace: Workplace) -> None:
        """Twice as slow on another day: suspected, exit 0; noise between sessions can be given."""
        base = written(workplace, "base.jsonl", alone("monday"))
        new = written(workplace, "new.jsonl", alone("tuesday", level=1600.0))
        done = workplace.devbench("compare", base, new, "--json", "--session-noise", "1%")
        row = by_metric(done)["p50"]
        assert (done.status, row["verdict"], row["interleaved"]) == (0, "suspected_slower", False)
        assert "not interleaved: the two sides are different runs" in row["notes"]

    def test_five_blocks_are_too_few(self, workplace: Workplace) -> None:
        """Whatever the effect."""
        done = workplace.devbench("compare", written(workplace, "t.jsonl", interleaved(blocks=5, effect=1.0)), "--json")
        assert done.status == 0
        assert {(row["verdict"], row["trust"]) for row in done.json["cells"]} == {("unknown", "insufficient")}
        assert by_metric(done)["p50"]["ci_low_percent"] is None

    def test_another_hash_is_refused_unless_it_is_meant(self, workplace: Workplace) -> None:
        """The field is named; --ignore overrides and is recorded."""
        base = written(workplace, "base.jsonl", alone("monday"))
        new = written(workplace, "new.jsonl", alone("tuesday", model_sha256="ef" * 32))
        message = refused(workplace.devbench("compare", base, new))
        assert "model_sha256 differs for mobilenet_v2" in message
        assert "--ignore model_sha256" in message
        done = workplace.devbench("compare", base, new, "--ignore", "model_sha256", "--json")
        assert done.status == 0
        assert done.json["ignored"] == ["model_sha256"]
        assert done.json["cells"][0]["differs"] == ["model_sha256"]

    def test_summaries_are_enough(self, workplace: Workplace) -> None:
        """Trials with the tool's own summary only; rejected and failed ones are passed over."""
        lines = interleaved(blocks=12, effect=0.1)
        for line in lines:
            samples = np.array(line.pop("samples_us"))
            line["summary_us"] = {
                "count": len(samples),
                "median": float(np.median(samples)),
                "avg": float(samples.mean()),
                "p95": float(np.quantile(samples, 0.95)),
            }
        lines[0] |= {"outcome": "rejected", "reason": "too hot"}
        done = workplace.devbench("compare", written(workplace, "t.jsonl", lines), "--json")
        rows = by_metric(done)
        assert {row["verdict"] for row in rows.values()} == {"slower"}
        assert rows["p50"]["n_new"] == 11

    def test_runs_of_the_store(self, workplace: Workplace) -> None:
        """Imported runs are compared by id as files are by name."""
        both = written(workplace, "both.jsonl", [*alone("monday"), *alone("tuesday")])
        assert workplace.devbench("import", both).status == 0
        done = workplace.devbench("compare", "monday", "tuesday", "--json")
        assert (done.status, by_metric(done)["p50"]["verdict"]) == (0, "unknown")

    def test_tables_fit_their_terminal(self, workplace: Workplace) -> None:
        """Piped it is plain; the verdict, the reason and the legend are there."""
        done = workplace.devbench("compare", written(workplace, "t.jsonl", interleaved(effect=0.05)))
        assert done.status == 1
        assert done.stdout.startswith("candidate against baseline: by p50 1 slower\n")
        assert "\x1b" not in done.stdout
        assert "Threshold 3 %." in done.stdout

    def test_bad_lines_are_refused_with_their_number(self, workplace: Workplace) -> None:
        """A negative sample in line 3."""
        lines = interleaved(blocks=2)
        lines[2]["samples_us"] = [1.0, -5.0]
        message = refused(workplace.devbench("compare", written(workplace, "t.jsonl", lines)))
        assert 't.jsonl, line 3: "samples_us" is not a list of positive numbers' in message

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (("nowhere.jsonl",), "nowhere.jsonl: No such file"),
            (("one.jsonl",), "one.jsonl has no arms"),
            (("one.jsonl", "one.jsonl", "--threshold", "0"), "--threshold"),
            (("one.jsonl", "one.jsonl", "--ignore", "colour"), "--ignore colour: no such field"),
            (("one.jsonl", "empty.jsonl"), "NEW has no trials"),
        ],
    )
    def test_bad_input(self, workplace: Workplace, arguments: tuple[str, ...], words: str) -> None:
        """One clear message and exit 2."""
        written(workplace, "one.jsonl", alone("monday", blocks=2))
        written(workplace, "empty.jsonl", [])
        assert words in refused(workplace.devbench("compare", *arguments))


class TestShowAndHistory:
    def test_show_a_file(self, workplace: Workplace) -> None:
        """Estimates, variability, trust, and the crossover verdict at each load with ratio and interval."""
        truth = {(1, "idle"): 800.0, (2, "idle"): 410.0, (1, "cpu:1@100"): 810.0, (2, "cpu:1@100"): 1000.0}
        lines = [
            trial(block=block, level=level, threads=threads, load=load)
            for block in range(8)
            for (threads, load), level in truth.items()
        ]
        done = workplace.devbench("show", written(workplace, "t.jsonl", lines), "--json")
        assert done.status == 0, done.stderr
        verdicts = {(row["load"], row["metric"]): row for row in done.json["crossover"]}
        assert verdicts["idle", "p50"]["verdict"] == "wins"
        assert verdicts["cpu:1@100", "p50"]["verdict"] == "loses"
        assert verdicts["idle", "p50"]["low"] < 410 / 800 < verdicts["idle", "p50"]["high"]
        cell = done.json["cells"][0]
        assert set(cell["latency_us"]) == {"p50", "mean", "p90", "p95", "p99"}
        assert cell["latency_us"]["p90"]["low"] < cell["latency_us"]["p90"]["value"]
        assert cell["trust"] == {"verdict": "trusted", "reasons": []}

    def test_history_finds_the_run(self, workplace: Workplace) -> None:
        """Twelve nights, slower by 8 % from the ninth: named in JSON and in words."""
        lines = [
            trial(
                block=block,
                level=800.0 if night < 8 else 864.0,
                run=f"night{night:02}",
                started_at=f"2026-11-{night + 1:02}T02:{block:02}:00Z",
            )
            for night in range(12)
            for block in range(6)
        ]
        path = written(workplace, "t.jsonl", lines)
        done = workplace.devbench("history", path, "--json")
        assert done.status == 0, done.stderr
        assert (done.json["schema"], done.json["version"]) == ("devbench.history", 1)
        (cell,) = done.json["cells"]
        (change,) = cell["change_points"]
        assert (change["run"], change["direction"], len(cell["points"])) == ("night08", "slower", 12)
        assert "since night08: slower +" in workplace.devbench("history", path).stdout

    def test_history_of_an_unknown_metric(self, workplace: Workplace) -> None:
        """The right ones are listed."""
        path = written(workplace, "t.jsonl", alone("monday", blocks=1))
        assert '--metric: "p51" is unknown' in refused(workplace.devbench("history", path, "--metric", "p51"))
