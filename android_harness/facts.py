"""What a phone is: the agent's probe, and one script of questions to Android's own tools."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from android_harness import dumpsys
from orchestrator.platforms import clusters
from orchestrator.platforms.base import Ask, Facts
from orchestrator.platforms.questions import NOT_ASKED, Answer, answers, batch

STATE_QUESTIONS = {
    "thermalservice": "dumpsys thermalservice",
    "battery": "dumpsys battery",
    "power": "dumpsys power | grep -m 1 mWakefulness=",
    "low_power": "settings get global low_power",
}
_FACT_QUESTIONS = STATE_QUESTIONS | {
    "props": "getprop",
    "root": 'if ! command -v su >/dev/null; then echo no; else case "$(su -c id </dev/null 2>/dev/null)" in *uid=0*)'
    ' echo su -c;; *) case "$(su 0 id </dev/null 2>/dev/null)" in *uid=0*) echo su 0 sh -c;; *) echo denied;; esac;;'
    " esac; fi",
    "selinux": "getenforce",
    "gpu": "dumpsys SurfaceFlinger | grep GLES:",
    "nnapi": "dumpsys -l | grep neuralnetworks",
    "adb_wifi": "settings get global adb_wifi_enabled",
}
_ROOT_WAYS = ("su -c", "su 0 sh -c")
_EMULATORS = ("ranchu", "goldfish", "cutf_cvm", "cutf")


def read_facts(probed: Mapping[str, Any], ask: Ask, workdir: str) -> Facts:
    """The facts, in one round trip beyond the probe."""
    questions = _FACT_QUESTIONS | {"free": f'df -k "{workdir}" 2>/dev/null || df "{workdir}"'}
    found = answers(ask(["sh", "-c", batch(questions)]).stdout)
    props = dumpsys.properties(found.get("props", NOT_ASKED).text)
    android = _identity(props) | _now(found) | _abilities(found, props, probed)
    cpus = probed.get("cpus") or []
    return Facts(
        machine=str(probed.get("machine", "unknown")),
        cpu_model=_hardware(android) or (str(probed["cpu_model"]) if probed.get("cpu_model") else None),
        cores=len(cpus) or 1,
        clusters=clusters.clusters_of(cpus),
        kernel=str(probed.get("kernel_release", "unknown")),
        os=_system(android),
        memory_kb=probed.get("mem_total_kb"),
        governor=clusters.governors_of(cpus),
        virtualisation=android["emulator"],
        sensors=_sensors(probed, android),
        absent=_absent(probed, found, android),
        raw={**probed, "android": android},
    )


def _identity(props: Mapping[str, str]) -> dict[str, Any]:
    """Which phone, and which build of which Android."""
    api = props.get("ro.build.version.sdk", "")
    soc = props.get("ro.soc.model") or props.get("ro.board.platform") or props.get("ro.hardware")
    emulated = props.get("ro.kernel.qemu") == "1" or props.get("ro.boot.qemu") == "1"
    board = props.get("ro.hardware", "")
    return {
        "manufacturer": props.get("ro.product.manufacturer"),
        "model": props.get("ro.product.model"),
        "device": props.get("ro.product.device"),
        "soc": soc,
        "release": props.get("ro.build.version.release"),
        "api": int(api) if re.fullmatch(r"\d{1,4}", api, re.ASCII) else None,
        "fingerprint": props.get("ro.build.fingerprint"),
        "build_type": props.get("ro.build.type"),
        "security_patch": props.get("ro.build.version.security_patch"),
        "abis": [abi for abi in props.get("ro.product.cpu.abilist", "").split(",") if abi],
        "emulator": f"Android emulator ({board or 'qemu'})" if emulated or board in _EMULATORS else None,
        "boot_completed": props.get("sys.boot_completed") == "1" if props else None,
    }


def _now(found: Mapping[str, Answer]) -> dict[str, Any]:
    """How the phone was when it was asked."""
    return {
        "thermal": asdict(dumpsys.thermal(found.get("thermalservice", NOT_ASKED).text)),
        "battery": asdict(dumpsys.battery(found.get("battery", NOT_ASKED).text)),
        "screen_on": dumpsys.awake(found.get("power", NOT_ASKED).text),
        "low_power_mode": dumpsys.setting_is_on(found.get("low_power", NOT_ASKED).text),
    }


def _abilities(found: Mapping[str, Answer], props: Mapping[str, str], probed: Mapping[str, Any]) -> dict[str, Any]:
    """What it has, and what it lets us do."""
    way = found.get("root", NOT_ASKED).text
    root = "adbd" if probed.get("uid") == 0 else way if way in _ROOT_WAYS else None
    selinux = found.get("selinux", NOT_ASKED).text
    ports = (props.get(name, "") for name in ("service.adb.tcp.port", "persist.adb.tcp.port"))
    wireless = dumpsys.setting_is_on(found.get("adb_wifi", NOT_ASKED).text) is True
    return {
        "root": root,
        "selinux": selinux if selinux in ("Enforcing", "Permissive", "Disabled") else None,
        "gpu": dumpsys.gpu(found.get("gpu", NOT_ASKED).text),
        "egl": props.get("ro.hardware.egl"),
        "vulkan": props.get("ro.hardware.vulkan"),
        "nnapi": list(dumpsys.accelerators(found.get("nnapi", NOT_ASKED).text)),
        "free_kb": dumpsys.free_kb(found.get("free", NOT_ASKED).text),
        "adb_over_network": wireless or any(re.fullmatch(r"[1-9]\d*", port, re.ASCII) for port in ports),
    }


def _hardware(android: Mapping[str, Any]) -> str | None:
    """`Google Pixel 8, Tensor G3`."""
    maker, model = android["manufacturer"] or "", android["model"] or ""
    named = model if model.lower().startswith(maker.lower()) else f"{maker} {model}"
    return ", ".join(part for part in (named.strip(), android["soc"]) if part) or None


def _system(android: Mapping[str, Any]) -> str | None:
    """`Android 14 (API 34), build AP2A.240805.005/12025142`."""
    if android["release"] is None:
        return None
    level = f" (API {android['api']})" if android["api"] is not None else ""
    fingerprint = android["fingerprint"] or ""
    match = re.fullmatch(r"[^:]*:[^/]*/([^/:]+/[^/:]+):.*", fingerprint)
    build = match[1] if match else fingerprint
    return f"Android {android['release']}{level}" + (f", build {build}" if build else "")


def _sensors(probed: Mapping[str, Any], android: Mapping[str, Any]) -> tuple[str, ...]:
    """The kernel's zones that give a temperature, then those the thermal HAL gives beyond them."""
    zones = [str(zone.get("name")) for zone in probed.get("thermal") or [] if _celsius(zone) is not None]
    return tuple(dict.fromkeys([*zones, *(str(sensor["name"]) for sensor in android["thermal"]["temperatures"])]))


