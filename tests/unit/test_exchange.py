"""Trials as JSON lines: what is written comes back, and what is wrong is refused with its line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import ImportRefused, UsageError, error_text
from orchestrator.exchange import as_json, as_line, read_file, read_lines, summary_of, write_file
from orchestrator.trial import Cell, Finding, Outcome, Pass, Severity, Slot, Summary, Trial
from tests.unit.trial_factory import make_cell, make_trial

LINE: dict[str, Any] = {
    "schema": "devbench.trial",
    "version": 1,
    "run": "2026-11-18T02:00:00Z-ab12",
    "device": "pixel8",
    "model": "mobilenet_v2",
    "model_sha256": "ab" * 32,
    "runner": "litert_runner",
    "delegate": "xnnpack",
    "threads": 4,
    "affinity": "any",
    "load": "idle",
    "outcome": "measured",
    "samples_us": [812.1, 810.9],
}


def line(**changes: Any) -> str:
    """A good line, altered; a change to `...` leaves the key out."""
    return json.dumps({key: value for key, value in {**LINE, **changes}.items() if value is not ...})


def read(text: str) -> Trial:
    (trial,) = read_lines([text], "trials.jsonl")
    return trial


def refusal(text: str) -> str:
    """What a person reads when the line is refused; it stands third in its file, after an empty line."""
    with pytest.raises(ImportRefused) as caught:
        list(read_lines([line(), "\n", text], "trials.jsonl"))
    return error_text(caught.value)


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
latencies = st.lists(st.floats(1e-6, 1e12), max_size=5).map(tuple)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(names, json_values, max_size=3)
cells = st.builds(
    Cell,
    device=names,
    model=names,
    model_sha256=names,
    runner=names,
    runner_sha256=st.none() | names,
    delegate=names,
    threads=st.integers(1, 1024),
    affinity=names,
    load=names,
)
slots = st.builds(Slot, cells, st.integers(0, 999), st.integers(0, 999), st.none() | names)
findings = st.lists(st.builds(Finding, names, st.sampled_from(Severity), names, names), max_size=2).map(tuple)


@st.composite
def trials(draw: st.DrawFn) -> Trial:
    """Any trial that devbench could have made, without its log, which is a file of its own."""
    samples = draw(latencies)
    summary = None if samples else draw(st.none() | st.builds(Summary, st.integers(1, 9), st.floats(1, 9)))
    is_measurable = bool(samples or summary)
    return Trial(
        run=draw(names),
        slot=draw(slots),
        session=draw(names),
        outcome=draw(st.sampled_from([item for item in Outcome if is_measurable or item != Outcome.MEASURED])),
        reason=draw(st.none() | names),
        started_at=draw(names),
        duration_s=draw(st.floats(0, 1e6)),
        samples_us=samples,
        warmup_us=draw(latencies),
        summary=summary,
        metrics=draw(objects),
        telemetry=draw(objects),
        evidence=draw(objects),
        findings=draw(findings),
    )


class TestRoundTrip:
    @given(trial=trials())
    @settings(max_examples=60, deadline=None)
    def test_a_trial_comes_back_as_it_went(self, trial: Trial) -> None:
        """Every sample, every word, bit for bit; and a line is one line."""
        written = as_line(trial)
        assert "\n" not in written
        assert read(written) == trial
        assert read(written).cell.id == trial.cell.id

    def test_a_file_comes_back_as_it_went(self, tmp_path: Path) -> None:
        """Write, read, in order, nothing left beside it."""
        made = [make_trial(block=block) for block in range(3)]
        write_file(tmp_path / "out.jsonl", made)
        assert list(read_file(tmp_path / "out.jsonl")) == made
        assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]

    def test_the_contract_of_an_export_line(self) -> None:
        """The keys that the export format promises, and what else a line carries."""
        content = as_json(make_trial())
        promised = (
            "schema version run device model model_sha256 runner delegate threads affinity load arm block position"
        )
        promised += " session outcome reason samples_us summary_us started_at telemetry evidence"
        assert set(promised.split()) <= set(content)
        assert set(content) - set(promised.split()) == {
            "cell", "runner_sha256", "warmup_us", "duration_s", "metrics", "findings",
        }  # fmt: skip
        assert set(content["summary_us"]) == {"count", "median", "p5", "p95", "avg", "std", "min", "max"}

    def test_a_trial_with_neither_samples_nor_summary_has_none(self) -> None:
        """A failed trial does not carry a summary of nothing."""
        assert as_json(make_trial(outcome=Outcome.FAILED))["summary_us"] is None


class TestReading:
    def test_the_fields_that_name_the_cell_are_enough(self) -> None:
        """Another tool can write lines without knowing the rest."""
        trial = read(line())
        assert trial.samples_us == (812.1, 810.9)
        assert (trial.session, trial.started_at, trial.duration_s, trial.reason) == ("imported", "", 0.0, None)
        assert (trial.slot.arm, trial.cell.runner_sha256, trial.findings) == (None, None, ())

    def test_a_trial_without_a_block_stands_alone(self) -> None:
        """Its place in the file becomes its block, so that no two are paired by accident."""
        found = list(read_lines([line(), line()], "x"))
        assert [trial.slot.block for trial in found] == [0, 1]

    def test_a_summary_alone_is_a_measurement(self) -> None:
        """Tools that print no samples can be imported."""
        trial = read(line(samples_us=..., summary_us={"count": 200, "median": 811.0}))
        assert (trial.samples_us, trial.summary) == ((), Summary(count=200, median=811.0))

    def test_samples_win_over_a_summary(self) -> None:
        """A summary is computed when reading, so the two cannot disagree."""
        assert read(line(summary_us={"count": 9, "median": 1.0})).summary is None

    def test_what_is_not_measured_needs_no_samples(self) -> None:
        """Crashes are trials too."""
        trial = read(line(outcome="failed", samples_us=..., reason="crash"))
        assert (trial.outcome, trial.reason, trial.samples_us) == (Outcome.FAILED, "crash", ())

    def test_empty_lines_are_passed_over(self) -> None:
        """As at the end of most files."""
        assert len(list(read_lines(["\n", line(), "  \n"], "x"))) == 1

    def test_unknown_keys_are_passed_over(self) -> None:
        """A line may carry notes of its own."""
        assert read(line(weather="fine")).cell.device == "pixel8"


CHOICES = "a trial needs run, device, model, model_sha256, runner, delegate, threads, affinity, load, outcome"
REFUSED = {
    "NaN": (
        line(samples_us=[float("nan")]),
        "NaN is no number",
        "write numbers that a 64-bit float can hold",
    ),
    "Infinity": (
        line(telemetry={"a": float("inf")}),
        "Infinity is no number",
        "write numbers that a 64-bit float can hold",
    ),
    "a list": ("[1]", "not a JSON object", "each line must be one trial"),
    "a word": ('"trial"', "not a JSON object", "each line must be one trial"),
    "no schema": (
        line(schema=...), "schema is None", 'only lines with "schema": "devbench.trial" can be read',
    ),
    "another schema": (
        line(schema="perf"), "schema is 'perf'", 'only lines with "schema": "devbench.trial" can be read',
    ),
    "a newer version": (line(version=2), "version is 2", "this devbench reads version 1: upgrade it"),
    "a missing key": (line(model_sha256=...), '"model_sha256" is missing', CHOICES),
    "a key of null": (line(load=None), '"load" is missing', CHOICES),
    "an empty text": (line(device=""), "\"device\" is '', not a string", "write device as a string"),
    "a number for a text": (line(device=8), '"device" is 8, not a string', "write device as a string"),
    "an unknown outcome": (
        line(outcome="measurd"),
        'outcome "measurd" is unknown',
        'did you mean "measured"? The choices are: measured, rejected, failed, skipped, not-run',
    ),
    "zero threads": (line(threads=0), "threads is 0", "threads must be 1 or more"),
    "threads as text": (
        line(threads="4"), "\"threads\" is '4', not a whole number", "write threads as a whole number",
    ),
    "threads as a bool": (
        line(threads=True), '"threads" is True, not a whole number', "write threads as a whole number",
    ),
    "a fractional block": (line(block=1.5), '"block" is 1.5, not a whole number', "write block as a whole number"),
    "measured without numbers": (
        line(samples_us=...),
        "measured, but neither samples_us nor summary_us",
        "give at least one of them",
    ),
    "measured with an empty list": (
        line(samples_us=[]),
        "measured, but neither samples_us nor summary_us",
        "give at least one of them",
    ),
    "a negative sample": (
        line(samples_us=[1.0, -2.0]),
        '"samples_us" is not a list of positive numbers',
        "write samples_us in microseconds",
    ),
    "a sample of zero": (
        line(samples_us=[0]), '"samples_us" is not a list of positive numbers', "write samples_us in microseconds",
    ),
    "a sample beyond all floats": (
        line().replace("812.1", "1e999"),
        "1e999 is beyond all numbers devbench can keep",
        "write numbers that a 64-bit float can hold",
    ),
    "a bool among samples": (
        line(samples_us=[True]), '"samples_us" is not a list of positive numbers', "write samples_us in microseconds",
    ),
    "text for samples": (
        line(samples_us="812"), '"samples_us" is not a list of positive numbers', "write samples_us in microseconds",
    ),
    "a negative warm-up": (
        line(warmup_us=[-1]), '"warmup_us" is not a list of positive numbers', "write warmup_us in microseconds",
    ),
    "a summary without a count": (
        line(summary_us={"median": 1.0}),
        '"summary_us" is not an object with a count',
        "its keys are count, median, p5, p95, avg, std, min, max",
    ),
    "a summary with a strange key": (
        line(summary_us={"count": 1, "medain": 1.0}),
        '"summary_us" has a key "medain"',
        'did you mean "median"? The choices are: count, median, p5, p95, avg, std, min, max',
    ),
    "a summary with text": (
        line(summary_us={"count": 1, "median": "811"}),
        "\"summary_us.median\" is '811', not a number",
        "write it in microseconds",
    ),
    "telemetry no object": (line(telemetry=[1]), '"telemetry" is not an object', 'write telemetry as {"…": …}'),
    "a duration as text": (
        line(duration_s="1"), "\"duration_s\" is '1', not a number", "write duration_s as a number",
    ),
    "a finding of unknown severity": (
        line(findings=[{"rule": "x", "severity": "bad", "reason": "r", "remedy": "m"}]),
        '"findings" is not a list of findings',
        "each needs rule, severity, reason and remedy",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "fact", "remedy"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_line_is_refused_in_these_words(text: str, fact: str, remedy: str) -> None:
    """File and line are named, then what is wrong."""
    assert refusal(text) == f"error: trials.jsonl, line 3: {fact}\n  try:   {remedy}"


def test_a_line_cut_short_is_refused_with_its_column() -> None:
    """One line number, that of the file."""
    assert refusal(line()[:40]) == (
        "error: trials.jsonl, line 3: not JSON: Expecting value at column 41\n"
        "  try:   each line must be one whole JSON object"
    )


BEYOND = {
    "an integer beyond all floats among the samples": line(samples_us=[10**400]),
    "an integer beyond all floats as duration": line(duration_s=10**400),
    "an integer beyond all floats in the summary": line(samples_us=..., summary_us={"count": 1, "median": 10**400}),
}


@pytest.mark.parametrize("text", BEYOND.values(), ids=BEYOND)
def test_a_number_beyond_all_floats_is_refused(text: str) -> None:
    """A file from elsewhere may hold anything; none of it may end in a traceback."""
    assert refusal(text).startswith("error: trials.jsonl, line 3: ")


INFINITE = {
    "duration": line(duration_s=1.5).replace("1.5", "1e999"),
    "telemetry": line(telemetry={"t_ms": [1.5]}).replace("1.5", "1e999"),
}


@pytest.mark.parametrize("text", INFINITE.values(), ids=INFINITE)
def test_infinity_in_disguise_is_refused(text: str) -> None:
    """Python reads 1e999 as infinity, which no export could write again."""
    assert refusal(text).startswith("error: trials.jsonl, line 3: ")


def test_text_that_is_no_unicode_is_refused() -> None:
    r"""JSON can spell half a character (\ud800), which neither a hash nor the store can take."""
    assert refusal(line(device="\ud800")).startswith('error: trials.jsonl, line 3: "device" ')


def test_a_line_nested_without_end_is_refused() -> None:
    """A damaged file is refused, not a crash of devbench."""
    assert refusal("[" * 100_000).startswith("error: trials.jsonl, line 3: ")


@pytest.mark.parametrize("summary", [{"count": 5, "median": -3.0}, {"count": -5, "median": 3.0}])
def test_a_negative_summary_is_refused(summary: dict[str, float]) -> None:
    """As a negative sample is."""
    assert refusal(line(samples_us=..., summary_us=summary)).startswith("error: trials.jsonl, line 3: ")


def test_a_measured_trial_needs_a_latency() -> None:
    """A count says how often, not how long."""
    assert refusal(line(samples_us=..., summary_us={"count": 5})).startswith(
        "error: trials.jsonl, line 3: measured, but"
    )


@pytest.mark.parametrize("findings", [[{}], "abc", [1]])
def test_findings_are_refused_in_words_of_ours(findings: object) -> None:
    """`string indices must be integers` tells the owner of the file nothing."""
    assert refusal(line(findings=findings)) == (
        'error: trials.jsonl, line 3: "findings" is not a list of findings\n'
        "  try:   each needs rule, severity, reason and remedy"
    )


class TestFiles:
    def test_a_missing_file_is_refused(self, tmp_path: Path) -> None:
        """With the system's reason."""
        with pytest.raises(ImportRefused) as caught:
            list(read_file(tmp_path / "none.jsonl"))
        assert error_text(caught.value) == (
            f"error: {tmp_path}/none.jsonl: No such file or directory\n  try:   check the path"
        )

    def test_a_binary_file_is_refused(self, tmp_path: Path) -> None:
        """A database given by mistake."""
        path = tmp_path / "devbench.sqlite"
        path.write_bytes(b"SQLite format 3\x00\xff\xfe")
        with pytest.raises(ImportRefused) as caught:
            list(read_file(path))
        assert error_text(caught.value) == (
            f"error: {path}: not UTF-8 text\n  try:   give a file that `devbench export` wrote"
        )

    def test_a_place_that_cannot_be_written_is_refused(self, tmp_path: Path) -> None:
        """With the system's reason."""
        (tmp_path / "no").write_text("a file")
        path = tmp_path / "no" / "out.jsonl"
        with pytest.raises(UsageError) as caught:
            write_file(path, [make_trial()])
        assert error_text(caught.value) == (
            f"error: cannot write {path}: File exists\n  try:   choose another place for --output"
        )

    def test_a_failed_write_leaves_the_old_file_as_it_was(self, tmp_path: Path) -> None:
        """The name always stands for a whole file."""
        path = tmp_path / "out.jsonl"
        path.write_text("old", encoding="utf-8")

        def broken() -> Any:
            yield make_trial()
            raise OSError(28, "No space left on device")

        with pytest.raises(UsageError, match="No space left on device"):
            write_file(path, broken())
        assert path.read_text(encoding="utf-8") == "old"
        assert [found.name for found in tmp_path.iterdir()] == ["out.jsonl"]


