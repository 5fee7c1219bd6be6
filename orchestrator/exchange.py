"""Trials as JSON lines (schema `devbench.trial`, version 1): written by export, read by import."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from orchestrator.analysis.estimate import LATENCY_US_MAX, LATENCY_US_MIN, quantile
from orchestrator.errors import ImportRefused, UsageError
from orchestrator.settings import suggestion
from orchestrator.trial import Cell, Finding, Outcome, Pass, Severity, Slot, Summary, Trial
from orchestrator.whole_files import written_whole

SCHEMA = "devbench.trial"
VERSION = 1

_REQUIRED = (
    "run",
    "device",
    "model",
    "model_sha256",
    "runner",
    "delegate",
    "threads",
    "affinity",
    "load",
    "outcome",
)
_WHOLE_MAX = 10**18
_SUMMARY_KEYS = ("count", "median", "p5", "p95", "avg", "std", "min", "max")


def as_json(trial: Trial) -> dict[str, Any]:
    """One trial as an export line carries it."""
    cell = trial.cell.as_json()
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "run": trial.run,
        "cell": trial.cell.id,
        **cell,
        "arm": trial.slot.arm,
        **({} if trial.slot.purpose is Pass.LATENCY else {"pass": str(trial.slot.purpose)}),
        "block": trial.slot.block,
        "position": trial.slot.position,
        "session": trial.session,
        "outcome": str(trial.outcome),
        "reason": trial.reason,
        "samples_us": list(trial.samples_us),
        "warmup_us": list(trial.warmup_us),
        "summary_us": summary_of(trial).as_json() if trial.samples_us or trial.summary else None,
        "started_at": trial.started_at,
        "duration_s": trial.duration_s,
        "metrics": dict(trial.metrics),
        "telemetry": dict(trial.telemetry),
        "evidence": dict(trial.evidence),
        "findings": [finding.as_json() for finding in trial.findings],
    }


def as_line(trial: Trial, *, ascii_only: bool = False) -> str:
    return json.dumps(as_json(trial), ensure_ascii=ascii_only, allow_nan=False)


def summary_of(trial: Trial) -> Summary:
    """The tool's own summary, or one computed from the samples."""
    if trial.summary is not None:
        return trial.summary
    ordered = sorted(trial.samples_us)
    count = len(ordered)
    mean = math.fsum(ordered) / count
    variance = math.fsum((value - mean) ** 2 for value in ordered) / count
    return Summary(
        count=count,
        median=quantile(ordered, 0.5),
        p5=quantile(ordered, 0.05),
        p95=quantile(ordered, 0.95),
        avg=mean,
        std=math.sqrt(variance),
        min=ordered[0],
        max=ordered[-1],
    )