def _celsius(zone: Mapping[str, Any]) -> float | None:
    milli = zone.get("temp_mc")
    return dumpsys.plausible_c(None if milli is None else milli / 1000)


def _absent(probed: Mapping[str, Any], found: Mapping[str, Answer], android: Mapping[str, Any]) -> dict[str, str]:
    """What could not be read, and why."""
    absent = {str(key): str(why) for key, why in (probed.get("absent") or {}).items()}
    for zone in probed.get("thermal") or []:
        if _celsius(zone) is None:
            absent[f"thermal.{zone.get('name')}"] = str(zone.get("error") or "no plausible value")
    known = {
        "props": android["release"],
        "thermalservice": android["thermal"]["status"],
        "battery": android["battery"]["percent"],
        "power": android["screen_on"],
        "low_power": android["low_power_mode"],
        "selinux": android["selinux"],
        "gpu": android["gpu"],
        "nnapi": android["nnapi"] or None,
        "free": android["free_kb"],
    }
    for name, value in known.items():
        if value is None:
            absent[f"android.{name}"] = _reason(name, found.get(name, NOT_ASKED))
    if android["root"] is None:
        absent["android.root"] = {"denied": "su is there and refuses"}.get(found.get("root", NOT_ASKED).text, "no su")
    return absent


def _reason(name: str, answer: Answer) -> str:
    if name == "nnapi" and answer.exit == 1 and not answer.text:
        return "no driver is registered as a service"
    return answer.trouble or "nothing readable in the answer"