class TestSummary:
    def test_the_summary_is_computed_from_the_samples(self) -> None:
        """Quantiles between samples are linear; the deviation is that of the samples themselves."""
        trial = read(line(samples_us=[4.0, 1.0, 3.0, 2.0]))
        found = summary_of(trial)
        assert (found.count, found.median, found.avg, found.min, found.max) == (4, 2.5, 2.5, 1.0, 4.0)
        assert (found.p5, found.p95, found.std) == (
            pytest.approx(1.15),
            pytest.approx(3.85),
            pytest.approx(1.25**0.5),
        )

    def test_the_tools_own_summary_stands(self) -> None:
        """Where there are no samples to compute one from."""
        own = Summary(count=200, median=811.0)
        assert summary_of(make_trial(summary=own)) == own


def test_the_pass_of_a_trial_travels_and_an_unknown_one_is_refused() -> None:
    """Ordinary lines carry none, as before."""
    cell = make_cell()
    sustained = replace(make_trial(cell=cell), slot=Slot(cell, 4, 0, purpose=Pass.SUSTAIN))
    (back,) = read_lines([as_line(sustained)], "file")
    assert back.slot.purpose is Pass.SUSTAIN
    assert "pass" not in json.loads(as_line(make_trial(cell=cell)))
    wrong = json.dumps(json.loads(as_line(sustained)) | {"pass": "sustian"})
    with pytest.raises(ImportRefused, match='line 1: pass "sustian" is unknown'):
        list(read_lines([wrong], "file"))