def read_lines(lines: Iterable[str], source: str) -> Iterator[Trial]:
    """The trials of a file; ImportRefused names the line that is wrong. Empty lines are passed over."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _Line(source, number, line).trial()


def read_file(path: Path) -> Iterator[Trial]:
    """The trials of a file of JSON lines."""
    try:
        with path.open(encoding="utf-8") as lines:
            yield from read_lines(lines, str(path))
    except OSError as error:
        raise ImportRefused(f"{path}: {error.strerror}", remedy="check the path") from error
    except UnicodeDecodeError as error:
        raise ImportRefused(f"{path}: not UTF-8 text", remedy="give a file that `devbench export` wrote") from error


def write_file(path: Path, trials: Iterable[Trial]) -> None:
    """Write JSON lines; the file has its name only when it is whole."""
    try:
        with written_whole(path) as out:
            out.writelines(f"{as_line(trial)}\n".encode() for trial in trials)
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}", remedy="choose another place for --output"
        ) from error


class _Line:
    """One line being read, with its place for messages."""

    def __init__(self, source: str, number: int, text: str) -> None:
        self._where = f"{source}, line {number}"
        self._number = number
        content = _decoded(text)
        if isinstance(content, dict):
            self._content: dict[str, Any] = content
            return
        try:
            content = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite, parse_int=_moderate)
        except json.JSONDecodeError as error:
            problem = f"not JSON: {error.msg} at column {error.colno}"
            raise self._refused(problem, "each line must be one whole JSON object") from error
        except RecursionError as error:
            raise self._refused("not JSON: nested too deeply", "each line must be one whole JSON object") from error
        except ValueError as error:
            raise self._refused(str(error), "write numbers that a 64-bit float can hold") from error
        if not isinstance(content, dict):
            raise self._refused("not a JSON object", "each line must be one trial")
        self._content = content

    def _refused(self, problem: str, remedy: str) -> ImportRefused:
        return ImportRefused(f"{self._where}: {problem}", remedy=remedy)

    def trial(self) -> Trial:
        self._check_schema()
        for key in _REQUIRED:
            if self._content.get(key) is None:
                raise self._refused(f'"{key}" is missing', f"a trial needs {', '.join(_REQUIRED)}")
        outcome = self._outcome()
        samples, warmup, summary = self._numbers("samples_us"), self._numbers("warmup_us"), self._summary()
        has_latency = samples or (summary and (summary.median is not None or summary.avg is not None))
        if outcome == Outcome.MEASURED and not has_latency:
            raise self._refused("measured, but neither samples_us nor summary_us", "give at least one of them")
        return Trial(
            run=self._text("run"),
            slot=self._slot(),
            session=self._optional_text("session") or "imported",
            outcome=outcome,
            reason=self._optional_text("reason"),
            started_at=self._optional_text("started_at") or "",
            duration_s=self._duration_s(),
            samples_us=samples,
            warmup_us=warmup,
            summary=None if samples else summary,
            metrics=self._object("metrics"),
            telemetry=self._object("telemetry"),
            evidence=self._object("evidence"),
            findings=self._findings(),
        )

    def _slot(self) -> Slot:
        """A trial without a block stands alone: nothing is paired with it."""
        block, position = self._integer("block", self._number - 1), self._integer("position", 0)
        return Slot(self._cell(), block, position, self._optional_text("arm"), self._purpose())

    def _purpose(self) -> Pass:
        value = self._optional_text("pass") or str(Pass.LATENCY)
        choices = [str(purpose) for purpose in Pass]
        if value not in choices:
            raise self._refused(f'pass "{value}" is unknown', suggestion(value, choices))
        return Pass(value)

    def _check_schema(self) -> None:
        schema, version = self._content.get("schema"), self._content.get("version")
        if schema != SCHEMA:
            raise self._refused(f"schema is {schema!r}", f'only lines with "schema": "{SCHEMA}" can be read')
        if version != VERSION:
            raise self._refused(f"version is {version!r}", f"this devbench reads version {VERSION}: upgrade it")

    def _cell(self) -> Cell:
        threads = self._integer("threads", 0)
        if threads < 1:
            raise self._refused(f"threads is {threads}", "threads must be 1 or more")
        texts = {key: self._text(key) for key in ("device", "model", "model_sha256", "runner", "delegate")}
        return Cell(
            **texts,
            runner_sha256=self._optional_text("runner_sha256"),
            threads=threads,
            affinity=self._text("affinity"),
            load=self._text("load"),
        )

    def _outcome(self) -> Outcome:
        value = self._text("outcome")
        choices = [str(outcome) for outcome in Outcome]
        if value not in choices:
            raise self._refused(f'outcome "{value}" is unknown', suggestion(value, choices))
        return Outcome(value)

    def _text(self, key: str) -> str:
        value = self._content.get(key)
        if not isinstance(value, str) or not value:
            raise self._refused(f'"{key}" is {value!r}, not a string', f"write {key} as a string")
        if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise self._refused(f'"{key}" holds half a character', f"write {key} as UTF-8 text")
        return value

    def _optional_text(self, key: str) -> str | None:
        return None if self._content.get(key) in (None, "") else self._text(key)

    def _integer(self, key: str, default: int) -> int:
        value = self._content.get(key, default)
        if type(value) is not int or not 0 <= value <= _WHOLE_MAX:
            raise self._refused(f'"{key}" is {value!r}, not a whole number', f"write {key} as a whole number")
        return value

    def _duration_s(self) -> float:
        value = self._content.get("duration_s", 0.0)
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise self._refused(f'"duration_s" is {value!r}, not a number', "write duration_s as a number")
        return float(value)

    def _numbers(self, key: str) -> tuple[float, ...]:
        values = self._content.get(key) or []
        kinds = set(map(type, values)) if isinstance(values, list) else {type(values)}
        if not kinds <= {float, int} or (kinds and min(values) <= 0):
            raise self._refused(f'"{key}" is not a list of positive numbers', f"write {key} in microseconds")
        if kinds and not (min(values) >= LATENCY_US_MIN and max(values) <= LATENCY_US_MAX):
            odd = min(values) if min(values) < LATENCY_US_MIN else max(values)
            raise self._refused(f'"{key}" holds {odd:g}, which can be no latency', f"write {key} in microseconds")
        return tuple(values) if kinds == {float} else tuple(map(float, values))

    def _summary(self) -> Summary | None:
        content = self._content.get("summary_us")
        if content is None:
            return None
        if not isinstance(content, Mapping) or type(content.get("count")) is not int:
            raise self._refused(
                '"summary_us" is not an object with a count', f"its keys are {', '.join(_SUMMARY_KEYS)}"
            )
        for key in content:
            if key not in _SUMMARY_KEYS:
                raise self._refused(f'"summary_us" has a key "{key}"', suggestion(key, _SUMMARY_KEYS))
        for key, value in content.items():
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if value is not None and not is_number:
                raise self._refused(f'"summary_us.{key}" is {value!r}, not a number', "write it in microseconds")
            if value is not None and value < 0:
                raise self._refused(f'"summary_us.{key}" is {value!r}, below zero', "write it in microseconds")
            if value is not None and value > LATENCY_US_MAX:
                raise self._refused(f'"summary_us.{key}" is {value:g}: can be no latency', "write it in microseconds")
        return Summary(**content)

    def _object(self, key: str) -> dict[str, Any]:
        value = self._content.get(key) or {}
        if not isinstance(value, dict):
            raise self._refused(f'"{key}" is not an object', f'write {key} as {{"…": …}}')
        return value

    def _findings(self) -> tuple[Finding, ...]:
        findings = self._content.get("findings") or []
        keys = ("rule", "severity", "reason", "remedy")
        is_sound = isinstance(findings, list) and all(
            isinstance(item, dict) and all(isinstance(item.get(key), str) for key in keys) for item in findings
        )
        if not is_sound or any(item["severity"] not in list(Severity) for item in findings):
            raise self._refused('"findings" is not a list of findings', "each needs rule, severity, reason and remedy")
        return tuple(Finding.from_json(item) for item in findings)


def _decoded(text: str) -> Any:
    """What the line says, read fast; None if it is not plainly right, for the slow and exact reader to say why."""
    try:
        return orjson.loads(text)
    except ValueError:
        return None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is beyond all numbers devbench can keep")
    return value


def _moderate(text: str) -> int:
    """Whole numbers that the store can keep; larger ones are damage."""
    if len(text) > 18:
        raise ValueError(f"{text[:20]}… is beyond all numbers devbench can keep")
    return int(text)
