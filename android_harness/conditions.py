"""Conditions on a phone, held for a session: applied, read back, and undone in reverse whatever happens.

The journal is a folder on the phone. Before a thing is changed, a file of its name gets the old value there; the file
goes when the old value has been read back. Scripts on the phone do this, so that the journal lists what is left to undo
at whatever moment the host or the link dies. The next session, of whatever host, undoes that first.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from android_harness.changes import AIRPLANE, GOVERNOR, IN_ORDER, TRACE, Change, Wish, wishes
from orchestrator.errors import DevbenchError, DeviceError, TracerFailed, during
from orchestrator.plan import Conditions
from orchestrator.platforms.base import Ask
from orchestrator.platforms.questions import NO_ANSWER, NOT_ASKED, Answer, answers, batch
from orchestrator.trial import Finding, Severity

_LIBRARY = """\
is() { [ "$(read_$1 2>/dev/null)" = "$2" ] || { sleep 1; [ "$(read_$1 2>/dev/null)" = "$2" ]; }; }
undo() { write_$1 "$2"; is $1 "$2" && rm -f "$j/$1"; }
hold() {
mkdir -p "$j" && echo "$2" >"$j/.new" && mv -f "$j/.new" "$j/$1" || return 3
write_$1 "$3"; is $1 "$3" && return 0
undo $1 "$2" && return 4
return 5
}"""
_NO_JOURNAL, _UNDONE = 3, 4
_JOURNAL_QUESTION = 'for f in "$j"/*; do [ -f "$f" ] && echo "${f##*/} $(cat "$f")"; done; true'
_TIDY = 'rm -f "$j/.new"; [ -d "$j" ] && rmdir "$j" 2>/dev/null; true'
_STOP_APPS = "am kill-all"


@dataclass(frozen=True)
class Phone:
    """What of a phone decides what can be held there, and where things are on it."""

    journal: str
    cpufreq: str
    root_prefix: str | None = None
    """How to run one command as root, such as `su -c`; None where that is not possible."""
    holds_governor: bool = False
    """Whether the governor is a session's to hold; an agent that is root holds it by itself."""
    api: int | None = None
    over_network: bool = False
    """adb may be coming over Wi-Fi, which airplane mode would end."""


