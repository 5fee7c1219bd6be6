"""The inferences of a timeline: its stages, each inference, and what a typical one spends on its operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from orchestrator.op_profile import OpCost, OpProfile, ProfilePass
from orchestrator.timeline.events import Slice, Track
from orchestrator.timeline.log import Moments
from orchestrator.timeline.record import TIME_NS_MAX, length_ns, number, since_ns
from orchestrator.trial import Trial

_US = 1000.0
RECORDED = "as the device's clock had them"
RECONSTRUCTED = "reconstructed: only lengths are known, laid end to end"


@dataclass(frozen=True)
class _Stage:
    """Inferences of one kind, in order."""

    name: str
    each: str
    lengths_ns: Sequence[int]
    latencies_us: Sequence[float]
    starts_ns: Sequence[int]
    """When each began; none where the record does not say."""
    total_ns: int
    about: Mapping[str, object]

    @property
    def starts_at_ns(self) -> int | None:
        return self.starts_ns[0] if self.starts_ns else None

    def laid(self, start_ns: int) -> Sequence[int]:
        return self.starts_ns or list(accumulate(self.lengths_ns, initial=start_ns))[:-1]

    def end_ns(self, start_ns: int) -> int:
        return self.starts_ns[-1] + self.lengths_ns[-1] if self.starts_ns else start_ns + self.total_ns


def inference_tracks(trial: Trial, moments: Moments, origin_ns: int | None) -> list[Track]:
    """Stages and single inferences, at recorded times as far as there are some; anything else says that it is not."""
    warmup = _stage("warm-up", trial.warmup_us, moments.warmup_ns, origin_ns) or _told_warmup(trial)
    steady = _stage("measured", trial.samples_us, moments.steady_ns, origin_ns) or _told_steady(trial)
    steady_from_ns = steady.starts_at_ns if steady else None
    if steady_from_ns is None:
        steady_from_ns = since_ns(trial.metrics.get("steady_from_ns"), origin_ns)
    warmup_from_ns = warmup.starts_at_ns if warmup else None
    if warmup_from_ns is None and steady_from_ns is not None:
        warmup_from_ns = steady_from_ns - (warmup.total_ns if warmup else 0)
    lead = _lead(trial)
    lead_from_ns = 0 if warmup_from_ns is None else warmup_from_ns - sum(part.duration_ns for part in lead)
    stages = [*_in_order(lead, lead_from_ns)]
    at_ns = stages[-1].end_ns if stages else lead_from_ns
    inferences: list[Slice] = []
    for stage, known_ns in ((warmup, warmup_from_ns), (steady, steady_from_ns)):
        if stage is None:
            continue
        start_ns = at_ns if known_ns is None else known_ns
        at_ns = stage.end_ns(start_ns)
        stages.append(_stage_slice(stage, start_ns, at_ns, is_start_known=known_ns is not None))
        inferences += _inference_slices(stage, start_ns)
    tracks = [Track("stages of the measured process", stages), Track("inferences", inferences)]
    return [track for track in tracks if track.slices]


def _stage(name: str, latencies_us: Sequence[float], starts_ns: Sequence[int], origin_ns: int | None) -> _Stage | None:
    """A stage whose inferences are known one by one."""
    lengths = [length_ns(value, _US) for value in latencies_us]
    lengths_ns = [value for value in lengths if value is not None]
    if not lengths_ns or len(lengths_ns) != len(lengths) or sum(lengths_ns) > TIME_NS_MAX:
        return None
    offsets = [since_ns(value, origin_ns) for value in starts_ns]
    known = [value for value in offsets if value is not None]
    follow = all(start + length <= after for start, length, after in zip(known, lengths_ns, known[1:], strict=False))
    is_exact = len(known) == len(lengths_ns) and follow
    each = "inference" if name == "measured" else f"{name} inference"
    about = {"count": len(lengths_ns)}
    return _Stage(name, each, lengths_ns, latencies_us, known if is_exact else (), sum(lengths_ns), about)


def _told_warmup(trial: Trial) -> _Stage | None:
    """A warm-up of which only count and average are known."""
    count, average_us = number(trial.metrics.get("warmup_count")), number(trial.metrics.get("warmup_avg_us"))
    total_ns = length_ns(count * average_us, _US) if count and average_us else None
    if total_ns is None:
        return None
    return _Stage("warm-up", "", (), (), (), total_ns, {"count": count, "average_us": average_us})


def _told_steady(trial: Trial) -> _Stage | None:
    """Measured inferences of which only a summary is known: one slice, and no single inference is made up."""
    summary = trial.summary
    typical_us = number(summary.avg if summary.avg is not None else summary.median) if summary else None
    total_ns = length_ns(summary.count * typical_us, _US) if summary and typical_us and summary.count > 0 else None
    if summary is None or total_ns is None:
        return None
    return _Stage("measured", "", (), (), (), total_ns, {"summary_us": summary.as_json()})


def _lead(trial: Trial) -> list[Slice]:
    """What comes before the warm-up. A tool that counts the first inference to its warm-up has it in there."""
    init_ns, first_ns = (length_ns(trial.metrics.get(key), _US) for key in ("init_us", "first_us"))
    about = {"times": RECONSTRUCTED}
    lead = [Slice("initialisation", 0, init_ns, about)] if init_ns is not None else []
    if first_ns is not None and "warmup_count" not in trial.metrics:
        lead.append(Slice("first inference", 0, first_ns, about))
    return lead


def _in_order(parts: Sequence[Slice], start_ns: int) -> Iterator[Slice]:
    for part in parts:
        yield Slice(part.name, start_ns, part.duration_ns, part.args)
        start_ns += part.duration_ns


def _stage_slice(stage: _Stage, start_ns: int, end_ns: int, *, is_start_known: bool) -> Slice:
    if stage.starts_ns:
        times = RECORDED
    else:
        times = f"{RECONSTRUCTED}, from a known start" if is_start_known and stage.each else RECONSTRUCTED
    return Slice(stage.name, start_ns, end_ns - start_ns, {**stage.about, "times": times})


def _inference_slices(stage: _Stage, start_ns: int) -> Iterator[Slice]:
    name = stage.each if stage.starts_ns else f"{stage.each} (reconstructed)"
    rows = zip(stage.laid(start_ns), stage.lengths_ns, stage.latencies_us, strict=False)
    for index, (at_ns, length, latency_us) in enumerate(rows):
        yield Slice(name, at_ns, length, {"index": index, "latency_us": round(latency_us, 3)})


def operator_tracks(passed: ProfilePass | None, init_ns: int, steady_ns: int) -> list[Track]:
    """A typical inference of the cell's profile pass, its operators in the order in which they ran."""
    profile = passed.profile if passed else None
    if passed is None or profile is None:
        return []
    about = {
        "what": "averages over the inferences of a profile pass of this cell, not inferences of this trial",
        "outcome": str(passed.outcome),
        "reason": passed.reason,
        "runs": profile.runs,
        "source": profile.source,
        "problem": profile.problem,
        "profiled_at": passed.started_at,
        "latency_us": passed.latency_us,
    }
    rows = (
        ("operators of a typical inference (profile pass)", "typical inference", profile.ops, steady_ns),
        ("inside the delegate (a closer look, not to be added)", "delegate's own account", profile.inner, steady_ns),
        ("steps of a typical initialisation (profile pass)", "typical initialisation", profile.init, init_ns),
    )
    found = (Track(track, list(_operators(name, ops, profile, about, at_ns))) for track, name, ops, at_ns in rows)
    return [track for track in found if track.slices]


def _operators(
    name: str, ops: Sequence[OpCost], profile: OpProfile, about: Mapping[str, object], start_ns: int
) -> Iterator[Slice]:
    known = [(op, length) for op in ops if (length := length_ns(op.time_us, _US)) is not None]
    total_ns = sum(length for _, length in known)
    if not known:
        return
    yield Slice(name, start_ns, total_ns, about)
    for op, length in known:
        share = {"share": round(length / total_ns, 4)} if total_ns else {}
        args = {"type": op.type, "time_us": op.time_us, "calls": op.calls, "subgraph": op.subgraph, **share}
        if ops is profile.ops:
            args |= {"delegated": op.is_delegated}
        yield Slice(op.name or op.type, start_ns, length, args | ({} if op.memory_kb is None else {"kb": op.memory_kb}))
        start_ns += length
