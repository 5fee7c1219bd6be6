"""What a user gets wrong, or a machine runs out of: one clear message, its exit code, and nothing lost."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import DATA, TINY, Workplace


def refused(workplace: Workplace, *arguments: str | Path, status: int = 2) -> str:
    """The message of a command that must end with this status and print no result."""
    done = workplace.devbench(*arguments)
    assert done.status == status, (done.status, done.stderr)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr.replace(str(workplace.folder), "WORK").replace(str(DATA), "DATA")


# Models


def test_a_missing_model(workplace: Workplace) -> None:
    """A model that does not exist is named before anything is touched."""
    assert refused(workplace, "run", "--model", "nowhere.tflite") == (
        "error: WORK/nowhere.tflite: no such model file\n"
        "  try:   check the path given by --model or in the plan\n"
    )  # fmt: skip
    assert not (workplace.folder / "devbench-results").exists()


def test_a_glob_that_matches_nothing(workplace: Workplace) -> None:
    """A pattern without a match is an error, not an empty run."""
    assert refused(workplace, "run", "--model", "models/*.tflite") == (
        "error: no model matches WORK/models/*.tflite\n  try:   check the pattern; it was looked for in WORK\n"
    )


def test_an_empty_model(workplace: Workplace) -> None:
    """A file of no bytes is called empty."""
    assert refused(workplace, "run", "--model", DATA / "empty.tflite") == (
        "error: DATA/empty.tflite: the file is empty\n  try:   export or copy the model again\n"
    )


def test_a_file_that_is_no_model(workplace: Workplace) -> None:
    """A file without the flatbuffer identifier is no TFLite model."""
    assert refused(workplace, "run", "--model", DATA / "not_a_model.tflite") == (
        "error: DATA/not_a_model.tflite: not a TFLite model (no TFL3 identifier)\n"
        "  try:   convert the model to .tflite first\n"
    )


def test_a_truncated_model(workplace: Workplace) -> None:
    """A model that was cut short is told from a whole one."""
    assert refused(workplace, "run", "--model", DATA / "truncated.tflite") == (
        "error: DATA/truncated.tflite: a damaged TFLite model: it points past its end at 388 bytes, "
        "so it was cut short or overwritten\n"
        "  try:   export or copy the model again\n"
    )


def test_a_folder_is_no_model(workplace: Workplace) -> None:
    """A folder given as a model is refused."""
    assert refused(workplace, "run", "--model", DATA) == (
        "error: DATA: a folder, not a model file\n  try:   name the files in it: DATA/*.tflite\n"
    )


def test_a_pipe_is_no_model(workplace: Workplace) -> None:
    """A named pipe would make devbench wait for ever; it is refused."""
    os.mkfifo(workplace.folder / "pipe.tflite")
    assert "not a regular file" in refused(workplace, "run", "--model", "pipe.tflite")


# Plans and fleets


def test_threads_zero(workplace: Workplace) -> None:
    """Zero threads is a mistake in the plan or on the command line."""
    assert refused(workplace, "run", "--threads", "0") == (
        "error: --threads: 0 threads\n  try:   use 1 to 1024\n"
    )  # fmt: skip


def test_more_threads_than_cores_everywhere(workplace: Workplace) -> None:
    """If no device has the cores, nothing is measured, and the reason is shown."""
    done = workplace.devbench("run", "--model", TINY, "--threads", "1000", "--quiet")
    assert done.status == 5
    assert "1000 threads on a device with" in done.stdout
    assert "nothing was measured" in done.stderr


def test_an_empty_grid(workplace: Workplace) -> None:
    """An empty axis is refused with its key."""
    plan = workplace.write("plan.toml", "[sweep]\nthreads = []\n")
    assert "[sweep] threads: is an empty list" in refused(workplace, "run", "--plan", plan)


def test_an_absurdly_large_grid(workplace: Workplace) -> None:
    """A grid nobody can mean is refused with its shape."""
    plan = workplace.write("plan.toml", f"[sweep]\nthreads = {list(range(1, 1001))}\nloads = {LOADS}\n")
    message = refused(workplace, "run", "--plan", plan)
    assert message == (
        "error: the plan asks for 128,000 cells on this-machine (2 x 1 x 1 x 1000 x 1 x 64), "
        "2,304,000 trials at the most; the limit is 10,000 cells and 1,000,000 trials\n"
        "  try:   narrow [sweep], lower [measure] blocks, or split the plan into several\n"
    )


LOADS = [f"cpu:{count}@50" for count in range(1, 65)]


def test_an_unknown_key_in_the_fleet(workplace: Workplace) -> None:
    """A misspelt key is an error that names file, table, key and the nearest right key."""
    workplace.write("devices.toml", '[[device]]\nname = "x"\ntransprot = "local"\n')
    assert refused(workplace, "devices") == (
        'error: devices.toml: [[device]] "x" transport: is missing\n'
        '  try:   add transport = … to [[device]] "x"\n'
    )  # fmt: skip
    workplace.write("devices.toml", '[[device]]\nname = "x"\ntransport = "local"\ntag = ["a"]\n')
    message = refused(workplace, "devices")
    assert message.startswith(
        'error: devices.toml: [[device]] "x" tag: is not a key here\n  try:   did you mean "tags"?'
    )


def test_a_transport_that_is_not_installed(workplace: Workplace) -> None:
    """A transport this version lacks is refused by name, with those there are."""
    workplace.write("devices.toml", '[[device]]\nname = "board"\ntransport = "serial"\nhost = "1"\n')
    assert refused(workplace, "run").startswith(
        'error: devices.toml: [[device]] "board" transport: "serial" is unknown\n'
    )


def test_a_limit_the_platform_cannot_check(workplace: Workplace) -> None:
    """A limit nobody can check is refused rather than ignored."""
    fleet = '[[device]]\nname = "x"\ntransport = "local"\nlimits = { thermal_status_max = 0 }\n'
    workplace.write("devices.toml", fleet)
    done = workplace.devbench("run", "--model", TINY, "--quiet")
    assert done.status == 2
    assert "x: limits.thermal_status_max cannot be checked on platform linux" in done.stderr


def test_one_machine_under_two_names(workplace: Workplace) -> None:
    """Two entries for one device are refused: they would measure each other."""
    entry = '[[device]]\nname = "{}"\ntransport = "local"\n'
    workplace.write("devices.toml", entry.format("a") + entry.format("b"))
    assert refused(workplace, "run", "--model", TINY) == (
        'error: "a" and "b" are one and the same device\n'
        "  try:   remove one of them, or choose one with --device\n"
    )  # fmt: skip


def test_an_unknown_device_name(workplace: Workplace) -> None:
    """--device with a name that is not in the fleet suggests the right one."""
    assert refused(workplace, "run", "--device", "this-machin").startswith(
        'error: (this machine) has no device "this-machin"\n  try:   did you mean "this-machine"?'
    )


def test_an_unknown_option_is_a_usage_error(workplace: Workplace) -> None:
    """The command line itself is checked: exit code 2."""
    assert "No such option: --thread" in refused(workplace, "run", "--thread", "2")


def test_what_is_not_supported_is_refused_by_name(workplace: Workplace) -> None:
    """An option whose work cannot be done here is refused, never parsed and ignored."""
    assert "operator profiles" in refused(workplace, "run", "--profile")


# Stores


def test_there_is_no_store(workplace: Workplace) -> None:
    """Reading commands do not make a store."""
    assert refused(workplace, "show", status=6) == (
        "error: no store in devbench-results\n"
        "  try:   measure something with `devbench run`, or point --store to another folder\n"
    )
    assert not (workplace.folder / "devbench-results").exists()


def test_an_unknown_run(workplace: Workplace) -> None:
    """A run that is not there is said so, with those that are."""
    workplace.devbench("run", "--plan", workplace.quick_plan(blocks="1:1"), "--quiet")
    message = refused(workplace, "show", "1999")
    assert message.startswith(
        'error: no run "1999" in devbench-results\n  try:   `last` is the newest; the latest are 20'
    )


def test_a_store_from_a_newer_version(workplace: Workplace) -> None:
    """A newer schema is refused, and the store is left as it is."""
    workplace.devbench("run", "--plan", workplace.quick_plan(blocks="1:1"), "--quiet")
    database = workplace.folder / "devbench-results" / "devbench.sqlite"
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE schema_version SET version = 99")
    connection.close()
    assert refused(workplace, "show", status=6) == (
        "error: the store devbench-results was written by a newer devbench (schema 99, this one knows 5)\n"
        "  try:   upgrade devbench, or point --store to another folder\n"
    )


def test_a_store_that_is_no_database(workplace: Workplace) -> None:
    """A damaged database is called damaged."""
    (workplace.folder / "devbench-results").mkdir()
    (workplace.folder / "devbench-results" / "devbench.sqlite").write_bytes(b"not a database at all" * 100)
    assert "is damaged: file is not a database" in refused(workplace, "show", status=6)


def test_a_store_place_that_is_a_file(workplace: Workplace) -> None:
    """A file where the store should be is refused."""
    workplace.write("taken", "x")
    assert "taken" in refused(workplace, "run", "--model", TINY, "--store", "taken", status=6)


def test_a_database_url_is_refused_by_name(workplace: Workplace) -> None:
    """Stores this version lacks are refused by name."""
    message = refused(workplace, "run", "--model", TINY, "--store", "postgresql://lab/devbench", status=6)
    assert message.startswith("error: postgresql:// stores are not supported by this version\n")


@contextmanager
def mounted(place: Path, options: str) -> Iterator[None]:
    """A small file system of its own; needs root."""
    place.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], capture_output=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"cannot mount a file system here: {done.stderr.decode().strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], check=True)


needs_root = pytest.mark.skipif(os.getuid() != 0, reason="mounting a small or read-only file system needs root")


@needs_root
def test_a_full_disk_keeps_what_was_measured(workplace: Workplace) -> None:
    """When the store's disk is full the run ends with 6 and its reason; what was kept can be read and resumed."""
    store = workplace.folder / "devbench-results"
    with mounted(store, "size=700k"):
        done = workplace.devbench("run", "--plan", workplace.quick_plan(blocks="50:50"), "--quiet")
        assert done.status == 6, done.stderr
        assert "error: no space left for the store devbench-results\n" in done.stderr
        assert "`devbench run --resume` goes on where it was" in done.stderr
        subprocess.run(["mount", "-o", "remount,size=50m", str(store)], check=True)
        kept = workplace.exported()
        assert len(kept) > 5
        assert workplace.devbench("run", "--resume", "--quiet").status == 0
        trials = workplace.exported()
        assert trials[: len(kept)] == kept
        assert len({trial["block"] for trial in trials}) == len(trials) == 50


