"""What devbench and the benchmark app tell each other: requests, results and the app's own lines. Pure.

The schema is described in benchmark_app/README.md. A result is believed only if it is whole, of the version we know and
of this very trial: its nonce says so.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

REQUEST, RESULT, VERSION = "devbench.ios.request", "devbench.ios.result", 1
BUNDLE = "org.devbench.benchmark"
"""The app's identifier unless devices.toml says otherwise: a free account must choose one of its own."""
APP_FOLDER = "DevbenchBenchmark.app"
FOLDER = "Documents"
"""Inside the app's container. It is there before the app first runs, which no folder of our own would be."""
RESULT_MAX_BYTES = 32 * 1024 * 1024
SAMPLES_MAX = 200_000
THERMAL_STATES = ("nominal", "fair", "serious", "critical")

_STARTED = re.compile(r"^devbench: started (?P<nonce>[0-9a-f]+) pid (?P<pid>\d+)")
_SIGNAL = re.compile(r"App terminated due to signal (\d+)")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class BadResult(ValueError):
    """A result that is not what an app of ours writes for this trial."""


def request(mode: str, **content: Any) -> dict[str, Any]:
    """What the app is to do; the stage adds the nonce."""
    return {"schema": REQUEST, "version": VERSION, "mode": mode, **content}


def request_path(nonce: str) -> str:
    return f"{FOLDER}/devbench-request-{nonce}.json"


def result_path(nonce: str) -> str:
    return f"{FOLDER}/devbench-result-{nonce}.json"


def file_path(digest: str) -> str:
    return f"{FOLDER}/devbench-file-{digest}"


def started_pid(lines: Iterable[str], nonce: str) -> int | None:
    """The app's process, once it has said that it works on this request."""
    for line in lines:
        if (found := _STARTED.match(line)) and found["nonce"] == nonce:
            return int(found["pid"])
    return None


def ending_signal(lines: Iterable[str]) -> int | None:
    """By which signal the app ended, as devicectl tells it."""
    return next((int(found[1]) for line in lines if (found := _SIGNAL.search(line))), None)


def read_result(content: bytes, nonce: str) -> Mapping[str, Any]:
    """The result of the request with that nonce; BadResult says what is wrong with it."""
    if len(content) > RESULT_MAX_BYTES:
        raise BadResult(f"the app's result is larger than {RESULT_MAX_BYTES // 1024 // 1024} MiB")
    if not content.strip():
        raise BadResult("the app's result is empty")
    try:
        found = json.loads(content.decode("utf-8"), parse_constant=_no_number)
    except BadResult:
        raise
    except (ValueError, RecursionError) as error:
        raise BadResult(f"the app's result is cut short or no JSON ({len(content)} bytes)") from error
    if not isinstance(found, Mapping) or found.get("schema") != RESULT:
        raise BadResult(f"the app's result is no {RESULT}")
    if found.get("version") != VERSION:
        raise BadResult(f"the app speaks version {found.get('version')} of its results, and this devbench {VERSION}")
    if found.get("nonce") != nonce:
        raise BadResult(f"the result is another trial's (nonce {str(found.get('nonce'))[:16]} instead of {nonce})")
    return found


def _no_number(word: str) -> NoReturn:
    raise BadResult(f"the app's result has {word} where a number belongs")


def samples(result: Mapping[str, Any], key: str) -> tuple[float, ...]:
    """A list of latencies, every one a positive number; BadResult where one is not."""
    found = result.get(key, [])
    if not isinstance(found, list) or len(found) > SAMPLES_MAX:
        raise BadResult(f"{key} in the app's result is no list of at most {SAMPLES_MAX} numbers")
    for value in found:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
            raise BadResult(f"{key} in the app's result holds {str(value)[:40]!r}, which is no latency")
    return tuple(float(value) for value in found)


def part(content: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """An object inside another; empty where there is none."""
    found = content.get(key)
    return found if isinstance(found, Mapping) else {}


def whole_number(content: Mapping[str, Any], key: str) -> int | None:
    found = content.get(key)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def digest(content: Mapping[str, Any], key: str) -> str | None:
    found = content.get(key)
    return found if isinstance(found, str) and _SHA256.fullmatch(found) else None


def state_of(found: Mapping[str, Any]) -> dict[str, Any]:
    """One of the app's looks at the phone, by the names that limits are about."""
    level = found.get("battery_percent")
    switches = {key: found.get(key) for key in ("charging", "low_power_mode")}
    return {
        "thermal_status": whole_number(found, "thermal_state"),
        "battery_percent": float(level) if isinstance(level, int | float) and 0 <= level <= 100 else None,
        **{key: value if isinstance(value, bool) else None for key, value in switches.items()},
    }
