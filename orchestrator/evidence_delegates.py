"""The rules of evidence about delegates: did the asked one run, wholly or in part, and with the asked cache? Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from orchestrator.delegates import BASES
from orchestrator.evidence_terms import Asked, reject, unverified, warn
from orchestrator.runners.base import Reading
from orchestrator.stage import Report
from orchestrator.trial import Finding, Severity

_SEARCHED_BYTES = 4 * 1024 * 1024
_BACKENDS = {
    "cl": ("opencl", "OpenCL"),
    "gl": ("opengl", "OpenGL"),
    "webgpu": ("webgpu", "WebGPU"),
    "metal": ("metal", "Metal"),
}
"""What evidence calls each backend, and what people do."""


def _words(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    """A delegate that could not be made is only a warning to the tool, or nothing at all: the CPU does the work."""
    wanted, observed = asked.delegate.base, reading.observed
    applied, fallbacks = observed.get("delegates_applied"), observed.get("fallbacks") or []
    if (echo := observed.get("delegate_echo")) is not None and echo != wanted:
        yield reject("delegate", f"{wanted} was asked for, and the runner speaks of {echo}", "see the trial's log")
        return
    if wanted == "cpu":
        if observed.get("xnnpack_created") or applied:
            yield reject("delegate", "plain CPU kernels were asked for, and XNNPACK was made", "use a newer build")
        return
    if applied is not None and wanted not in applied and observed.get("nodes_delegated") != 0:
        why = f": {fallbacks[0]}" if fallbacks else ""
        name = asked.delegate.name
        yield reject("delegate", f"{name} was not applied{why}", "see whether device and build have this delegate")
    elif fallbacks:
        reason = f"not all ran on {asked.delegate.name}: {fallbacks[0]}"
        yield reject("delegate-fallback", reason, "see the trial's log")


def _backend(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    """Where nobody chose, OpenCL is asked for, and a missing one silently becomes OpenGL; Apple has but one."""
    seen, chosen = reading.observed.get("gpu_backend"), asked.delegate.settings.get("backend")
    if asked.delegate.base != "gpu" or not seen:
        return
    is_other = seen == "opengl" if chosen is None else seen != _BACKENDS[chosen][0]
    if is_other:
        names = dict(_BACKENDS.values())
        wanted = names[_BACKENDS[chosen or "cl"][0]]
        reason = f"{wanted} was asked for, and {names.get(seen, seen)} ran"
        yield reject("gpu-backend", reason, f"see whether the device has {wanted}")


def _nodes(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    delegate, observed = asked.delegate, reading.observed
    total, delegated = observed.get("nodes_total"), observed.get("nodes_delegated")
    if delegated is None:
        yield from _uncounted(asked, reading)
        return
    if delegate.base == "cpu":
        if delegated > 0:
            reason = f"plain CPU kernels were asked for, and {delegated} nodes were delegated"
            yield reject("delegate", reason, "see the log")
        return
    others = _taken_by_others(delegate.base, reading)
    delegated -= sum(others.values())
    if delegated == 0:
        where = f"went to {', '.join(others)}" if others else "ran on plain CPU kernels"
        yield reject(
            "delegate",
            f"{delegate.name} took none of the {total} nodes: the model {where}",
            "use delegate cpu for this model, or convert it so that the delegate can take it",
        )
    elif total and delegated < total:
        yield _partial(asked, f"{delegate.name} took {delegated} of {total} nodes", delegated / total)


def _taken_by_others(base: str, reading: Reading) -> dict[str, int]:
    """Nodes that another delegate that we know took, where the runtime tells them apart; a vendor's kernel has a name
    of its own."""
    if reading.observed.get("delegation_from") != "runtime":
        return {}
    rows = reading.observed.get("nodes_replaced") or []
    return {
        row["delegate"]: row["nodes_delegated"] for row in rows if row["delegate"] in BASES and row["delegate"] != base
    }


def _uncounted(asked: Asked, reading: Reading) -> Iterator[Finding]:
    """Nobody says how many nodes were taken; the tool may say whether it was all."""
    share = reading.observed.get("delegation")
    if "delegates_applied" not in reading.observed:
        yield unverified("delegate", "the runner does not say which nodes the delegate took")
    if asked.delegate.base == "cpu" or share == "full":
        return
    if share == "partial":
        pieces = reading.observed.get("partitions")
        yield _partial(asked, f"{asked.delegate.name} took a part of the model, in {pieces} pieces", None)
    elif asked.conditions.delegated_share_min > 0:
        yield _partial(asked, f"nothing says how much of the model {asked.delegate.name} took", None)


def _partial(asked: Asked, fact: str, share: float | None) -> Finding:
    """What the plan makes of a delegate that took a part."""
    least = asked.conditions.delegated_share_min
    if least > 0 and (share is None or share < least):
        wanted = "all" if least == 1.0 else f"{100 * least:g} %"
        return reject(
            "delegate-share",
            f"{fact}, and the plan requires {wanted}",
            "convert the model so that the delegate can take it, or lower require under [conditions]",
        )
    return warn("delegate-partial", fact, "look at the operators that are left on the CPU")


def _patterns(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    """What a delegate's row says must be in the output, and what must not."""
    delegate = asked.delegate
    if not delegate.evidence and not delegate.failures:
        return
    text = _searched(report)
    for pattern in delegate.evidence:
        if not re.search(pattern, text, re.MULTILINE):
            reason = f'the output of {delegate.name} has nothing like "{pattern}"'
            yield reject("delegate-evidence", reason, "see the trial's log, or mend evidence of the delegate")
    for pattern in delegate.failures:
        if (found := re.search(pattern, text, re.MULTILINE)) and not reading.observed.get("fallbacks"):
            reason = f"{delegate.name} says: {found[0][:200]}"
            yield reject("delegate-failure", reason, "see the trial's log")


def _searched(report: Report) -> str:
    """The output, and of a very long one its beginning and its end."""
    content = b"\n".join((*report.stdout, *report.stderr))
    if len(content) > 2 * _SEARCHED_BYTES:
        content = content[:_SEARCHED_BYTES] + b"\n" + content[-_SEARCHED_BYTES:]
    return content.decode("utf-8", "replace")


def _deprecation(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    if asked.delegate.deprecated:
        yield Finding("delegate-deprecated", Severity.NOTE, asked.delegate.deprecated, "move to another delegate")


def _cache(asked: Asked, report: Report, reading: Reading) -> Iterator[Finding]:
    """Cold or warm is a condition: a cache that nothing is kept in is neither."""
    if asked.cache_entries == 0:
        reason = f"a {asked.delegate.cache} cache was asked for, and {asked.delegate.name} kept nothing in it"
        yield reject("cache", reason, f"measure {asked.delegate.name} without a cache, or use another build")


DELEGATE_RULES = (_words, _backend, _nodes, _patterns, _deprecation, _cache)
