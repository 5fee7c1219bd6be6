"""Linux: this machine and embedded boards, as the agent's probe describes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from orchestrator import telemetry
from orchestrator.fleet import Limits
from orchestrator.plan import AS_FOUND, Conditions
from orchestrator.platforms.base import Ask, Cluster, Facts, Hold
from orchestrator.trial import Finding, Severity

_PHONE_CONDITIONS = ("screen", "airplane", "fixed_performance", "doze", "stop_background_apps")
_GOVERNOR_PATH = "/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"


class LinuxPlatform:
    """Reads what the kernel shows; holds the governor where permitted."""

    name = "linux"
    limits = ("temperature_c_max", "battery_percent_min")
    default_runner = "litert_runner"
    machine_command = ("uname", "-m")

    def facts(self, probed: Mapping[str, Any], ask: Ask) -> Facts:
        cpus = probed.get("cpus") or []
        governors = sorted({cpu["governor"] for cpu in cpus if cpu.get("governor")})
        zones = [str(zone["name"]) for zone in probed.get("thermal") or [] if zone.get("temp_mc") is not None]
        return Facts(
            machine=str(probed.get("machine", "unknown")),
            cpu_model=_text(probed.get("device_tree_model") or probed.get("cpu_model")),
            cores=len(cpus) or 1,
            clusters=_clusters(cpus),
            kernel=str(probed.get("kernel_release", "unknown")),
            os=_text(probed.get("os_release")),
            memory_kb=probed.get("mem_total_kb"),
            governor=", ".join(governors) or None,
            virtualisation=_virtualisation(probed),
            sensors=tuple(zones),
            absent={str(key): str(why) for key, why in (probed.get("absent") or {}).items()},
            raw=probed,
        )

    def affinity_mask(self, affinity: str, facts: Facts) -> str | None:
        if affinity == "any":
            return None
        if affinity in ("big", "mid", "little"):
            return _cluster_mask(affinity, facts)
        mask = int(affinity, 16)
        online = sum(1 << cpu for cluster in facts.clusters for cpu in cluster.cpus)
        if mask & ~online:
            raise ValueError(f"mask {affinity} names CPUs this device does not have (it has {online:x})")
        return f"{mask:x}"

    def holds(self, conditions: Conditions, facts: Facts) -> tuple[tuple[Hold, ...], tuple[Finding, ...]]:
        wanted = conditions.governor
        if wanted == AS_FOUND:
            return (), ()
        if facts.governor is None:
            return (), (_not_held(wanted, f"this kernel shows no CPU frequency control ({_why_no_governor(facts)})"),)
        available = facts.raw.get("governors") or []
        if available and wanted not in available:
            return (), (_not_held(wanted, f"the kernel offers only {', '.join(available)}"),)
        if facts.raw.get("uid") not in (0, None):
            return (), (_not_held(wanted, "only root may change it"),)
        cpus = [cpu for cluster in facts.clusters for cpu in cluster.cpus]
        return tuple(Hold(_GOVERNOR_PATH.format(cpu=cpu), wanted) for cpu in cpus), ()

    def session(self, conditions: Conditions, facts: Facts, ask: Ask) -> AbstractContextManager[tuple[Finding, ...]]:
        """Nothing is held: what Linux lets us hold are files, which the agent holds for each trial."""
        default = Conditions()
        foreign = [key for key in _PHONE_CONDITIONS if getattr(conditions, key) != getattr(default, key)]
        return nullcontext(tuple(_foreign_condition(key) for key in foreign))

    def state(self, samples: Sequence[Mapping[str, Any]], ask: Ask) -> Mapping[str, Any]:
        return {
            "temperature_c": telemetry.temperature_c(samples),
            "battery_percent": telemetry.battery_percent(samples),
        }

    def breach(self, limits: Limits, state: Mapping[str, Any]) -> str | None:
        hottest, charge = state.get("temperature_c"), state.get("battery_percent")
        if limits.temperature_c_max is not None and hottest is not None and hottest > limits.temperature_c_max:
            return f"{hottest:.1f} degrees C, and the limit is {limits.temperature_c_max:g}"
        if limits.battery_percent_min is not None and charge is not None and charge < limits.battery_percent_min:
            return f"battery at {charge:g} %, and the limit is {limits.battery_percent_min:g} %"
        return None

    def fitness(self, facts: Facts) -> tuple[Finding, ...]:
        findings = []
        if facts.virtualisation:
            findings.append(
                _note(
                    "virtual",
                    "a virtual machine: other guests may take time away from it",
                    "compare settings within one run rather than absolute numbers",
                )
            )
        if facts.governor is None:
            findings.append(
                _note(
                    "no-cpufreq",
                    f"CPU frequency is neither readable nor controllable ({_why_no_governor(facts)})",
                    "on bare metal load the cpufreq driver",
                )
            )
        elif facts.governor != "performance":
            findings.append(
                _note(
                    "governor",
                    f"governor {facts.governor}: the clock follows the load",
                    'set governor = "performance" under [conditions] in the plan, as root',
                )
            )
        if not facts.sensors:
            findings.append(
                _note(
                    "no-thermal",
                    "no temperature can be read, so throttling cannot be seen",
                    "use hardware with sensors",
                )
            )
        quota = facts.raw.get("cpu_quota")
        if isinstance(quota, Mapping):
            cpus = quota["quota_us"] / quota["period_us"]
            findings.append(
                Finding(
                    "cpu-quota",
                    Severity.WARN,
                    f"a cgroup limits this process to {cpus:.2f} CPUs: it is stopped when it has used them up",
                    "run outside the container, or lift its CPU limit",
                )
            )
        return tuple(findings)


LINUX = LinuxPlatform()


def _foreign_condition(key: str) -> Finding:
    return Finding(
        f"{key}-not-held",
        Severity.WARN,
        f"{key} was asked for, and Linux has no such thing",
        f"leave {key} out of [conditions] for this device",
    )


def _text(value: Any) -> str | None:
    return str(value) if value else None


def _note(rule: str, reason: str, remedy: str) -> Finding:
    return Finding(rule, Severity.NOTE, reason, remedy)


def _why_no_governor(facts: Facts) -> str:
    reason = facts.absent.get("governor") or facts.absent.get("freq_khz")
    if reason == "EACCES":
        return "not permitted"
    return "no cpufreq in this virtual machine" if facts.virtualisation else "no cpufreq"


def _not_held(wanted: str, why: str) -> Finding:
    return Finding(
        "governor-not-held",
        Severity.WARN,
        f"governor {wanted} was asked for and is not held: {why}",
        "run as root on a device with cpufreq, or leave governor out of [conditions]",
    )


def _virtualisation(probed: Mapping[str, Any]) -> str | None:
    """The hypervisor's name; `unnamed` where the CPU tells only that there is one."""
    found = probed.get("hypervisor") or {}
    names = [str(found[key]) for key in ("type", "vendor", "product") if found.get(key)]
    if found.get("flag") or found.get("type"):
        return " ".join(names) or "unnamed"
    return None


