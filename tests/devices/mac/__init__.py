"""A Mac that is a folder: a stand-in for `xcrun`, two phones, and failures on demand. No Mac is involved."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[2] / "data" / "ios"
UDID, OTHER_UDID = "00008130-000A11112222333A", "00008101-000B44445555666B"
BUNDLE = "org.devbench.benchmark"
FAILURES: dict[str, dict[str, Any]] = json.loads((DATA / "failures.json").read_text(encoding="utf-8"))


class Mac:
    """The folder `world` holds what the stand-in knows; `bin` goes first in PATH; `workdir` is devbench's."""

    def __init__(self, folder: Path) -> None:
        self.world, self.bin, self.workdir = folder / "world", folder / "bin", folder / "devbench"
        for path in (
            self.world,
            self.bin,
            self.workdir,
            *(self.world / "phones" / udid for udid in (UDID, OTHER_UDID)),
        ):
            path.mkdir(parents=True)
        shutil.copy(DATA / "devices.json", self.world)
        shutil.copy(Path(__file__).with_name("xcrun.py"), self.world)
        xcrun = self.bin / "xcrun"
        xcrun.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {self.world}/xcrun.py "$@"\n')
        xcrun.chmod(0o755)
        self.put_app()

    def put_app(self) -> None:
        """The app as a person who built and signed it leaves it."""
        app = self.workdir / "DevbenchBenchmark.app"
        app.mkdir(exist_ok=True)
        (app / "Info.json").write_text(json.dumps({"bundle": BUNDLE}))

    def remove_app(self) -> None:
        shutil.rmtree(self.workdir / "DevbenchBenchmark.app")

    def break_(self, name: str, *, udid: str | None = None, always: bool = False) -> None:
        """From now on that goes wrong: one of tests/data/ios/failures.json, or something the app does."""
        fault = {"name": name, **FAILURES.get(name, {}), "udid": udid, "always": always}
        (self.world / "fault.json").write_text(json.dumps(fault))

    def mend(self) -> None:
        (self.world / "fault.json").unlink(missing_ok=True)

    def change_phone(self, udid: str, part: str, **properties: Any) -> None:
        """Let the list say something else of a phone."""
        path = self.world / "devices.json"
        content = json.loads(path.read_text())
        for phone in content["result"]["devices"]:
            if phone["hardwareProperties"].get("udid") == udid:
                phone[part].update(properties)
        path.write_text(json.dumps(content))

    def documents(self, udid: str = UDID) -> Path:
        return self.world / "phones" / udid / BUNDLE / "Documents"

    @property
    def calls(self) -> list[list[str]]:
        """Every command line that the stand-in was given."""
        return [json.loads(line) for line in (self.world / "calls").read_text().splitlines()]
