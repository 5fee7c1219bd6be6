"""CPUs by kind: clusters, the masks that name them, and their governor held by the agent. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.platforms.base import Cluster, Facts, Hold
from orchestrator.trial import Finding, Severity

_GOVERNOR_PATH = "/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"


def clusters_of(cpus: Sequence[Mapping[str, Any]]) -> tuple[Cluster, ...]:
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


def governors_of(cpus: Sequence[Mapping[str, Any]]) -> str | None:
    """The governors in use, all of them where clusters differ; None where none can be read."""
    return ", ".join(sorted({str(cpu["governor"]) for cpu in cpus if cpu.get("governor")})) or None


def affinity_mask(affinity: str, facts: Facts) -> str | None:
    """The hexadecimal mask for `any` (none), a cluster's name or a mask; ValueError where there is none."""
    if affinity == "any":
        return None
    if affinity in ("big", "mid", "little"):
        return _cluster_mask(affinity, facts)
    mask = int(affinity, 16)
    online = sum(1 << cpu for cluster in facts.clusters for cpu in cluster.cpus)
    if mask & ~online:
        raise ValueError(f"mask {affinity} names CPUs this device does not have (it has {online:x})")
    return f"{mask:x}"


def _cluster_mask(name: str, facts: Facts) -> str:
    for cluster in facts.clusters:
        if cluster.name == name:
            return f"{sum(1 << cpu for cpu in cluster.cpus):x}"
    names = ", ".join(cluster.name for cluster in facts.clusters)
    raise ValueError(f"no {name} cluster on this device (it has {names})")


def governor_holds(wanted: str, facts: Facts) -> tuple[tuple[Hold, ...], tuple[Finding, ...]]:
    """The governor for every CPU, held by an agent that is root; or why it is not held."""
    obstacle = governor_obstacle(wanted, facts)
    if obstacle is None and facts.raw.get("uid") not in (0, None):
        obstacle = "only root may change it"
    if obstacle is not None:
        return (), (governor_not_held(wanted, obstacle),)
    cpus = [cpu for cluster in facts.clusters for cpu in cluster.cpus]
    return tuple(Hold(_GOVERNOR_PATH.format(cpu=cpu), wanted) for cpu in cpus), ()


def governor_obstacle(wanted: str, facts: Facts) -> str | None:
    """Why not even root could have this governor here; None when it could."""
    if facts.governor is None:
        return f"this kernel shows no CPU frequency control ({why_no_governor(facts)})"
    available = facts.raw.get("governors") or []
    if available and wanted not in available:
        return f"the kernel offers only {', '.join(available)}"
    return None


def governor_not_held(wanted: str, why: str) -> Finding:
    return Finding(
        "governor-not-held",
        Severity.WARN,
        f"governor {wanted} was asked for and is not held: {why}",
        "run as root on a device with cpufreq, or leave governor out of [conditions]",
    )


def why_no_governor(facts: Facts) -> str:
    """Why no governor is to be seen."""
    reason = facts.absent.get("governor") or facts.absent.get("freq_khz")
    if reason == "EACCES":
        return "not permitted"
    return "no cpufreq in this virtual machine" if facts.virtualisation else "no cpufreq"
