"""Linux: this machine and embedded boards, as the agent's probe describes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from orchestrator import telemetry
from orchestrator.fleet import Device, Limits
from orchestrator.plan import AS_FOUND, Conditions
from orchestrator.platforms import board, clusters, linux_tracing
from orchestrator.platforms.base import Ask, Facts, Hold, WithAgent
from orchestrator.platforms.tracing import Tracer
from orchestrator.trial import Finding, Severity

_PHONE_CONDITIONS = ("screen", "airplane", "fixed_performance", "doze", "stop_background_apps")


class LinuxPlatform(WithAgent):
    """Reads what the kernel shows; holds the governor where permitted."""

    name = "linux"
    limits = ("temperature_c_max", "battery_percent_min")
    default_limits = Limits()
    default_runner = "litert_runner"
    machine_command = ("uname", "-m")
    trace_kinds = linux_tracing.KINDS

    def tracers(self, device: Device, facts: Facts, ask: Ask) -> Sequence[Tracer]:
        return linux_tracing.linux_tracers(ask)

    def facts(self, probed: Mapping[str, Any], ask: Ask) -> Facts:
        cpus = probed.get("cpus") or []
        found = board.ask_board(probed, ask)
        zones = [str(zone["name"]) for zone in probed.get("thermal") or [] if zone.get("temp_mc") is not None]
        return Facts(
            machine=found.machine,
            cpu_model=_text(probed.get("device_tree_model") or probed.get("cpu_model")),
            cores=len(cpus) or 1,
            clusters=clusters.clusters_of(cpus),
            kernel=str(probed.get("kernel_release", "unknown")),
            os=_text(probed.get("os_release")),
            memory_kb=probed.get("mem_total_kb"),
            governor=clusters.governors_of(cpus),
            virtualisation=_virtualisation(probed),
            sensors=tuple(zones),
            absent={str(key): str(why) for key, why in (probed.get("absent") or {}).items()} | found.absent,
            raw={**probed, "board": found.facts},
        )

    def affinity_mask(self, affinity: str, facts: Facts) -> str | None:
        return clusters.affinity_mask(affinity, facts)

    def holds(self, conditions: Conditions, facts: Facts) -> tuple[tuple[Hold, ...], tuple[Finding, ...]]:
        if conditions.governor == AS_FOUND:
            return (), ()
        return clusters.governor_holds(conditions.governor, facts)

    def session(self, conditions: Conditions, facts: Facts, ask: Ask) -> AbstractContextManager[tuple[Finding, ...]]:
        """Nothing is held: what Linux lets us hold are files, which the agent holds for each trial."""
        default = Conditions()
        foreign = [key for key in _PHONE_CONDITIONS if getattr(conditions, key) != getattr(default, key)]
        return nullcontext(tuple(_foreign_condition(key) for key in foreign))

    def state(self, samples: Sequence[Mapping[str, Any]], ask: Ask, facts: Facts) -> Mapping[str, Any]:
        return board.throttling(facts, ask) | {
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

    def is_slowed_by_heat(self, facts: Facts) -> bool:
        """Boards without a fan are; the clock of a virtual machine is not ours to watch."""
        return facts.virtualisation is None and facts.machine.startswith(("arm", "aarch64"))

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
                    f"CPU frequency is neither readable nor controllable ({clusters.why_no_governor(facts)})",
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
        findings += board.fitness_of(facts)
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


def _virtualisation(probed: Mapping[str, Any]) -> str | None:
    """The hypervisor's name; `unnamed` where the CPU tells only that there is one."""
    found = probed.get("hypervisor") or {}
    names = [str(found[key]) for key in ("type", "vendor", "product") if found.get(key)]
    if found.get("flag") or found.get("type"):
        return " ".join(names) or "unnamed"
    return None