@dataclass
class _Session:
    """One session's journal, as far as this host knows it: names and the values to go back to."""

    phone: Phone
    ask: Ask
    held: dict[str, str] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)
    """What an earlier session left and could not be put back: tried again at the end, but no news."""
    findings: list[Finding] = field(default_factory=list)

    def _asked(self, changes: Sequence[Change], questions: Mapping[str, str]) -> dict[str, Answer]:
        root = f'root() {{ {self.phone.root_prefix} "$1" </dev/null; }}' if self.phone.root_prefix else ""
        head = [f'j="{self.phone.journal}"; cpufreq="{self.phone.cpufreq}"; fixed=', root, _LIBRARY]
        script = "\n".join([*head, *(change.functions for change in changes), batch(questions)])
        return answers(self.ask(["sh", "-c", script]).stdout)

    def begin(self, wanted: Sequence[Wish], *, stop_apps: bool) -> None:
        """Put back what an earlier session left, then apply."""
        changes = [wish.change for wish in wanted]
        questions = {"journal": _JOURNAL_QUESTION} | _reading(changes)
        found = self._asked(changes, questions)
        self.held = _entries(found.get("journal", NOT_ASKED))
        if self.held:
            found = self._put_back_leftovers(changes)
        commands, targets = {}, {}
        for wish in wanted:
            old, new = self._plan(wish, found.get(wish.change.name, NOT_ASKED))
            if new is not None:
                self.told.discard(wish.change.name)
                self.held[wish.change.name] = old  # before asking: the phone may obey and the answer get lost
                targets[wish.change.name] = new
                commands[wish.change.name] = f'hold {wish.change.name} "{old}" "{new}"'
        if stop_apps:
            commands["stop_apps"] = _STOP_APPS
        if commands:
            self._apply(changes, commands, targets)

    def _plan(self, wish: Wish, reading: Answer) -> tuple[str, str | None]:
        """The value to go back to and the value to set; None for the latter when there is nothing to do."""
        change, obstacle = wish.change, self._obstacle(wish.change)
        if obstacle is None:
            present = reading.text or change.unread or ""
            if reading.exit is not None and change.accepts(present):
                new = wish.aim(present)
                if change.accepts(new):
                    # What could not be put back earlier still has its older value in the journal.
                    return self.held.get(change.name, present), None if new == present else new
                obstacle = f'"{new[:80]}" cannot be its value'
            else:
                obstacle = f"its present value cannot be read ({reading.trouble or reading.text[:80]})"
        if change is not TRACE:
            self.findings.append(_not_held(change, obstacle))
        return "", None

    def _obstacle(self, change: Change) -> str | None:
        if self.phone.api is not None and self.phone.api < change.api_min:
            return f"it came with Android API level {change.api_min}, and this phone has {self.phone.api}"
        if change is AIRPLANE and self.phone.over_network:
            return "adb over the network is switched on here, and airplane mode could cut the phone off for good"
        return None

    def _apply(self, changes: Sequence[Change], commands: Mapping[str, str], targets: Mapping[str, str]) -> None:
        results = self._asked(changes, commands)
        if (stopped := results.get("stop_apps")) is not None and stopped.trouble not in (None, NO_ANSWER):
            self.findings.append(_apps_run(stopped.trouble or ""))
        for change in changes:
            result = results.get(change.name, NOT_ASKED)
            if change.name not in targets:
                continue
            if result.exit == 0:
                if change is TRACE:
                    self.findings.append(_trace_off())
                continue
            if result.exit in (_NO_JOURNAL, _UNDONE):
                del self.held[change.name]
            why = _why_not(change, result, targets[change.name])
            self.findings.append(_trace_on(why) if change is TRACE else _not_held(change, why))

    def _put_back_leftovers(self, changes: Sequence[Change]) -> dict[str, Answer]:
        """What an earlier session left is undone and told; gives the readings anew."""
        known, strange = self._known()
        left = dict(self.held)
        every = [change for change in IN_ORDER if change in known or change in changes]
        found = self._asked(every, self._undoing(known) | {"tidy": _TIDY} | _reading(changes))
        for change in known:
            if found.get(_undo_name(change), NOT_ASKED).exit == 0:
                del self.held[change.name]
        restored = [f"{name} ({left[name] or 'empty'})" for name in left if name not in self.held]
        if restored:
            self.findings.append(_left_over(restored))
        stuck = [change.name for change in known if change.name in self.held]
        self.told |= set(stuck)
        if stuck or strange:
            self.findings.append(_not_restored([*stuck, *strange], self.phone.journal))
        for name in strange:  # not ours to undo; it stays in the journal
            del self.held[name]
        return found

    def _known(self) -> tuple[list[Change], list[str]]:
        """What is held and can be undone here, last first; and the names that cannot."""
        can = [
            change
            for change in reversed(IN_ORDER)
            if change.name in self.held
            and change.accepts(self.held[change.name])
            and (change is not GOVERNOR or self.phone.root_prefix)
        ]
        names = {change.name for change in can}
        return can, [name for name in self.held if name not in names]

    def _undoing(self, known: Sequence[Change]) -> dict[str, str]:
        return {_undo_name(change): f'undo {change.name} "{self.held[change.name]}"' for change in known}

    def end(self) -> DevbenchError | None:
        """Undo everything, in one go so that a wedged phone costs one wait; what stays changed is the error."""
        lost: DevbenchError | None = None
        for _attempt in range(2):
            known, _ = self._known()
            if not known:
                return None
            try:
                with during(f"putting back {', '.join(change.name for change in known)}"):
                    found = self._asked(known, self._undoing(known) | {"tidy": _TIDY})
            except DevbenchError as error:
                lost = lost or error
                continue
            lost = None
            for change in known:
                if found.get(_undo_name(change), NOT_ASKED).exit == 0:
                    del self.held[change.name]
        news = {name: old for name, old in self.held.items() if name not in self.told}
        return lost or (_still_changed(news) if news else None)


@contextmanager
def held(conditions: Conditions, phone: Phone, ask: Ask) -> Iterator[tuple[Finding, ...]]:
    """Gives what is not held, and what was found. An error that is under way is never replaced by one of undoing."""
    session = _Session(phone, ask)
    wanted = wishes(conditions, governor=phone.holds_governor)
    try:
        session.begin(wanted, stop_apps=conditions.stop_background_apps)
        yield tuple(session.findings)
    finally:
        under_way, trouble = sys.exception(), session.end()
        if trouble is not None and under_way is None:
            raise trouble
        if trouble is not None and isinstance(under_way, DevbenchError):
            names = ", ".join(session.held) or "its settings"
            under_way.contexts.append(f"putting back {names} (not done: the next session on this phone does it)")


