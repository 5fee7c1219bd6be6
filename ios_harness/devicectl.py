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

from ios_harness.failures import error_words, explained
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

# devicectl speaks in files on the Mac: made, read and removed in one go. What people read goes to standard error.
_BEGIN = 'umask 077; mkdir -p "$1" || exit 1; f="$1/$2"; shift 2; '
_END = '[ -f "$f.json" ] && cat "$f.json"; rm -f "$f" "$f.json"; exit $s'
_ASK = _BEGIN + '"$@" --json-output "$f.json" 1>&2; s=$?; ' + _END
_SEND = _BEGIN + 'cat > "$f" && "$@" --source "$f" --json-output "$f.json" 1>&2; s=$?; ' + _END
_FETCH = (
    _BEGIN
    + 'm=$1; shift; "$@" --destination "$f" --json-output "$f.json" 1>&2; s=$?; '
    + '[ $s = 0 ] && { head -c "$m" "$f"; rm -f "$f.json"; }; '
    + _END
)
_WATCH = 'exec "$@" 2>&1'

_TURNS: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
"""By Mac: phones on one Mac are measured side by side, but apps are installed one after another, because all are taken
from one folder there. Copies are not held up: one that hangs must delay no other phone."""


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
        words = [*self._copy("to", bundle), "--destination", destination, "--source", source]
        self._ask(f"copy {PurePosixPath(source).name}", words, self._patience.copy_s)

    def send(self, content: bytes, bundle: str, destination: str) -> None:
        """A small file of ours into the app's container."""
        words = [*self._copy("to", bundle), "--destination", destination]
        self._run("copy the request", words, self._patience.copy_s, script=_SEND, content=content)

    def fetch(self, source: str, bundle: str, max_bytes: int) -> bytes:
        """A file out of the app's container; one byte more than `max_bytes` where it is longer."""
        words = [*self._copy("from", bundle), "--source", source]
        limit = [str(max_bytes + 1)]
        return self._run("fetch the result", words, self._patience.copy_s, script=_FETCH, before=limit)

    def launch(self, bundle: str, arguments: Sequence[str], env: Mapping[str, str]) -> Process:
        """Start the app, an earlier one of its kind ended; its output and devicectl's words come as one stream."""
        argv = ["xcrun", "devicectl", "device", "process", "launch", "--device", self._udid, "--terminate-existing"]
        if env:
            argv += ["--environment-variables", json.dumps(dict(env))]
        return self._transport.start(["sh", "-c", _WATCH, "sh", *argv, "--console", bundle, *arguments])

    def terminate(self, pid: int) -> None:
        self._ask("end the app", ["device", "process", "terminate", "--pid", str(pid)], self._patience.question_s)

    # How it is done

    def _copy(self, direction: str, bundle: str) -> list[str]:
        return ["device", "copy", direction, "--domain-type", "appDataContainer", "--domain-identifier", bundle]

    def _ask(
        self, step: str, words: Sequence[str], seconds: float, *, last: Sequence[str] = (), for_phone: bool = True
    ) -> Mapping[str, Any]:
        """The JSON of a command that succeeded."""
        answer = _document(self._run(step, words, seconds, last=last, for_phone=for_phone))
        if not answer:
            raise self._unreadable(step)
        return answer

    def _run(
        self,
        step: str,
        words: Sequence[str],
        seconds: float,
        *,
        script: str = _ASK,
        before: Sequence[str] = (),
        last: Sequence[str] = (),
        for_phone: bool = True,
        content: bytes = b"",
    ) -> bytes:
        """What the script prints of a command that succeeded. devicectl's own timeout is given, and not relied upon."""
        argv = ["xcrun", "devicectl", *words, *(["--device", self._udid] if for_phone else [])]
        argv += ["--timeout", f"{seconds:.0f}", *last]
        command = ["sh", "-c", script, "sh", self._folder, secrets.token_hex(8), *before, *argv]
        deadline = Deadline.after(seconds + _OWN_TIMEOUT_MARGIN_S)
        try:
            done = self._transport.run(command, deadline=deadline, content=content)
        except CommandTimeout as error:
            raise CommandTimeout(
                f"{self._device}: devicectl did not {step} within {seconds:.0f} s and was ended",
                remedy="attach the phone by cable, not by Wi-Fi, and unlock it; restart phone and Mac if it stays so",
            ) from error
        if done.exit != 0:
            words_said = done.stderr.decode("utf-8", "replace")
            raise explained(self._device, step, f"{error_words(_document(done.stdout))}\n{words_said}")
        return done.stdout

    def _unreadable(self, step: str) -> DeviceError:
        return DeviceUnfit(
            f"{self._device}: devicectl's answer cannot be read ({step})",
            remedy="try `xcrun devicectl list devices --json-output FILE` on the Mac; Xcode 15 or newer has it",
        )


def _document(content: bytes) -> Mapping[str, Any]:
    """The JSON object; empty where there is none that can be read."""
    try:
        found = json.loads(content.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, Mapping) else {}
