"""A trial's timeline, from its record and whatever else is known of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.clock import seconds_of
from orchestrator.op_profile import ProfilePass
from orchestrator.timeline.counters import Players, counters
from orchestrator.timeline.events import Counter, Instant, Slice, Timeline, Track
from orchestrator.timeline.inferences import RECORDED, inference_tracks, operator_tracks
from orchestrator.timeline.log import Moments
from orchestrator.timeline.record import keyed, length_ns, listed, number, since_ns, whole
from orchestrator.trial import Trial

_NO_MOMENTS = Moments()


def timeline_of(
    trial: Trial,
    *,
    moments: Moments = _NO_MOMENTS,
    profile: ProfilePass | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Timeline:
    """What happened when in a trial, whatever became of it. Without `moments` times of inferences are reconstructed;
    `profile` is the cell's operator profile, and `facts` what is known of the device."""
    origin_ns = _origin_ns(trial, moments)
    players = _players(trial)
    sampled = counters(trial.telemetry, players)
    loads = list(_load_tracks(trial, origin_ns))
    process = _process(trial, origin_ns, sampled, players)
    inferences = inference_tracks(trial, moments, origin_ns)
    seen = [*loads, *inferences, *_printed(moments, origin_ns)]
    known = Timeline("", "", [Track("", [process]), *seen], sampled, None, 0)
    began_ns, end_ns = known.first_ns, known.last_ns
    wait = list(_wait(trial, began_ns))
    start_ns = wait[0].start_ns if wait else began_ns
    whole = Slice(f"trial: {trial.outcome}", start_ns, end_ns - start_ns, _metadata(trial, facts or {}))
    starts_ns = {part.name: part.start_ns for track in inferences for part in track.slices}
    operators = operator_tracks(profile, starts_ns.get("initialisation", 0), starts_ns.get("measured", 0))
    judged = Track("findings and warnings", (), [*_warnings(trial, origin_ns), *_findings(trial, end_ns)])
    return Timeline(
        name=f"{trial.cell} · block {trial.slot.block}" + (f" · {trial.slot.arm}" if trial.slot.arm else ""),
        label=f"{trial.outcome}: {trial.reason}" if trial.reason else str(trial.outcome),
        tracks=[Track("trial", [whole, *wait, process], _canary(trial, began_ns)), judged, *seen, *operators],
        counters=sampled,
        started_s=seconds_of(trial.started_at),
        began_ns=began_ns,
    )


def _origin_ns(trial: Trial, moments: Moments) -> int | None:
    """Zero of the timeline on the device's clock: the start of the process, or of the samples where none started."""
    first_load = keyed(next(iter(listed(trial.evidence.get("loads"))), None))
    started = keyed(trial.evidence.get("started"))
    told = (started.get("t_ns"), moments.first_sample_ns, first_load.get("from_ns"))
    return next((moment_ns for value in told if (moment_ns := whole(value)) is not None), None)


def _players(trial: Trial) -> Players:
    """Where an app infers, the agent's child only drives it, and the app is among the others."""
    has_app = keyed(trial.evidence.get("observed")).get("process") is not None
    return Players("driver of the app", "the app and other programs") if has_app else Players()


def _process(trial: Trial, origin_ns: int | None, sampled: list[Counter], players: Players) -> Slice:
    """The measured process, or how long the host saw the trial where nobody watched one."""
    closing = dict(keyed(trial.evidence.get("closing")))
    wall_ns = length_ns(closing.get("wall_ns"), 1.0)
    if wall_ns is None:
        wall_ns = length_ns(trial.metrics.get("process_wall_ns"), 1.0)
    if wall_ns is not None:
        return Slice(players.child, 0, wall_ns, {**closing, "times": RECORDED})
    ended_ns = since_ns(closing.get("t_ns"), origin_ns)
    if ended_ns is None:
        ended_ns = max((at_ns for counter in sampled for at_ns, _ in counter.points), default=None)
    if origin_ns is not None and ended_ns is not None and ended_ns >= 0:
        return Slice("until the last that was heard", 0, ended_ns, closing)
    host_ns = length_ns(trial.duration_s, 1e9) or 0
    return Slice("trial as the host saw it", 0, host_ns, {**closing, "times": "by the host's clock"})


