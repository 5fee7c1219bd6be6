"""What a run of the benchmark app left in the log and in its own file, read into a Reading. Pure.

The lines are those of device_agents/benchmark_app.sh. Only lines of the process that logged this trial's own name
count: an older trial, another app with TFLite in it, or benchmark_model at a shell logs under the same tag.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from android_harness.benchmark_result import read_result
from orchestrator.runners.base import Reading, RunnerError
from orchestrator.runners.benchmark_model_output import read_output, text_of
from orchestrator.trial import Summary

_LINE = re.compile(
    r"\d\d-\d\d \d\d:\d\d:\d\d\.\d{3,6} +(?P<pid>\d{1,10}) +\d{1,10} (?P<level>[VDIWEFA]) "
    r"(?P<tag>.{1,60}?) *: ?(?P<text>.*)"
)
_PREFIXES = {"I": "INFO", "W": "WARN", "E": "ERROR", "F": "FATAL", "A": "FATAL", "V": "VERBOSE", "D": "VERBOSE"}
_HAS_PREFIX = re.compile(r"(?:INFO|WARN|WARNING|ERROR|FATAL|VERBOSE): ")
_ARGUMENTS = "Running TensorFlow Lite benchmark with args: "
_TOOL_TAGS = ("tflite",)
_AGREEMENT = 1e-5
"""The log has six digits, the file has single precision."""
_SHARED = ("avg", "median", "min", "max", "p5", "p95")
_DEATHS = (
    (("lowmemorykiller", "lmkd"), "", "out-of-memory", "free memory on the device, or use a smaller model"),
    (("ActivityManager",), "ANR in ", "not-responding", "lower max_ms under [measure], or try another delegate"),
    (("libc", "DEBUG"), "atal signal", "crash", "try the model with another delegate; see the trial's log"),
    (("AndroidRuntime",), "", "crash", "see the trial's log; is the APK whole, and for this CPU?"),
    (("ActivityManager",), "Killing ", "killed", "see who stopped the app, in the trial's log"),
)
"""Who says why an app died, most telling first: tags, a word of the text, the kind, the remedy."""

_REFUSALS = {
    "INSTALL_FAILED_UPDATE_INCOMPATIBLE": "another build with another signature is installed: "
    "`adb uninstall org.tensorflow.lite.benchmark`",
    "INSTALL_FAILED_INSUFFICIENT_STORAGE": "free space on the device; `devbench devices --clean` removes our files",
    "INSTALL_FAILED_NO_MATCHING_ABIS": "add an APK for this CPU: `devbench binaries fetch tf-nightly-app PLATFORM`",
    "INSTALL_FAILED_OLDER_SDK": "the phone's Android is too old for this APK: use an older one, or benchmark_model",
    "INSTALL_FAILED_USER_RESTRICTED": "allow installing over USB in the phone's developer options",
    "INSTALL_FAILED_VERIFICATION_FAILURE": "switch off verifying apps over USB in the phone's developer options",
    "INSTALL_PARSE_FAILED": "the APK is damaged or not signed: get it again",
}


@dataclass(frozen=True)
class _Logged:
    pid: int
    level: str
    tag: str
    text: str


def facts_in(stdout: Sequence[bytes]) -> dict[str, str]:
    """What the driver says, by key; the last word counts."""
    words = (text_of(line).partition(" ")[2].partition(" ") for line in stdout if line.startswith(b"app "))
    return {key: text for key, _, text in words}


def install_error(said: str) -> RunnerError:
    """Why there is no app to run, in the package manager's words."""
    reason = re.search(r"INSTALL_[A-Z_]{1,60}", said)
    remedy = next((text for kind, text in _REFUSALS.items() if reason and reason[0].startswith(kind)), None)
    detail = said.replace("(none)", "").replace("(other)", "").strip()
    return RunnerError(
        "install",
        f"the phone did not install the app: {detail[:300] or 'it said nothing'}",
        remedy or "install it by hand to see more: `adb install -r -d -t -g FILE.apk`",
        permanent=reason is not None,
    )


def read_app_output(stdout: Sequence[bytes]) -> Reading:
    """What the app reported. Nothing is raised, and no number is given that was not printed."""
    facts = facts_in(stdout)
    ended = facts.get("ended", "")
    if ended == "install-refused":
        return Reading(error=install_error(facts.get("install-refused", "")))
    logged = [line for raw in stdout if raw.startswith(b"log ") and (line := _parse(text_of(raw[4:])))]
    pid = _own_pid(logged, facts.get("name"))
    lines = [_as_printed(line) for line in logged if line.pid == pid and line.tag in _TOOL_TAGS]
    file = facts.get("result-file", "")
    reading = read_output(lines, _last_word(logged, pid, ended) if not file else [])
    reading = _with_file(reading, file)
    observed = {**reading.observed, "process": _process(facts), "app": _app_facts(facts, ended)}
    reading = replace(reading, observed=observed, metrics=_metrics(reading.metrics, facts))
    return replace(reading, error=_error(reading, facts, logged, pid), summary=reading.summary if pid else None)


def _last_word(logged: Sequence[_Logged], pid: int | None, ended: str) -> list[bytes]:
    """What the tool's `main` prints when it has failed, and the app has no such `main`: it ended with errors, and
    without a result."""
    has_errors = any(line.pid == pid and line.tag in _TOOL_TAGS and line.level in "EF" for line in logged)
    return [b"ERROR: Benchmarking failed."] if ended == "finished" and has_errors else []


def _parse(text: str) -> _Logged | None:
    found = _LINE.fullmatch(text)
    return _Logged(int(found["pid"]), found["level"], found["tag"], found["text"]) if found else None


