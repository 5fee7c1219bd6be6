"""Getting hold of a phone: from a serial in devices.toml to one that answers."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from android_harness.adb_link import AdbLink, no_permissions, unauthorized
from android_harness.adb_server import connection_refused
from android_harness.adb_wire import Frozen, LinkEnded, Overdue, Refused
from orchestrator.clock import Deadline
from orchestrator.errors import DeviceError, DeviceLost
from orchestrator.settings import suggestion

_LOOK_FIRST_S, _LOOK_LAST_S = 0.01, 0.5
_ASK_EVERY_S = 0.5
_ABSENT_S = 3.0
"""A USB reset takes a phone off the list for one to three seconds."""
_UNDECIDED_S = 3.0
"""A phone shows `unauthorized` for a moment even when it knows the host."""
_CONNECT_S = 15.0
_ECHO_S = 10.0
_SERVER_S = 5.0

_NO_NUMBERS = ("", "unknown", "0123456789ABCDEF")
"""What phones without a number of their own say; the last is what many cheap ones share."""

_FACTS = "getprop ro.serialno; getprop ro.boot.serialno; getprop sys.boot_completed"


@dataclass(frozen=True)
class Greeting:
    """What a phone that answers says of itself."""

    hardware_id: str | None
    has_booted: bool


def is_network_serial(serial: str) -> bool:
    """Whether it is `host:port`, to which the server can be told to connect."""
    host, colon, port = serial.rpartition(":")
    return bool(host and colon and port.isascii() and port.isdigit())


def get_hold(link: AdbLink, deadline: Deadline) -> Greeting:
    """Wait until the phone is there, answers and has booted."""
    link.server.ensure_running(deadline)
    with link.translated():
        _wait_for_state(link, deadline)
        greeting = _greet(link, deadline)
        while not greeting.has_booted:
            if deadline.left_s < _ASK_EVERY_S:
                raise DeviceLost(
                    f"{link.name} has not finished booting",
                    remedy="wait until its screen shows the lock, then run again",
                )
            deadline.clock.sleep(_ASK_EVERY_S)
            greeting = _ask_facts(link, Deadline.after(_ECHO_S, deadline.clock))
    return greeting


def _wait_for_state(link: AdbLink, deadline: Deadline) -> None:
    """Wait until the server shows the phone as `device`; the error says what it shows instead."""
    absent, undecided = deadline.sooner(_ABSENT_S), deadline.sooner(_UNDECIDED_S)
    pause_s = _LOOK_FIRST_S
    while True:
        # The server answers at once; at the deadline it is asked once more, to say what is wrong.
        states = link.server.states(Deadline.after(_SERVER_S, deadline.clock))
        state = states.get(link.serial, "absent")
        if state == "device":
            return
        if state == "absent" and is_network_serial(link.serial) and not deadline.passed:
            _connect(link, deadline)
        elif (
            deadline.passed
            or (state == "absent" and absent.passed)
            or (state == "unauthorized" and undecided.passed)
            or state.startswith("no permissions")
        ):
            raise _state_error(link, state, states)
        deadline.clock.sleep(min(pause_s, deadline.left_s))
        pause_s = min(2 * pause_s, _LOOK_LAST_S)


def _connect(link: AdbLink, deadline: Deadline) -> None:
    """Tell the server to connect. Its exit is always success, so its words count."""
    said = link.server.query(f"host:connect:{link.serial}", deadline.sooner(_CONNECT_S))
    if "connected to" not in said and "authenticate" not in said:
        raise connection_refused(link.name, link.serial, said)


def _state_error(link: AdbLink, state: str, states: Mapping[str, str]) -> DeviceError:
    if state == "absent":
        attached = sorted(states)
        return DeviceLost(
            f'{link.name}: the adb server at {link.server.address} has no phone with serial "{link.serial}"',
            remedy=suggestion(link.serial, attached)
            if attached
            else "plug it in and turn on USB debugging; no phone is attached now",
        )
    if state in ("unauthorized", "authorizing"):
        return unauthorized(link.name)
    if state.startswith("no permissions"):
        return no_permissions(link.name, state)
    if state == "offline":
        return DeviceLost(
            f"{link.name} is offline", remedy="unplug it and plug it in again, or turn USB debugging off and on"
        )
    return DeviceLost(f"{link.name} is in state {state}, not running Android", remedy="restart it: `adb reboot`")


def _greet(link: AdbLink, deadline: Deadline) -> Greeting:
    """An answer is the only proof that a phone is there; one that fails to give it is tried once more."""
    try:
        return _ask_facts(link, deadline.sooner(_ECHO_S))
    except Frozen:
        if not is_network_serial(link.serial) or deadline.passed:
            raise
        # Connecting anew is all that helps a network connection that was cut in the middle of something.
        with contextlib.suppress(Refused):
            link.server.query(f"host:disconnect:{link.serial}", deadline.sooner(_CONNECT_S))
    except (LinkEnded, Refused):
        if deadline.passed:
            raise
    _wait_for_state(link, deadline)
    return _ask_facts(link, deadline)


def _ask_facts(link: AdbLink, deadline: Deadline) -> Greeting:
    nonce = secrets.token_hex(8)
    try:
        answer = link.ask(f"echo {nonce}; {_FACTS}", deadline)
    except Overdue as error:
        raise Frozen from error
    first, *facts = answer.text.replace("\r", "").split("\n")
    if first != nonce:
        raise LinkEnded(f"asked for {nonce}, the phone said {first!r}")
    if answer.status == 127:  # no getprop: a board with adb that is no Android
        return Greeting(None, has_booted=True)
    serial, boot_serial, booted, *_ = [*facts, "", "", ""]
    known = [number for number in (serial.strip(), boot_serial.strip()) if number not in _NO_NUMBERS]
    return Greeting(known[0] if known else None, has_booted=booted.strip() == "1")