def _clusters(cpus: Sequence[Mapping[str, Any]]) -> tuple[Cluster, ...]:
    """CPUs grouped by capacity, or by maximum frequency where the kernel tells no capacity; fastest first."""
    groups: dict[int, list[Mapping[str, Any]]] = {}
    for cpu in cpus:
        groups.setdefault(int(cpu.get("capacity") or cpu.get("max_khz") or 0), []).append(cpu)
    ordered = [groups[speed] for speed in sorted(groups, reverse=True)]
    return tuple(
        Cluster(
            name,
            tuple(sorted(int(cpu["id"]) for cpu in members)),
            max_khz=max((int(cpu["max_khz"]) for cpu in members if cpu.get("max_khz")), default=None),
            capacity=members[0].get("capacity"),
        )
        for name, members in zip(_cluster_names(len(ordered)), ordered, strict=True)
    )


def _cluster_names(count: int) -> list[str]:
    """big, mid, little from the fastest; more than three kinds get mid2, mid3 in between."""
    if count <= 1:
        return ["big"] * count
    middle = ["mid" if index == 0 else f"mid{index + 1}" for index in range(count - 2)]
    return ["big", *middle, "little"]


def _cluster_mask(name: str, facts: Facts) -> str:
    for cluster in facts.clusters:
        if cluster.name == name:
            return f"{sum(1 << cpu for cpu in cluster.cpus):x}"
    names = ", ".join(cluster.name for cluster in facts.clusters)
    raise ValueError(f"no {name} cluster on this device (it has {names})")
