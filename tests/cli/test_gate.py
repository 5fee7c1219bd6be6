"""`devbench gate` and `devbench nightly` on a virtual phone, as a lab types them: builds whose slowness is known, and a
pinned reference beside them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from orchestrator import registry
from orchestrator.binaries import Binaries
from orchestrator.cli import app
from orchestrator.cli.options import read_fleet_devices
from orchestrator.device_lock import device_lock
from orchestrator.errors import DevbenchError
from tests.cli.conftest import Done, Workplace
from tests.cli.test_run import wait_for_trials
from tests.devices.adb_server import AdbServer
from tests.devices.build import build_variant
from tests.devices.fixtures import StartPhone
from tests.devices.virtual_phone import VirtualPhone

PLAN = """\
[sweep]
models = ["{model}"]
threads = [1]
loads = ["idle"]

[measure]
blocks = "6:6"
runs = 20
min_ms = 0
warmup_runs = 1
warmup_min_ms = 0
settle_ms = 20
sample_ms = 0

[conditions]
other_cpu_percent_max = 100000
canary = "off"

[reference]
runner = "benchmark_model:pinned"
"""


@dataclass
class Lab:
    """One phone, and a new build of the tool every night."""

    place: Workplace
    phone: VirtualPhone
    original: Path
    nights: int = 0

    def add_build(self, slowdown: float, name: str | None = None) -> None:
        self.nights += 1
        name = name or f"night-{self.nights}"
        built = build_variant(self.original, self.place.folder / name, slowdown=slowdown, name=name)
        Binaries(Path(self.place.env["DEVBENCH_BINARIES"])).add(built, name)

    def run(self, slowdown: float | None = None, *options: str) -> Done:
        if slowdown is not None:
            self.add_build(slowdown)
        return self.command("run", "--plan", "plan.toml", "--quiet", *options)

    def gate(self, *options: str) -> Done:
        return self.command("gate", "--json", "--quiet", *options)

    def command(self, *words: str) -> Done:
        """The command in this process, which is much quicker than in one of its own."""
        done = CliRunner().invoke(app, list(words))
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return Done(done.exit_code, done.stdout, done.stderr)


@pytest.fixture
def lab(
    workplace: Workplace,
    adb_server: AdbServer,
    phone: StartPhone,
    benchmark_model: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Lab:
    workplace.env["DEVBENCH_BINARIES"] = str(workplace.folder / "binaries")
    monkeypatch.chdir(workplace.folder)
    for name in ("DEVBENCH_BINARIES", "DEVBENCH_LOCKS"):
        monkeypatch.setenv(name, workplace.env[name])
    one = phone()
    one.set_benchmark(time_scale=0.01, noise=0.02)
    fleet = '[[device]]\nname = "pixel"\ntransport = "adb"\nserial = "{}"\nadb_server = "127.0.0.1:{}"\n'
    workplace.write("devices.toml", fleet.format(one.address, adb_server.port))
    model = Path(__file__).parents[1] / "data" / "models" / "tiny_add.tflite"
    workplace.write("plan.toml", PLAN.format(model=model))
    made = Lab(workplace, one, benchmark_model)
    made.add_build(1.0, "pinned")
    return made


def cells(done: Done) -> dict[str, Any]:
    return {cell["runner"]: cell for cell in done.json["cells"]}


def test_a_slow_build_is_found_confirmed_and_fails_the_night(lab: Lab) -> None:
    """The first night passes, an unchanged build stays green, a slower phone is no slow build, and a slow build fails
    with the right cell."""
    assert lab.run(1.0).status == 0
    first = lab.gate()
    assert (first.status, first.json["ending"]) == (0, "first")
    assert any("nothing to compare with" in note for note in first.json["notes"])

    assert lab.run(1.0).status == 0
    same = lab.gate("--junit", "same.xml")
    assert (same.status, same.json["ending"]) == (0, "passed"), same.stdout
    assert {name: cell["verdict"] for name, cell in cells(same).items()} == {
        "benchmark_model": "steady",
        "benchmark_model:pinned": "reference",
    }

    shown = lab.command("show", "--json").json
    assert shown["references"] == [cells(same)["benchmark_model:pinned"]["id"]]
    assert (
        "pinned reference, in every block: mobilenet_v2_035_f32 (benchmark_model:pinned" in lab.command("show").stdout
    )

    lab.phone.set_benchmark(time_scale=0.01, noise=0.02, slowdown=1.15)
    assert lab.run(1.0).status == 0
    warm = lab.gate()
    assert warm.status == 0, warm.stdout
    assert cells(warm)["benchmark_model"]["verdict"] == "device-moved"

    assert lab.run(1.12).status == 0
    interrupted = lab.place.start("gate", "--quiet")
    made = len(list(lab.place.folder.glob("devbench-results/artifacts/*/*.log")))
    wait_for_trials(lab.place, made + 3)
    interrupted.kill()
    interrupted.communicate()
    begun = lab.command("runs", "--json").json["runs"][0]["run"]
    slow = lab.gate("--junit", "slow.xml", "--markdown", "slow.md", "--github")
    assert (slow.status, slow.json["ending"]) == (1, "regression"), slow.stdout
    (bad,) = [cell for cell in slow.json["cells"] if cell["verdict"] == "confirmed"]
    assert bad["runner"] == "benchmark_model" and "runner_sha256" in bad["changed"]
    assert 9 < bad["confirmation"]["effect_percent"] < 15
    assert slow.json["baseline"] == warm.json["run"]
    assert slow.json["duel"] == begun, "a stage two that was killed is resumed"
    suite = ElementTree.fromstring((lab.place.folder / "slow.xml").read_text()).find("testsuite")
    assert suite is not None and suite.get("failures") == "1"
    assert (lab.place.folder / "slow.md").read_text().startswith("**REGRESSION")
    assert "::error title=confirmed" in slow.stderr

    again = lab.gate("--no-confirm")
    assert (again.status, again.json["ending"]) == (0, "suspicion")
    assert lab.gate("--no-confirm", "--fail-on", "suspected").status == 1

    device = read_fleet_devices(None)[0]
    with device_lock(registry.transport("adb").identity(device), device="pixel", run="of-somebody"):
        busy = lab.gate("--confirm")
    assert (busy.status, busy.json["ending"]) == (4, "suspicion")
    assert ["pixel is busy: run of-somebody" in reason for reason in busy.json["unconfirmed"].values()] == [True]


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        ((), "no store in {store}"),
        (("--fail-on", "never"), '--fail-on: "never" is unknown'),
        (("--budget", "1x"), '--budget: "1x" is no duration'),
        (("--threshold", "0%"), '--threshold: "0%" is no share between 0 and 100 %'),
        (("--no-confirm", "--budget", "5m"), "--budget is for stage two, and --no-confirm leaves it out"),
    ],
)
def test_wrong_words_are_refused(options: tuple[str, ...], fact: str, tmp_path: Path) -> None:
    """Before anything is read."""
    store = str(tmp_path / "store")
    done = CliRunner().invoke(app, ["gate", *options, "--store", store])
    assert isinstance(done.exception, DevbenchError)
    assert done.exception.fact == fact.format(store=store)
