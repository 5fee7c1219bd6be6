"""The stage of an iPhone behind a Mac: the benchmark app, launched once for each trial."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ios_harness import app_protocol as app
from ios_harness.app_runner import PROGRAM
from ios_harness.devicectl import PATIENCE, Devicectl, Patience
from ios_harness.failures import explained, no_libraries
from ios_harness.shell_files import ShellFiles
from orchestrator.clock import Deadline
from orchestrator.content_hash import sha256
from orchestrator.errors import DevbenchError, DeviceError, DeviceUnfit, during
from orchestrator.fleet import Device
from orchestrator.runners.base import Command
from orchestrator.stage import Report, Trialling
from orchestrator.transports.base import Completed, Process, Transport

NO_ENVIRONMENT: Mapping[str, str] = MappingProxyType({})
UNWATCHED = "no agent runs on iOS"
_CHECK_S = 60.0
_TICK_S = 0.25
_STATE_HOLDS_S = 20.0
_MAX_AGE_DAYS = 30
_CONSOLE_MAX = 8 * 1024 * 1024
_README = "ios_harness/benchmark_app/README.md says how to build and sign it"


@dataclass
class _Launch:
    """One launch of the app: what it was asked, what the console showed, how it ended and what it left."""

    nonce: str
    console: bytearray = field(default_factory=bytearray)
    ended: str = "exit"
    result: bytes | None = None

    @property
    def lines(self) -> list[str]:
        return self.console.decode("utf-8", "replace").splitlines()

    def output(self) -> list[bytes]:
        """What a runner reads: how the app was launched, and its result."""
        launched = {"nonce": self.nonce, "ended": self.ended, "way": "gateway"}
        return [json.dumps(launched).encode(), *([self.result] if self.result is not None else [])]


class GatewayStage:
    """One iPhone, reached through the Mac that a transport leads to."""

    def __init__(self, transport: Transport, device: Device, workdir: str, patience: Patience = PATIENCE) -> None:
        self._name = device.name
        self._bundle = str(device.address.get("app", app.BUNDLE))
        mac, udid = str(device.address["gateway"]), str(device.address["udid"])
        own = f"{workdir}/{udid}"  # phones on one Mac do not get into each other's way
        self._app = f"{workdir}/{app.APP_FOLDER}"
        self._phone = Devicectl(transport, device=device.name, mac=mac, udid=udid, folder=own, patience=patience)
        self._mac = ShellFiles(transport, own, device.name)
        self._grace_s = patience.launch_s
        self._checked: _Launch | None = None
        self._state: Mapping[str, Any] | None = None
        self._state_until = Deadline.after(0)
        self._held: set[str] = set()

    # What the phone is

    def probe(self, deadline: Deadline) -> Mapping[str, Any]:
        """What Mac, phone and app say. Every step has a deadline of its own: installing may take minutes."""
        found = self._phone.find()
        self._install_if_missing()
        result = self._check(verify=True)
        phone = self._phone.details() or found
        self._held = set(app.part(result, "files"))
        said = {key: dict(app.part(result, key)) for key in ("app", "device")}
        return {"phone": vars(phone), "chip": phone.chip, "state": dict(app.part(result, "state_after")), **said}

    def sample(self, seconds: float, deadline: Deadline) -> Report:
        """How the phone is, in the app's words; there is no telemetry over time. What it said a moment ago still
        holds: a phone that does nothing does not get hotter, and every trial looks again when it begins."""
        if self._state is None or self._state_until.passed:
            self._check(verify=False)
        return Report(samples=[self._state] if self._state else [], unwatched=UNWATCHED)

    def canary(self, affinity: str | None, deadline: Deadline) -> int:
        raise DeviceUnfit(UNWATCHED, remedy="leave canary out of [conditions] for iPhones")

    def check(self, command: Command, deadline: Deadline) -> Completed:
        """The app's answer of this session: it is the same app all along, and says its hash with every result."""
        if command.argv[0] != PROGRAM:
            raise DeviceUnfit(
                f"{self._name}: behind a Mac only devbench's own app runs, not {Path(command.argv[0]).name}",
                remedy=f'use runner = "{PROGRAM}"',
            )
        if self._checked is None:
            self._check(verify=True)
        assert self._checked
        return Completed(0, b"\n".join(self._checked.output()), b"")

    def _install_if_missing(self) -> None:
        if self._phone.has_app(self._bundle):
            return
        if not self._mac.has_folder(self._app):
            raise DeviceUnfit(
                f"{self._name}: the app {self._bundle} is not on the phone, and {self._app} is not on the Mac",
                remedy=f"{_README}; put it there, or install it by hand",
            )
        with during(f"installing {app.APP_FOLDER}"):
            self._phone.install(self._app)

    def _check(self, *, verify: bool) -> Mapping[str, Any]:
        launch = self._perform(app.request("check", verify=verify), _CHECK_S, lambda: False)
        result = self._result(launch)
        self._checked = launch
        return result

    def _result(self, launch: _Launch) -> Mapping[str, Any]:
        try:
            return app.read_result(launch.result or b"", launch.nonce)
        except app.BadResult as error:
            raise DeviceUnfit(
                f"{self._name}: {error}", remedy=f"install the app of this devbench; {_README}"
            ) from error

    # Trials

    def run(self, trialling: Trialling, stopped: Callable[[], bool]) -> Report:
        asked = json.loads(trialling.command.argv[1])
        request = {**asked, "deadline_s": trialling.deadline_s}
        launch = self._perform(request, trialling.deadline_s, stopped, trialling.command.env)
        signal = app.ending_signal(launch.lines)
        closing: dict[str, Any] = {"reason": launch.ended, "exit": 0, "lines": 0}
        if signal is not None and launch.result is None and launch.ended == "exit":
            closing = {"reason": "signal", "signal": signal, "lines": 0}
        return Report(
            started={"nonce": launch.nonce},
            stdout=launch.output(),
            stderr=bytes(launch.console).splitlines(),
            samples=_states(launch),
            closing=closing,
            transcript=launch.console + b"\n" + (launch.result or b""),
            unwatched=UNWATCHED,
        )

    def _perform(
        self,
        request: Mapping[str, Any],
        seconds: float,
        stopped: Callable[[], bool],
        env: Mapping[str, str] = NO_ENVIRONMENT,
    ) -> _Launch:
        """Ask, launch, wait, fetch. An app that never began is the phone's trouble; one that did is the trial's."""
        launch = _Launch(secrets.token_hex(8))
        content = json.dumps({**request, "nonce": launch.nonce}).encode()
        self._phone.send(content, self._bundle, app.request_path(launch.nonce))
        process = self._phone.launch(self._bundle, ["request", launch.nonce], env)
        try:
            self._follow(process, launch, seconds, stopped)
        finally:
            process.kill()
        pid = app.started_pid(launch.lines, launch.nonce)
        if launch.ended != "exit" and pid is not None:
            with suppress(DevbenchError):  # it ends by its own deadline too, and the next launch ends it
                self._phone.terminate(pid)
        if pid is None and launch.ended == "exit":
            raise explained(self._name, "launch the app", bytes(launch.console).decode("utf-8", "replace"))
        if launch.ended == "exit":
            launch.result = self._fetch(launch)
            self._state = next(reversed(_states(launch)), None)
            self._state_until = Deadline.after(_STATE_HOLDS_S)
        return launch

    def _follow(self, process: Process, launch: _Launch, seconds: float, stopped: Callable[[], bool]) -> None:
        deadline = Deadline.after(seconds + self._grace_s)
        while not process.at_end:
            if stopped() or deadline.passed:
                launch.ended = "deadline" if deadline.passed else "terminated"
                launch.console += process.receive(Deadline.after(0))  # the app's process may just have been told
                return
            launch.console += process.receive(deadline.sooner(_TICK_S))
            del launch.console[_CONSOLE_MAX:]

    def _fetch(self, launch: _Launch) -> bytes | None:
        """What the app wrote; None where it wrote nothing."""
        try:
            return self._phone.fetch(app.result_path(launch.nonce), self._bundle, app.RESULT_MAX_BYTES)
        except DeviceError as error:
            if error.retryable:
                raise
            launch.console += f"\ndevbench: {error.fact}\n".encode()
            return None

    # Files

    def ensure(self, source: Path, *, executable: bool = False) -> str:
        if executable:
            raise DeviceUnfit(
                f"{self._name}: behind a Mac no program can be pushed to an iPhone",
                remedy=f'use runner = "{PROGRAM}"',
            )
        digest = sha256(source)
        if digest not in self._held:
            with during(f"pushing {source.name}"):
                staged = self._mac.ensure(source)
                self._phone.copy_to(staged, self._bundle, app.file_path(digest))
                self._mac.remove(staged)
                # The app removes what has another hash than its name says, so that a torn copy is copied anew.
                self._held = set(app.part(self._check(verify=True), "files"))
                if digest not in self._held:
                    raise DeviceError(
                        f"{self._name}: {source.name} arrived on the phone with another content",
                        remedy="attach the phone by cable, then run again",
                    )
        return app.file_path(digest)

    def ensure_together(self, sources: Mapping[str, Path]) -> tuple[str, ...]:
        raise no_libraries(sources)

    def prune(self) -> int:
        """The app removes the models that nobody used for long."""
        launch = self._perform(app.request("prune", max_age_days=_MAX_AGE_DAYS), _CHECK_S, lambda: False)
        return app.whole_number(self._result(launch), "removed") or 0

    def clean(self) -> None:
        """The app goes with everything in its container; what a person put on the Mac stays."""
        self._phone.find()
        if self._phone.has_app(self._bundle):
            self._phone.uninstall(self._bundle)
        self._mac.remove(self._mac.path())


def _states(launch: _Launch) -> list[Mapping[str, Any]]:
    """How the phone was before and after the inferences, where the app could tell."""
    try:
        result = app.read_result(launch.result or b"", launch.nonce)
    except app.BadResult:
        return []
    return [app.state_of(app.part(result, key)) for key in ("state_before", "state_after") if app.part(result, key)]