@needs_root
def test_a_read_only_store(workplace: Workplace) -> None:
    """A store that cannot be written is refused before anything is measured."""
    with mounted(workplace.folder / "ro", "size=1m"):
        subprocess.run(["mount", "-o", "remount,ro", str(workplace.folder / "ro")], check=True)
        message = refused(workplace, "run", "--model", TINY, "--store", "ro/store", status=6)
    assert "Read-only file system" in message
    assert "try:   make it writable, or point --store to another folder" in message


@needs_root
def test_a_full_device_is_named(workplace: Workplace) -> None:
    """When the device has no room for the files, the error says where."""
    workdir = workplace.folder / "device"
    workplace.write("devices.toml", f'[[device]]\nname = "x"\ntransport = "local"\nworkdir = "{workdir}"\n')
    with mounted(workdir, "size=100k"):
        done = workplace.devbench("run", "--model", TINY, "--quiet")
    assert done.status == 4
    assert f"error: devbench-agent-{os.uname().machine} needs 9 MB in {workdir}, and 0 MB are free\n" in done.stderr
    assert "  while: pushing devbench-agent-" in done.stderr


# Imports


def test_an_import_that_cannot_be_read(workplace: Workplace) -> None:
    """A bad line is named by its number, and nothing of the file is taken in."""
    workplace.devbench("run", "--plan", workplace.quick_plan(), "--quiet")
    workplace.devbench("export", "-o", "good.jsonl")
    good = (workplace.folder / "good.jsonl").read_text()
    workplace.write("bad.jsonl", good + '{"schema":"devbench.trial","version":2}\n')
    message = refused(workplace, "import", "bad.jsonl", "--store", "other")
    assert message.startswith("error: bad.jsonl, line 3: version is 2\n")
    assert not (workplace.folder / "other").exists()
    assert "no such file" in refused(workplace, "import", "missing.jsonl").lower()


def test_init_does_not_overwrite(workplace: Workplace) -> None:
    """init writes both files once, and refuses to replace them unasked."""
    first = workplace.devbench("init")
    assert first.status == 0
    assert first.stdout == "devices.toml\nplan.toml\n"
    assert refused(workplace, "init") == (
        "error: devices.toml and plan.toml exist already\n  try:   move them away, or say --force to replace them\n"
    )
    assert workplace.devbench("init", "--force").status == 0
    assert workplace.devbench("run", "--plan", "plan.toml", "--dry-run").status == 0
