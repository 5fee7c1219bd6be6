"""`devbench reproduce` as a user types it, on a virtual phone and builds whose speed is known."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestrator.duel import side_of
from orchestrator.errors import RunNotFound, StoreError, UsageError
from orchestrator.reproduce import device_of, find_case
from orchestrator.store import open_store
from tests.cli.conftest import Done, Workplace, a_workplace
from tests.devices.adb_server import AdbServer
from tests.devices.build import build_variant
from tests.devices.virtual_phone import FLAGSHIP, PhoneRack, VirtualPhone


@dataclass
class Lab:
    """A workplace, one phone, and runs of builds whose speed is known."""

    workplace: Workplace
    original: Path
    phone: VirtualPhone
    runs: dict[str, str]

    @property
    def store(self) -> Path:
        return self.workplace.folder / "devbench-results"

    def night(self, name: str, slowdown: float) -> None:
        """A run of a build so many times slower."""
        built = build_variant(self.original, self.workplace.folder / name, slowdown=slowdown, name=name)
        assert self.workplace.devbench("binaries", "add", built, "--name", name).status == 0
        done = self.workplace.devbench("run", "--plan", "plan.toml", "--quiet", "--json")
        assert done.status == 0, done.stderr
        self.runs[name] = str(done.json["run"])

    def reproduce(self, *arguments: str) -> Done:
        return self.workplace.devbench("reproduce", *arguments)


@pytest.fixture(scope="module")
def lab(
    tmp_path_factory: pytest.TempPathFactory, adb_server: AdbServer, rack: PhoneRack, benchmark_model: Path
) -> Iterator[Lab]:
    """Three nights: the second build is 10 % slower than the first, the third is as slow as the second."""
    one = rack.start(FLAGSHIP)
    adb_server.connect(one)
    one.set_benchmark(time_scale=0.01, noise=0.02)
    workplace = a_workplace(tmp_path_factory.mktemp("lab"))
    workplace.env["DEVBENCH_BINARIES"] = str(workplace.folder / "binaries")
    address = f'serial = "{one.address}"\nadb_server = "127.0.0.1:{adb_server.port}"\n'
    workplace.write("devices.toml", f'[[device]]\nname = "pixel"\ntransport = "adb"\n{address}')
    plan = workplace.quick_plan(blocks="1:1", threads="[1, 2]")
    plan.write_text(plan.read_text().replace("[conditions]", '[conditions]\ncanary = "off"'))
    made = Lab(workplace, benchmark_model, one, {})
    for name, slowdown in (("first", 1.0), ("second", 1.1), ("third", 1.1)):
        made.night(name, slowdown)
    shutil.rmtree(workplace.folder / "binaries")  # the store has the bytes, and nothing else is asked
    yield made
    adb_server.run("disconnect", one.address)
    rack.stop(one)


def test_a_slower_build_is_reproduced_and_one_as_slow_is_not(lab: Lab) -> None:
    """Exit 0 and 1; before it starts it says what differs about the phone now."""
    lab.phone.set_state("wakefulness", "Asleep")
    found = lab.reproduce(lab.runs["second"], "threads=2", "--device", "pixel")
    assert found.status == 0, found.stderr
    assert found.stdout.startswith("reproduced +")
    assert "what differs: runner" in found.stderr
    assert found.stderr.index("screen on then, screen off now") < found.stderr.index("block 0")
    false = lab.reproduce(lab.runs["third"], "threads=2", "--json", "--quiet", "--profile")
    assert false.status == 1, false.stderr
    assert false.json["answer"] == "not_reproduced"
    assert false.json["baseline"] == lab.runs["second"]
    assert false.json["decided_by"]["verdict"] == "same"
    assert false.json["operators"]["ops"]
    lab.phone.set_state("wakefulness", "Awake")


def test_a_budget_that_is_too_small_leaves_it_unknown(lab: Lab) -> None:
    """Exit 5, with the reason; what was measured is kept."""
    done = lab.reproduce(lab.runs["second"], "threads=1", "--budget", "500ms", "--json", "--quiet")
    assert done.status == 5, done.stderr
    assert done.json["answer"] == "unknown"
    assert done.json["reason"] == "budget spent"


def test_a_killed_one_goes_on(lab: Lab) -> None:
    """No trial is lost or doubled, and `run --resume` says which command goes on."""
    process = lab.workplace.start("reproduce", lab.runs["second"], "1", "thread")
    assert process.stderr is not None
    assert any("block 3" in line for line in iter(process.stderr.readline, ""))
    process.kill()
    process.communicate()
    with_run = lab.workplace.devbench("run", "--resume", open_store(lab.store).runs()[0].id)
    assert with_run.status == 2 and "go on with `devbench reproduce --resume" in with_run.stderr
    done = lab.reproduce("--resume", "--json")
    assert done.status == 0, done.stderr
    trials = open_store(lab.store).trials(done.json["duel"])
    slots = [(trial.slot.block, trial.slot.arm) for trial in trials]
    assert sorted(slots) == sorted(
        {(block, arm) for block in range(len(slots) // 2) for arm in ("baseline", "candidate")}
    )
    shown = lab.workplace.devbench("compare", done.json["duel"], "--json")
    assert shown.json["cells"][0]["ci_low_percent"] == done.json["decided_by"]["ci_low_percent"]


def test_what_cannot_be_reproduced_is_named(lab: Lab, tmp_path: Path) -> None:
    """A word that fits several cells, a first night, a device of another fleet, a run without its bytes."""
    store = open_store(lab.store)
    second = lab.runs["second"]
    with pytest.raises(UsageError, match='"tiny" may mean 2 cells') as ambiguous:
        find_case(store, second, "tiny", device=None, baseline=None)
    assert "1 thread" in ambiguous.value.remedy and "2 threads" in ambiguous.value.remedy
    with pytest.raises(RunNotFound, match="no run before"):
        find_case(store, lab.runs["first"], "threads=1", device=None, baseline=None)
    case = find_case(store, second, "threads=1", device=None, baseline=None)
    with pytest.raises(UsageError, match="was not measured on other"):
        device_of(case.run, "other", case.suspect.cell, None)
    broken = shutil.copytree(lab.store, tmp_path / "broken")
    shutil.rmtree(broken / "blobs" / str(case.base.cell.runner_sha256))
    with pytest.raises(StoreError, match="has lost the file"):
        find_case(open_store(broken), second, "threads=1", device=None, baseline=None)
    exported = tmp_path / "trials.jsonl"
    assert lab.workplace.devbench("export", second, "-o", exported).status == 0
    elsewhere = tmp_path / "elsewhere"
    assert lab.workplace.devbench("import", exported, "--store", elsewhere).status == 0
    with pytest.raises(UsageError, match="was imported: its trials are here, but not the bytes"):
        side_of(open_store(elsewhere), second, case.suspect.cell)
