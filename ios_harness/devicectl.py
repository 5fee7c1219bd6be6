"""`xcrun devicectl` on a Mac, for one phone: every call under our own deadline, every failure explained."""

from __future__ import annotations

import json
import secrets
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from ios_harness.failures import error_words, explained, last_words
from ios_harness.phones import Phone, chosen, phone_in, phones_of
from orchestrator.clock import Deadline
from orchestrator.errors import CommandTimeout, DeviceError, DeviceUnfit
from orchestrator.transports.base import Process, Transport

_OWN_TIMEOUT_MARGIN_S = 5.0


@dataclass(frozen=True)
class Patience:
    """How long devicectl may take."""

    question_s: float = 60.0
    copy_s: float = 600.0
    install_s: float = 300.0
    launch_s: float = 15.0
    """Beyond what the app itself is given."""


PATIENCE = Patience()

# The answer is a file on the Mac: made, printed and removed in one go. What people read goes to standard error.
_ASK = """\
umask 077; mkdir -p "$1" || exit 1
f="$1/$2.json"; shift 2
"$@" --json-output "$f" 1>&2; s=$?
[ -f "$f" ] && cat "$f"; rm -f "$f"; exit $s"""
_WATCH = 'exec "$@" 2>&1'

_TURNS: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
"""By Mac: phones on one Mac are measured side by side, but they are installed and copied to one after another, because
copies share its CoreDevice service and the cable's bandwidth."""


class Devicectl:
    """The commands of devicectl for the phone of one udid."""

    def __init__(
        self, transport: Transport, *, device: str, mac: str, udid: str, folder: str, patience: Patience = PATIENCE
    ) -> None:
        """`folder` is on the Mac, for answers; `device` is the phone's name in messages."""
        self._transport = transport
        self._device = device
        self._patience = patience
        self._turn = _TURNS[mac]
        self._udid = udid
        self._folder = str(PurePosixPath(folder) / "answers")

    # What the Mac sees

    def find(self) -> Phone:
        """The phone, fit to be used as far as the Mac can tell."""
        listed = self._ask("list the phones", ["list", "devices"], self._patience.question_s, for_phone=False)
        phone = chosen(phones_of(listed), self._udid, self._device)
        if error := phone.obstacle(self._device):
            raise error
        return phone

    def details(self) -> Phone | None:
        """The phone in its own words, which the list may not have."""
        return phone_in(self._ask("ask for details", ["device", "info", "details"], self._patience.question_s))

    def has_app(self, bundle: str) -> bool:
        found = self._ask("list apps", ["device", "info", "apps", "--bundle-id", bundle], self._patience.question_s)
        result = found.get("result")
        apps = result.get("apps") if isinstance(result, Mapping) else None
        listed = apps if isinstance(apps, list) else []
        return any(isinstance(app, Mapping) and app.get("bundleIdentifier") == bundle for app in listed)

    # What is done to the phone

    def install(self, app: str) -> None:
        with self._turn:
            self._ask("install the app", ["device", "install", "app"], self._patience.install_s, last=[app])

    def uninstall(self, bundle: str) -> None:
        with self._turn:
            self._ask("remove the app", ["device", "uninstall", "app"], self._patience.install_s, last=[bundle])

    def copy_to(self, source: str, bundle: str, destination: str) -> None:
        """A file of the Mac into the app's container; devicectl does not replace what is there."""
        with self._turn:
            self._ask(
                f"copy {PurePosixPath(source).name}",
                self._copy("to", bundle, source, destination),
                self._patience.copy_s,
            )

    def copy_from(self, source: str, bundle: str, destination: str) -> None:
        with self._turn:
            self._ask("fetch the result", self._copy("from", bundle, source, destination), self._patience.copy_s)

    def launch(self, bundle: str, arguments: Sequence[str]) -> Process:
        """Start the app, an earlier one of its kind ended; its output and devicectl's words come as one stream."""
        argv = ["xcrun", "devicectl", "device", "process", "launch", "--device", self._udid, "--terminate-existing"]
        return self._transport.start(["sh", "-c", _WATCH, "sh", *argv, "--console", bundle, *arguments])

    def terminate(self, pid: int) -> None:
        self._ask("end the app", ["device", "process", "terminate", "--pid", str(pid)], self._patience.question_s)

    # How it is done

    def _copy(self, direction: str, bundle: str, source: str, destination: str) -> list[str]:
        where = ["--domain-type", "appDataContainer", "--domain-identifier", bundle]
        return ["device", "copy", direction, *where, "--source", source, "--destination", destination]

    def _ask(
        self, step: str, words: Sequence[str], seconds: float, *, last: Sequence[str] = (), for_phone: bool = True
    ) -> Mapping[str, Any]:
        """The JSON of a command that succeeded. devicectl has a timeout of its own, which it does not always keep."""
        argv = ["xcrun", "devicectl", *words, *(["--device", self._udid] if for_phone else [])]
        argv += ["--timeout", f"{seconds:.0f}", *last]
        command = ["sh", "-c", _ASK, "sh", self._folder, secrets.token_hex(8), *argv]
        try:
            done = self._transport.run(command, deadline=Deadline.after(seconds + _OWN_TIMEOUT_MARGIN_S))
        except CommandTimeout as error:
            raise CommandTimeout(
                f"{self._device}: devicectl did not {step} within {seconds:.0f} s and was ended",
                remedy="attach the phone by cable, not by Wi-Fi, and unlock it; restart phone and Mac if it stays so",
            ) from error
        answer = _document(done.stdout)
        said = done.stderr.decode("utf-8", "replace")
        if done.exit != 0 or "error" in answer:
            raise explained(self._device, step, f"{error_words(answer)}\n{said}")
        if not answer:
            raise self._unreadable(step, said)
        return answer

    def _unreadable(self, step: str, said: str) -> DeviceError:
        return DeviceUnfit(
            f"{self._device}: devicectl's answer cannot be read ({step}): {last_words(said) or 'no words'}",
            remedy="try `xcrun devicectl list devices --json-output FILE` on the Mac; Xcode 15 or newer has it",
        )


def _document(content: bytes) -> Mapping[str, Any]:
    """The JSON object; empty where there is none that can be read."""
    try:
        found = json.loads(content.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, Mapping) else {}
