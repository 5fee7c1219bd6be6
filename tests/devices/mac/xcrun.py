"""A stand-in for `xcrun devicectl` on a Mac, with phones that are folders. No Mac and no iPhone is involved.

It takes exactly the commands and options that devbench uses, keeps to what public logs show (it does not replace
files, it needs the folder of a destination, it says errors as JSON and as text), replays failures from tests/data/ios,
and plays the benchmark app: a request in Documents becomes console lines and a result. Its world is its own folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

WORLD = Path(__file__).resolve().parent
OPTIONS = {"--device", "--timeout", "--json-output", "--bundle-id", "--domain-type", "--domain-identifier"}
OPTIONS |= {"--source", "--destination", "--pid", "--environment-variables"}
FLAGS = {"--terminate-existing", "--console"}
COMMANDS = ("list devices", "device info details", "device info apps", "device install app", "device uninstall app")
COMMANDS += ("device copy to", "device copy from", "device process launch", "device process terminate")
BUILD = "8" * 64
PRODUCTS = {"iPhone16,1": (6, 8_000_000_000), "iPhone13,1": (6, 4_000_000_000)}


def main() -> int:
    words = sys.argv[1:]
    with (WORLD / "calls").open("a") as calls:
        calls.write(json.dumps(words) + "\n")
    if words[:1] == ["xctrace"]:
        return xctrace(words[1:], current_fault(None) or {})
    if words[:1] != ["devicectl"]:
        return complain(f'xcrun: error: unable to find utility "{words[0]}", not a developer tool or in PATH', 72)
    command, options, rest = parsed(words[1:])
    fault = current_fault(options.get("--device"))
    if fault and fault.get("step") in (command, "*"):
        return replay(fault, command, options)
    phone = find(options["--device"]) if "--device" in options else None
    if phone is None and command != "list devices":
        return fail(command, options, 1000, f"The specified device was not found. (Name: {options.get('--device')})")
    return perform(command, options, rest, phone, fault or {})


def parsed(words: list[str]) -> tuple[str, dict[str, str], list[str]]:
    """Command, options and the rest; anything unknown ends it, as the real one does."""
    command = next((known for known in COMMANDS if words[: len(known.split())] == known.split()), None)
    if command is None:
        sys.exit(complain(f"error: Unexpected argument '{' '.join(words[:3])}'", 64))
    options: dict[str, str] = {}
    rest: list[str] = []
    waiting = words[len(command.split()) :]
    while waiting:
        word = waiting.pop(0)
        if word in OPTIONS:
            options[word] = waiting.pop(0)
        elif word.startswith("--") and word not in FLAGS:
            sys.exit(complain(f"error: Unknown option '{word}'", 64))
        elif word not in FLAGS:
            rest.append(word)
    return command, options, rest


def perform(command: str, options: dict[str, str], rest: list[str], phone: Any, fault: dict[str, Any]) -> int:
    if command == "list devices":
        return answer(options, listing())
    udid = phone["hardwareProperties"]["udid"]
    home = WORLD / "phones" / udid
    if command == "device info details":
        return answer(options, {"info": {"outcome": "success"}, "result": phone})
    if command == "device info apps":
        known = [{"bundleIdentifier": app.name, "name": app.name, "version": "1"} for app in sorted(home.iterdir())]
        apps = [app for app in known if app["bundleIdentifier"] == options["--bundle-id"]]
        return answer(options, {"info": {"outcome": "success"}, "result": {"apps": apps}})
    if command == "device install app":
        bundle = json.loads((Path(rest[0]) / "Info.json").read_text())["bundle"]
        (home / bundle / "Documents").mkdir(parents=True, exist_ok=True)
        return answer(options, {"info": {"outcome": "success"}, "result": {"installedApplications": [{}]}})
    if command == "device uninstall app":
        os.system(f"rm -r {home / rest[0]}")
        return answer(options, {"info": {"outcome": "success"}, "result": {}})
    if command.startswith("device copy"):
        return copy(command, options, home, fault)
    if command == "device process terminate":
        return terminate(options)
    (WORLD / "environment").write_text(options.get("--environment-variables", "{}"))
    return launch(rest, home, phone, fault)


def copy(command: str, options: dict[str, str], home: Path, fault: dict[str, Any]) -> int:
    container = home / options["--domain-identifier"]
    source, target = Path(options["--source"]), Path(options["--destination"])
    source, target = (source, container / target) if command.endswith("to") else (container / source, target)
    if fault.get("name") == "copy-hangs":
        time.sleep(600)
    if not container.is_dir() or not source.is_file() or not target.parent.is_dir():
        return fail(command, options, 7000, f"The file {source.name} could not be copied: no such file or folder.")
    if target.exists():
        return fail(command, options, 7000, f"The file {target.name} already exists.")
    content = source.read_bytes()
    torn = fault.get("name") == "torn-copy" and "file" in target.name
    target.write_bytes(content[: len(content) // 2] if torn else content)
    if torn:
        (WORLD / "fault.json").unlink()
    return answer(options, {"info": {"outcome": "success"}, "result": {}})


def terminate(options: dict[str, str]) -> int:
    try:
        os.kill(int(options["--pid"]), signal.SIGKILL)
    except ProcessLookupError:
        return fail("device process terminate", options, 3, "No such process")
    return answer(options, {"info": {"outcome": "success"}, "result": {}})


# The app


def launch(rest: list[str], home: Path, phone: Any, fault: dict[str, Any]) -> int:
    bundle, word, nonce = rest
    documents = home / bundle / "Documents"
    print(
        f"Launched application with {bundle} bundle identifier.\nWaiting for the application to terminate…", flush=True
    )
    assert word == "request"
    request = json.loads((documents / f"devbench-request-{nonce}.json").read_text())
    for left in [*documents.glob("devbench-request-*"), *documents.glob("devbench-result-*")]:
        left.unlink()
    print(f"devbench: started {nonce} pid {os.getpid()}", flush=True)
    name = fault.get("name") if request["mode"] == "run" or fault.get("always") else None
    if name == "hang":
        (WORLD / "hanging").touch()
        time.sleep(600)
    if name in ("jetsam", "crash"):
        print(f"App terminated due to signal {9 if name == 'jetsam' else 11}.", flush=True)
        return 1
    if name == "no-result":
        return 0
    result = app_result(request, documents, phone, name)
    content = json.dumps(result).encode()
    if name == "truncated":
        content = content[: len(content) // 2]
    if name == "huge":
        content += b" " * (33 * 1024 * 1024)
    (documents / f"devbench-result-{nonce}.json").write_bytes(content)
    return 0


def app_result(request: dict[str, Any], documents: Path, phone: Any, name: str | None) -> dict[str, Any]:
    cores, memory = PRODUCTS[phone["hardwareProperties"]["productType"]]
    state = {"thermal_state": 3 if name == "hot" else 0, "low_power_mode": False, "battery_percent": 81.0}
    state["charging"] = True
    result: dict[str, Any] = {
        "schema": "devbench.ios.result",
        "version": 2 if name == "other-version" else 1,
        "nonce": "0" * 16 if name == "other-nonce" else request["nonce"],
        "mode": request["mode"],
        "app": {
            "version": "1.0",
            "executable_sha256": BUILD,
            "runtime": "TensorFlowLiteC",
            "runtime_version": "2.17.0",
        },
        "device": {"product": phone["hardwareProperties"]["productType"], "cores": cores, "memory_bytes": memory},
        "state_before": state,
        "state_after": state,
    }
    if request["mode"] == "check":
        return result | {"files": verified(documents)}
    if request["mode"] == "prune":
        return result | {"removed": 0}
    return result | run(request, documents.parent / request["model"], name)


def verified(documents: Path) -> dict[str, int]:
    found = {}
    for path in documents.glob("devbench-file-*"):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if path.name == f"devbench-file-{digest}":
            found[digest] = path.stat().st_size
        else:
            path.unlink()
    return found


def run(request: dict[str, Any], model: Path, name: str | None) -> dict[str, Any]:
    if request["delegate"] == "coreml":
        print("INFO: CoreML delegate: 60 nodes delegated out of 66 nodes, with 2 partitions.", flush=True)
    if request["delegate"] == "xnnpack" or name == "silent-xnnpack":
        print("INFO: Created TensorFlow Lite XNNPACK delegate for CPU.", flush=True)
    if name == "no-delegate":
        return {"error": {"kind": "delegate", "message": "Core ML could not be made", "remedy": "use another"}}
    samples: list[Any] = [1000.0 / request["threads"] + index % 7 for index in range(request["runs"])]
    if name == "nan":
        samples[3] = float("nan")
    if name == "negative":
        samples[3] = -1.0
    threads = 1 if name == "one-thread" else request["threads"]
    digest = "0" * 64 if name == "other-model" else hashlib.sha256(model.read_bytes()).hexdigest()
    memory = {"before_bytes": 20_000_000, "after_bytes": 31_000_000, "peak_bytes": 33_000_000}
    counted = {"samples_us": samples, "warmup_us": [1500.0] * request["warmup_runs"], "count": len(samples)}
    asked = {"threads": threads, "delegate": request["delegate"], "model_sha256": digest, "stopped_by": "count"}
    return {**counted, **asked, "memory": memory, "init_us": 4200.5}


# Instruments


def xctrace(words: list[str], fault: dict[str, Any]) -> int:
    """`version` and `record`, as far as public logs show them: it says when it records, and SIGINT ends it in order."""
    name = fault.get("name")
    if name == "no-xctrace":
        return complain('xcrun: error: unable to find utility "xctrace", not a developer tool or in PATH', 72)
    if words == ["version"]:
        print("xctrace version 16.0 (16A242d)")
        return 0
    flags = {"--all-processes", "--no-prompt"}
    pairs = [word for word in words[1:] if word not in flags]
    options = dict(zip(pairs[::2], pairs[1::2], strict=False))
    known = {"--template", "--instrument", "--device", "--time-limit", "--output"}
    if words[:1] != ["record"] or set(options) - known or find(options["--device"]) is None:
        return complain("xctrace: error: invalid arguments; see `xctrace help record`", 64)
    if name == "xctrace-refuses":
        return complain("Export failed: Device is busy (Preparing the phone for development)", 21)
    ended: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: ended.append(number))
    print("Starting recording with the Time Profiler template. Targeting all processes.", flush=True)
    print("Ctrl-C to stop the recording", flush=True)
    while not ended:
        time.sleep(0.02)
    bundle = Path(options["--output"])
    if name != "no-bundle":
        bundle.mkdir(parents=True)
        (bundle / "form.template").write_text(json.dumps(options))
        (bundle / "signposts").write_text((WORLD / "environment").read_text())
    print(f"Recording completed. Saving output file...\nOutput file saved as: {bundle.name}", flush=True)
    return 0


# The world


def listing() -> Any:
    return json.loads((WORLD / "devices.json").read_text())


def find(udid: str) -> Any:
    names = [(phone, phone["hardwareProperties"].get("udid")) for phone in listing()["result"]["devices"]]
    return next((phone for phone, known in names if known == udid), None)


def current_fault(udid: str | None) -> dict[str, Any] | None:
    path = WORLD / "fault.json"
    fault = json.loads(path.read_text()) if path.exists() else None
    return fault if fault and fault.get("udid") in (None, udid) else None


def replay(fault: dict[str, Any], command: str, options: dict[str, str]) -> int:
    if "error" in fault:
        document = {"error": fault["error"], "info": {"commandType": f"devicectl.{command}", "outcome": "failed"}}
        Path(options["--json-output"]).write_text(json.dumps(document))
    return complain(fault.get("stderr", "ERROR: see JSON"), fault.get("exit", 1))


def answer(options: dict[str, str], document: Any) -> int:
    if "--json-output" in options:
        Path(options["--json-output"]).write_text(json.dumps(document))
    print("Complete!")
    return 0


def fail(command: str, options: dict[str, str], code: int, text: str) -> int:
    error = {
        "code": code,
        "domain": "com.apple.dt.CoreDeviceError",
        "userInfo": {"NSLocalizedDescription": {"string": text}},
    }
    return replay(
        {"error": error, "stderr": f"ERROR: {text} (com.apple.dt.CoreDeviceError error {code})"}, command, options
    )


def complain(text: str, status: int) -> int:
    sys.stderr.write(text.rstrip("\n") + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