def _own_pid(logged: Sequence[_Logged], name: str | None) -> int | None:
    """The process that was given this trial's name, by its own words."""
    marks = (f"--benchmark_name={name}", f"Benchmark name: [{name}]")
    for line in logged:
        if name and line.tag.startswith("tflite") and any(mark in line.text for mark in marks):
            return line.pid
    return None


def _as_printed(line: _Logged) -> bytes:
    """The line as the tool prints it at a shell. Whether the prefix is in the log too depends on the release."""
    text = line.text if _HAS_PREFIX.match(line.text) else f"{_PREFIXES[line.level]}: {line.text}"
    return text.encode()


def _with_file(reading: Reading, hexadecimal: str) -> Reading:
    """The reading with what the app's own file says: a witness of what the log has, or all there is where the log
    lost lines."""
    result = read_result(hexadecimal)
    if result is None or result.avg is None or reading.error:
        return reading
    observed = {**reading.observed, "result_file": result.as_json()}
    logged = reading.summary
    if logged is None:
        return replace(reading, summary=result, observed={**observed, "count": result.count, "summary_from": "file"})
    if logged.count != result.count or any(not _agree(logged, result, name) for name in _SHARED):
        disagreement = RunnerError(
            "result",
            f"log and result file of the app disagree: {logged.avg} us of {logged.count} inferences, "
            f"and {result.avg:.6g} us of {result.count}",
            "see the trial's log; does another program use the app?",
            permanent=False,
        )
        return replace(reading, summary=None, observed=observed, error=disagreement)
    return replace(reading, observed=observed)


def _agree(one: Summary, other: Summary, name: str) -> bool:
    left, right = getattr(one, name), getattr(other, name)
    return left is None or right is None or abs(left - right) <= _AGREEMENT * max(left, right)


def _process(facts: Mapping[str, str]) -> dict[str, Any]:
    """What was seen of the app's process; empty where it could not be seen."""
    words = dict(word.partition("=")[::2] for word in facts.get("process", "").split())
    numbers = {"pid": "pid", "threads": "threads_max", "cpu_ticks": "cpu_ticks"}
    process: dict[str, Any] = {name: int(words[key]) for key, name in numbers.items() if words.get(key, "").isdigit()}
    if process.get("threads_max") == 0:
        return {}  # the script never saw it
    mask = words.get("affinity", "").replace(",", "")
    if re.fullmatch(r"[0-9a-f]{1,256}", mask):
        process["affinity"] = mask.lstrip("0") or "0"
    if words.get("cpuset"):
        process["cpuset"] = words["cpuset"]
    return process


def _app_facts(facts: Mapping[str, str], ended: str) -> dict[str, str]:
    kept = {key: facts[key] for key in ("name", "installed", "start") if key in facts}
    return kept | {"ended": ended}


def _metrics(metrics: Mapping[str, Any], facts: Mapping[str, str]) -> dict[str, Any]:
    found = re.search(r"\bhwm_kb=(\d{1,12})", facts.get("process", ""))
    return {**metrics, **({"process_maxrss_kb": int(found[1])} if found else {})}


def _error(
    reading: Reading, facts: Mapping[str, str], logged: Sequence[_Logged], pid: int | None
) -> RunnerError | None:
    """Why there is no result to believe; the tool's own reason where it gave one."""
    ended = facts.get("ended")
    if ended is None:
        return reading.error  # the driver was cut off: the agent says by what
    if ended == "died":
        return _death(logged)
    if reading.error:
        return reading.error
    if reading.summary is not None or ended == "reported":
        return _other_arguments(facts, logged, pid)
    return {"start-refused": _start_refused(facts), "timeout": _too_long(), "finished": _lost_lines()}.get(
        ended, _no_log()
    )


def _death(logged: Sequence[_Logged]) -> RunnerError:
    for tags, word, kind, remedy in _DEATHS:
        for line in logged:
            if line.tag in tags and word in line.text:
                return RunnerError(f"app-{kind}", f"the app died: {line.text[:300]}", remedy, permanent=False)
    return RunnerError("app-died", "the app died, and the log does not say why", "see the trial's log", permanent=False)


def _other_arguments(facts: Mapping[str, str], logged: Sequence[_Logged], pid: int | None) -> RunnerError | None:
    """What the app says it was started with begins with what it was given; for Hexagon it adds a path of its own."""
    if pid is None:
        return _nameless()
    echo = next((line.text for line in logged if line.pid == pid and line.text.startswith(_ARGUMENTS)), None)
    given = facts.get("args", "")
    if echo is None or echo.removeprefix(_ARGUMENTS).startswith(given):
        return None
    return RunnerError("args", "the app was started with other flags than it was given", "see the log", permanent=False)


def _nameless() -> RunnerError:
    message = "no line of the log carries this trial's name: whatever was printed is not its result"
    return RunnerError("log", message, "see whether the log buffer is too small (developer options)", permanent=False)


def _start_refused(facts: Mapping[str, str]) -> RunnerError:
    message = f"Android did not start the app: {facts.get('start', '')[:300]}"
    return RunnerError("start", message, "unlock the phone, and see the trial's log", permanent=False)


def _too_long() -> RunnerError:
    return RunnerError(
        "timeout",
        "the app reported nothing in the time it had: stopped",
        "raise trial_timeout under [measure], lower max_ms, or see whether the phone asks something on its screen",
        permanent=False,
    )


def _lost_lines() -> RunnerError:
    return RunnerError(
        "log",
        "the app ended, and its result is not in the log: lines were lost",
        "raise the size of the log buffer in the phone's developer options",
        permanent=False,
    )


def _no_log() -> RunnerError:
    message = "the phone's log cannot be followed: logcat ended, or shows nothing"
    return RunnerError("log", message, "switch the log on in the phone's developer options", permanent=False)