def _load_tracks(trial: Trial, origin_ns: int | None) -> Iterator[Track]:
    """A track for each thread of the load, a slice for each phase: offered against achieved."""
    phases = [keyed(phase) for phase in listed(trial.evidence.get("loads"))]
    for at in range(max((len(listed(phase.get("threads"))) for phase in phases), default=0)):
        slices = [part for phase in phases if (part := _load_slice(phase, at, origin_ns))]
        if slices:
            yield Track(f"load thread {at} ({trial.cell.load})", slices)


def _load_slice(phase: Mapping[str, Any], at: int, origin_ns: int | None) -> Slice | None:
    from_ns, to_ns = (since_ns(phase.get(key), origin_ns) for key in ("from_ns", "to_ns"))
    threads = listed(phase.get("threads"))
    if from_ns is None or to_ns is None or to_ns < from_ns or at >= len(threads):
        return None
    thread = keyed(threads[at])
    said = [f"{word} {100 * value:.0f} %" for word in ("offered", "achieved") if (value := number(thread.get(word)))]
    kept = {key: phase[key] for key in ("spec", "steady", "alive", "gb_per_s") if key in phase}
    name = f"{'settling' if phase.get('phase') == 'settle' else 'load'}: {', '.join(said) or 'share not known'}"
    return Slice(name, from_ns, to_ns - from_ns, {**kept, **thread, "times": RECORDED})


def _wait(trial: Trial, until_ns: int) -> Iterator[Slice]:
    cool_down = keyed(trial.evidence.get("cool_down"))
    waited_ns = length_ns(trial.waited_s, 1e9)
    if waited_ns:
        times = "reconstructed: by the host's clock; it ended shortly before the trial began"
        about = {**cool_down, "times": times}
        yield Slice("cool-down: waiting for the device", until_ns - waited_ns, waited_ns, about)


def _canary(trial: Trial, at_ns: int) -> list[Instant]:
    cool_down = keyed(trial.evidence.get("cool_down"))
    canary, best = (number(cool_down.get(key)) for key in ("canary_ns", "canary_best_ns"))
    if not canary:
        return []
    ratio = {"of_best": round(canary / best, 4)} if best else {}
    return [Instant("canary probe", at_ns, {"canary_ns": canary, "canary_best_ns": best, **ratio})]


def _warnings(trial: Trial, origin_ns: int | None) -> Iterator[Instant]:
    for warning in map(keyed, listed(trial.evidence.get("warnings"))):
        at_ns = since_ns(warning.get("t_ns"), origin_ns)
        if at_ns is not None:
            yield Instant(f"agent: {warning.get('what')}: {warning.get('reason')}", at_ns, warning)


def _findings(trial: Trial, at_ns: int) -> Iterator[Instant]:
    """Judgements are about the whole trial, so that they stand at its end."""
    for finding in trial.findings:
        yield Instant(f"{finding.severity}: {finding.rule}", at_ns, finding.as_json())


def _printed(moments: Moments, origin_ns: int | None) -> Iterator[Track]:
    timed = [(line, at_ns) for line in moments.lines if (at_ns := since_ns(line.t_ns, origin_ns)) is not None]
    if timed:
        instants = [Instant(line.text[:80], at_ns, {"stream": line.stream, "text": line.text}) for line, at_ns in timed]
        yield Track("what the process printed, when it arrived", (), instants)


def _metadata(trial: Trial, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Everything a reader asks of a slow trial: what ran, with which bytes and flags, and what became of it."""
    evidence = trial.evidence
    return {
        "run": trial.run,
        "cell": trial.cell.id,
        **trial.cell.as_json(),
        "block": trial.slot.block,
        "position": trial.slot.position,
        "arm": trial.slot.arm,
        "pass": str(trial.slot.purpose),
        "session": trial.session,
        "outcome": str(trial.outcome),
        "reason": trial.reason,
        "started_at": trial.started_at,
        "duration_s": trial.duration_s,
        "argv": [str(word) for word in listed(evidence.get("argv"))],
        "env": dict(keyed(evidence.get("env"))),
        "absent": dict(keyed(trial.telemetry.get("absent"))),
        "metrics": dict(trial.metrics),
        "device_facts": {key: value for key, value in facts.items() if isinstance(value, str | int | float)},
    }
