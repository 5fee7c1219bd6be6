"""Runs that are kept, from the command line: listed, tagged, deleted, pruned, carried to another store."""

from __future__ import annotations

import io
import json
import signal
import zipfile
from collections.abc import Callable, Iterator

import pytest

from orchestrator.cli import app
from orchestrator.errors import UsageError
from orchestrator.store import Annals, Standing, open_store
from tests.cli.conftest import Workplace
from tests.unit.nights import add_night, night_id

Call = Callable[..., str]


@pytest.fixture
def call(workplace: Workplace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Call]:
    """Calls the command line in this process, because starting one each time would take half a minute; gives stdout."""
    monkeypatch.chdir(workplace.folder)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    handler = signal.getsignal(signal.SIGPIPE)

    def called(*words: str) -> str:
        capsys.readouterr()
        app(list(words), standalone_mode=False)
        return capsys.readouterr().out

    yield called
    signal.signal(signal.SIGPIPE, handler)


@pytest.fixture
def nights(workplace: Workplace) -> Workplace:
    """A store of three nights, the oldest of them the baseline of an open regression."""
    store = open_store(workplace.folder / "devbench-results")
    for ago in (3, 2, 1):
        add_night(store, ago)
    Annals(store).judge(night_id(1), night_id(3), Standing.BAD, {})
    store.close()
    return workplace


def test_a_run_is_tagged_carried_away_and_deleted(workplace: Workplace, call: Call) -> None:
    """A real run: its tag from the start, its bundle whole elsewhere, and nothing of it left behind."""
    done = workplace.devbench("run", "--plan", workplace.quick_plan(), "--run-tag", "v1", "--quiet")
    assert done.status in (0, 5), done.stderr
    (run,) = json.loads(call("runs", "--tag", "v1", "--json"))["runs"]
    assert (run["cells"], run["tags"], run["status"]) == (1, ["v1"], "finished")
    call("bundle", "v1", "-o", "b.zip")
    assert json.loads(call("unbundle", "b.zip", "--store", "other", "--json"))["added"] == [run["run"]]
    assert (
        json.loads(call("show", "--json", "--store", "other"))["cells"] == json.loads(call("show", "--json"))["cells"]
    )
    with pytest.raises(UsageError, match="is tagged: v1"):
        call("runs", "delete", "v1", "--yes")
    call("runs", "delete", "v1", "--yes", "--force")
    left = [path for path in (workplace.folder / "devbench-results").rglob("*") if path.is_file()]
    assert {path.name for path in left} <= {"devbench.sqlite", "devbench.sqlite-wal", "devbench.sqlite-shm", ".in-use"}


@pytest.mark.usefixtures("nights")
def test_what_is_said_of_runs_is_listed_and_can_be_taken_back(call: Call) -> None:
    call("runs", "note", night_id(2), "  fan was off ")
    call("runs", "tag", night_id(2), "good", "v2")
    call("runs", "untag", "v2", "good")
    listed = {run["run"]: run for run in json.loads(call("runs", "--json"))["runs"]}
    assert (listed[night_id(2)]["tags"], listed[night_id(2)]["notes"]) == (["v2"], ["fan was off"])
    assert listed[night_id(1)]["standing"] == "bad"
    table = call("runs", "list")
    assert "fan was off" in table
    assert table.index(night_id(1)) < table.index(night_id(3)), "the newest first"
    assert call("runs", "close", night_id(1), "--because", "mended") == f"{night_id(1)}: closed (mended)\n"


@pytest.mark.usefixtures("nights")
def test_pruning_says_what_it_does(call: Call) -> None:
    """The dry run touches nothing; the baseline of an open regression stays."""
    tried = call("prune", "--keep-last", "1", "--dry-run")
    assert "would remove 1 run with 2 trials, 2 artifacts (12 bytes)" in tried
    assert "1 old run kept: an open regression needs it" in tried
    done = json.loads(call("prune", "--keep-last", "1", "--json"))
    assert (done["removed"], done["swept"]["artifacts"]) == ([night_id(2)], 2)
    assert [run["run"] for run in json.loads(call("runs", "--json"))["runs"]] == [night_id(1), night_id(3)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["prune"], "prune needs to know what to keep"),
        (["prune", "--keep", "90"], '--keep: "90" is no time to keep runs'),
        (["runs", "--kind", "nightly"], '--kind: "nightly" is unknown'),
        (["runs", "--since", "yesterday"], '--since: "yesterday" is no time'),
        (["runs", "tag", "last", "last-good"], '"last-good" can be no tag'),
        (["runs", "tag", "last", "2026-11-18"], '"2026-11-18" can be no tag'),
        (["runs", "tag", "last", "a b"], "'a b' can be no tag"),
        (["runs", "tag", "nothing", "x"], 'no run "nothing"'),
        (["runs", "untag", "last", "x"], 'does not carry the tag "x"'),
        (["runs", "note", "last", " "], "a note needs words"),
        (["runs", "close", night_id(2)], "has no open regression"),
        (["runs", "delete", night_id(2)], "this would delete 1 run with 2 trials"),
        (["runs", "delete", night_id(3), "--yes"], "an open regression needs run"),
        (["runs", "--store", "elsewhere", "tag", "last", "x"], "takes its options behind its name"),
        (["bundle", "--without", "blobs"], '--without: "blobs" cannot be left out'),
        (["unbundle", "nothing.zip"], "nothing.zip: no such file"),
        (["health", "--since", "x"], '--since: "x" is no time'),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_what_cannot_be_done_is_refused_and_nothing_is_lost(
    nights: Workplace, call: Call, words: list[str], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        call(*words)
    assert message in caught.value.fact
    assert caught.value.remedy
    store = open_store(nights.folder / "devbench-results")
    assert (len(store.runs()), Annals(store).tagged()) == (3, {})


@pytest.mark.usefixtures("nights")
def test_the_record_of_devices_is_shown(call: Call) -> None:
    found = json.loads(call("health", "--since", "2026-01-01", "--json"))["devices"]
    assert [(item["device"], item["verdict"], item["nights"]) for item in found] == [("pixel8", "healthy", 3)]
    assert "pixel8" in call("health", "--since", "2026-01-01")


def test_a_bundle_shows_its_size_first_and_can_be_inspected(nights: Workplace) -> None:
    done = nights.devbench("bundle", night_id(1), "--json")
    assert done.stderr.startswith(f"{night_id(1)} and {night_id(3)}: ")
    manifest = json.loads(zipfile.ZipFile(nights.folder / done.json["file"]).read("manifest.json"))
    assert manifest["runs"] == [night_id(1), night_id(3)]