@contextmanager
def lent(values: Mapping[Change, str], phone: Phone, ask: Ask) -> Iterator[None]:
    """Within a session something is otherwise for a while, and then again as the session has it. The journal knows it
    meanwhile, so that a host that dies leaves the phone to the next session as ever."""
    session = _Session(phone, ask)
    found = session._asked(list(values), {"journal": _JOURNAL_QUESTION} | _reading(list(values)))
    journal = _entries(found.get("journal", NOT_ASKED))
    before = {change: found.get(change.name, NOT_ASKED).text for change in values}
    changed = [change for change, value in values.items() if before[change] != value]
    for change in changed:
        if found.get(change.name, NOT_ASKED).exit is None or not change.accepts(before[change]):
            raise _not_lent(change, "its present value cannot be read")
    old = {change: journal.get(change.name, before[change]) for change in changed}
    backs = {
        _undo_name(change): f'write_{change.name} "{before[change]}"; is {change.name} "{before[change]}"'
        if change.name in journal
        else f'undo {change.name} "{before[change]}"'
        for change in reversed(changed)
    }
    try:
        if changed:
            holds = {change.name: f'hold {change.name} "{old[change]}" "{values[change]}"' for change in changed}
            done = session._asked(changed, holds)
            for change in changed:
                result = done.get(change.name, NOT_ASKED)
                if result.exit != 0:
                    raise _not_lent(change, _why_not(change, result, values[change]))
        yield
    finally:
        if changed:
            under_way = sys.exception()
            done = session._asked(changed, backs | {"tidy": _TIDY})
            stuck = {c.name: before[c] for c in changed if done.get(_undo_name(c), NOT_ASKED).exit != 0}
            if stuck and under_way is None:
                raise _still_changed(stuck)


def _not_lent(change: Change, why: str) -> TracerFailed:
    return TracerFailed(f"{change.name} cannot be changed: {why}", remedy="see what the phone says")


def _reading(changes: Sequence[Change]) -> dict[str, str]:
    return {change.name: f"read_{change.name}" for change in changes}


def _undo_name(change: Change) -> str:
    return f"undo_{change.name}"


def _entries(answer: Answer) -> dict[str, str]:
    """The journal: a name and the old value, which may be empty, in each line."""
    pairs = (line.partition(" ") for line in answer.text.split("\n") if line.strip())
    return {name: value.strip() for name, _, value in pairs}


def _why_not(change: Change, result: Answer, new: str) -> str:
    if result.exit == _NO_JOURNAL:
        return f"no journal can be written on the phone ({result.trouble})"
    said = " ".join(result.text.split())
    detail = f' (the phone said: "{said[:160]}")' if said else ""
    if result.exit is None:
        return f"the phone did not say whether it took effect{detail}"
    undone = "was put back" if result.exit == _UNDONE else "could not be put back yet"
    return f"{change.name} = {new} did not take effect, and {undone}{detail}"


def _not_held(change: Change, why: str) -> Finding:
    return Finding(
        f"{change.condition}-not-held",
        Severity.WARN,
        f"{change.condition} was asked for and is not held: {why}",
        f"leave {change.condition} out of [conditions] for this phone",
    )


def _apps_run(why: str) -> Finding:
    return Finding(
        "stop_background_apps-not-held",
        Severity.WARN,
        f"stop_background_apps was asked for, and `{_STOP_APPS}` failed: {why}",
        "leave stop_background_apps out of [conditions] for this phone",
    )


def _trace_off() -> Finding:
    return Finding(
        "tflite-trace",
        Severity.NOTE,
        "debug.tflite.trace was 1, which slows every TFLite program down: it is off during this session",
        "set it back for good with `adb shell setprop debug.tflite.trace 0`",
    )


def _trace_on(why: str) -> Finding:
    return Finding(
        "tflite-trace",
        Severity.WARN,
        f"debug.tflite.trace is 1, which slows every TFLite program down: {why}",
        "run `adb shell setprop debug.tflite.trace 0`",
    )


def _left_over(restored: Sequence[str]) -> Finding:
    return Finding(
        "left-over",
        Severity.NOTE,
        f"an earlier session was cut off; what it had changed was put back now: {', '.join(restored)}",
        "nothing to do",
    )


def _not_restored(names: Sequence[str], journal: str) -> Finding:
    return Finding(
        "left-changed",
        Severity.WARN,
        f"an earlier session left this changed, and it could not be put back: {', '.join(names)}",
        f"put it back by hand (the old values are in {journal} on the phone), then remove the files there",
    )


def _still_changed(left: Mapping[str, str]) -> DeviceError:
    values = ", ".join(f"{name} (was {value or 'empty'})" for name, value in left.items())
    return DeviceError(
        f"the phone could not be put back as it was: {values}",
        remedy="put it back by hand, or run again: the next session tries once more",
    )
