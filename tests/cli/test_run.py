"""`devbench run`, as a user types it: real agent, real runtime, real store."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.clock import SYSTEM, Deadline
from tests.cli.conftest import DATA, TINY, Workplace

HOSTILE = "a b'c\"d$(touch pwned)`id`;&|*?é -x.tflite"


def wait_for_trials(workplace: Workplace, count: int) -> None:
    """Until the run under way has kept so many logs, one of which each trial has."""
    deadline = Deadline.after(60)
    while len(list(workplace.folder.glob("devbench-results/artifacts/*/*.log"))) < count:
        assert not deadline.passed, "no trial was made"
        SYSTEM.sleep(0.02)


def agents_alive(workplace: Workplace) -> list[str]:
    """Command lines of processes that run from this workplace's cache: agents, runners, loads."""
    cache = workplace.env["XDG_CACHE_HOME"]
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if cache in line:
            found.append(line)
    return found


def wait_until_no_agent(workplace: Workplace, seconds: float) -> None:
    deadline = Deadline.after(seconds)
    while agents_alive(workplace):
        assert not deadline.passed, agents_alive(workplace)
        SYSTEM.sleep(0.02)


def test_a_run_measures_every_cell_and_keeps_every_sample(workplace: Workplace) -> None:
    """Every cell gets its trials; each trial keeps its samples, its evidence and its order."""
    plan = workplace.quick_plan(blocks="2:2", threads="[1, 2]", loads='["idle", "cpu:1@20"]')
    done = workplace.devbench("run", "--plan", plan, "--json")
    assert done.status == 0, done.stderr
    assert done.json["schema"] == "devbench.run"
    assert done.json["trials"]["measured"] == 8
    trials = workplace.exported()
    assert {(trial["threads"], trial["load"]) for trial in trials} == {
        (threads, load) for threads in (1, 2) for load in ("idle", "cpu:1@20")
    }
    for trial in trials:
        assert trial["schema"] == "devbench.trial"
        assert len(trial["samples_us"]) >= 5
        assert len(trial["warmup_us"]) >= 1
        assert trial["evidence"]["observed"]["model_sha256"] == trial["model_sha256"]
        assert trial["evidence"]["closing"]["reason"] == "exit"
        assert trial["metrics"]["init_us"] > 0
        assert trial["metrics"]["copy_in_us"] > 0
        assert trial["telemetry"]["t_ms"]
    loaded = [trial for trial in trials if trial["load"] != "idle"]
    assert all(trial["evidence"]["loads"][-1]["phase"] == "run" for trial in loaded)


def test_the_same_seed_gives_the_same_order(workplace: Workplace) -> None:
    """The order of the trials is the one that --dry-run showed for this seed."""
    plan = workplace.quick_plan(blocks="2:2", threads="[1, 2]", loads='["idle", "app"]')
    shown = workplace.devbench("run", "--plan", plan, "--dry-run", "--json").json
    assert workplace.devbench("run", "--plan", plan, "--quiet").status == 0
    made = [(trial["block"], trial["position"], trial["cell"]) for trial in workplace.exported()]
    assert made == [(slot["block"], slot["position"], slot["cell"]) for slot in shown["slots"]]


def test_dry_run_touches_nothing(workplace: Workplace) -> None:
    """--dry-run makes no store, pushes nothing, and says how long it would take."""
    done = workplace.devbench("run", "--plan", workplace.quick_plan(), "--dry-run")
    assert done.status == 0
    assert "1 cell, 2 blocks, 2 trials, seed 7; about 1 s. No device was touched." in done.stdout
    assert not (workplace.folder / "devbench-results").exists()
    assert not Path(workplace.env["XDG_CACHE_HOME"]).exists()


def test_results_go_to_stdout_and_the_rest_to_stderr(workplace: Workplace) -> None:
    """Standard output holds the result alone; progress is plain lines on standard error when piped."""
    done = workplace.devbench("run", "--plan", workplace.quick_plan())
    assert done.status == 0
    assert "tiny_add · litert_runner · xnnpack · this-machine" in done.stdout
    assert "block 0 [1/2] tiny_add (xnnpack, 1 thread, load idle):" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr


def test_quiet_says_only_which_run(workplace: Workplace) -> None:
    """--quiet leaves one line on standard error: the run and where it is kept."""
    done = workplace.devbench("run", "--plan", workplace.quick_plan(), "--quiet")
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("run 20")


def test_zero_copy_is_a_runner_variant(workplace: Workplace) -> None:
    """Copying and zero-copy run side by side as two runners; only one of them copies."""
    plan = workplace.quick_plan()
    done = workplace.devbench("run", "--plan", plan, "--runner", "litert_runner,litert_runner:zero-copy", "--quiet")
    assert done.status == 0, done.stderr
    copies = {trial["runner"]: "copy_in_us" in trial["metrics"] for trial in workplace.exported()}
    assert copies == {"litert_runner": True, "litert_runner:zero-copy": False}


def test_both_delegates_are_verified(workplace: Workplace) -> None:
    """XNNPACK on and off are two delegates, and the evidence tells them apart."""
    done = workplace.devbench("run", "--plan", workplace.quick_plan(), "--delegate", "xnnpack,cpu", "--quiet")
    assert done.status == 0, done.stderr
    delegated = {trial["delegate"]: trial["evidence"]["observed"]["nodes_delegated"] for trial in workplace.exported()}
    assert delegated == {"xnnpack": 1, "cpu": 0}


def test_a_second_model_can_be_the_load(workplace: Workplace) -> None:
    """`model:FILE` runs another model beside the measured one, and its content is part of the cell."""
    other = DATA / "two_inputs.tflite"
    done = workplace.devbench("run", "--plan", workplace.quick_plan(), "--load", f"model:{other}", "--quiet")
    assert done.status == 0, done.stderr
    for trial in workplace.exported():
        assert trial["load"].startswith("model:two_inputs@")
        assert trial["evidence"]["loads"][-1]["threads"][0]["achieved"] > 0.1


def test_affinity_is_set_and_read_back(workplace: Workplace) -> None:
    """A CPU mask reaches the measured process."""
    done = workplace.devbench("run", "--plan", workplace.quick_plan(), "--affinity", "1", "--quiet")
    assert done.status == 0, done.stderr
    assert {trial["evidence"]["started"]["affinity"] for trial in workplace.exported()} == {"1"}


def test_hostile_model_names_are_only_names(workplace: Workplace) -> None:
    """A model path with spaces, quotes, `$(…)`, globs and non-ASCII is measured like any other."""
    hostile = workplace.folder / "sub dir" / HOSTILE
    hostile.parent.mkdir()
    shutil.copy(TINY, hostile)
    done = workplace.devbench("run", "--plan", workplace.quick_plan(), "--model", hostile, "--quiet")
    assert done.status == 0, done.stderr
    assert {trial["model"] for trial in workplace.exported()} == {HOSTILE.removesuffix(".tflite")}
    assert not list(workplace.folder.rglob("pwned"))


def test_changing_a_model_during_a_run_changes_nothing(workplace: Workplace) -> None:
    """A run measures the bytes it began with, however the file changes meanwhile."""
    model = workplace.folder / "model.tflite"
    shutil.copy(TINY, model)
    process = workplace.start("run", "--plan", workplace.quick_plan(blocks="6:6", model=model), "--quiet")
    wait_for_trials(workplace, 1)
    shutil.copy(DATA / "two_inputs.tflite", model)
    assert process.wait(60) == 0
    assert len({trial["model_sha256"] for trial in workplace.exported()}) == 1


def test_a_budget_ends_the_run_cleanly(workplace: Workplace) -> None:
    """When the budget is spent the run ends, says so, and what is missing is `not-run`, with exit code 5."""
    done = workplace.devbench("run", "--plan", workplace.quick_plan(blocks="100:100"), "--budget", "2s", "--json")
    assert done.status == 5
    assert done.json["devices"][0]["ending"] == "budget spent"
    assert done.json["trials"]["measured"] > 0
    assert done.json["trials"]["measured"] + done.json["trials"]["not-run"] == 100


# Ctrl-C, SIGKILL, resume, locks


def test_resume_after_sigkill_loses_and_repeats_nothing(workplace: Workplace) -> None:
    """A run killed with SIGKILL leaves no process behind and goes on where it was: every slot once."""
    plan = workplace.quick_plan(blocks="6:6", threads="[1, 2]", loads='["idle", "cpu:2@50"]')
    process = workplace.start("run", "--plan", plan, "--quiet")
    wait_for_trials(workplace, 5)
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_until_no_agent(workplace, 2.0)
    kept = workplace.exported()
    assert 4 <= len(kept) < 24
    done = workplace.devbench("run", "--resume", "--quiet")
    assert done.status == 0, done.stderr
    trials = workplace.exported()
    assert trials[: len(kept)] == kept
    slots = [(trial["cell"], trial["block"]) for trial in trials]
    assert len(slots) == len(set(slots)) == 24
    assert len({trial["session"] for trial in trials}) == 2


def test_resuming_a_finished_run_measures_nothing_more(workplace: Workplace) -> None:
    """There is nothing to go on with, and that is no error."""
    assert workplace.devbench("run", "--plan", workplace.quick_plan(), "--quiet").status == 0
    before = workplace.exported()
    assert workplace.devbench("run", "--resume", "last", "--quiet").status == 0
    assert workplace.exported() == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_what_was_measured(workplace: Workplace, number: signal.Signals) -> None:
    """Ctrl-C (and SIGTERM) ends cleanly with 130, leaves nothing running, and says how to go on."""
    process = workplace.start("run", "--plan", workplace.quick_plan(blocks="50:50", loads='["cpu:2@50"]'))
    wait_for_trials(workplace, 2)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=10)
    assert process.returncode == 130
    assert not agents_alive(workplace)
    assert "stopping: what was measured is kept" in stderr
    assert "goes on" in stderr
    shown = workplace.devbench("show", "--json").json
    assert shown["status"] == "interrupted"
    assert shown["trials"]["measured"] >= 2


def test_a_device_is_measured_by_one_run_at_a_time(workplace: Workplace) -> None:
    """A second run on the same device is refused with the run that has it, and the first goes on."""
    plan = workplace.quick_plan(blocks="40:40")
    first = workplace.start("run", "--plan", plan, "--quiet")
    wait_for_trials(workplace, 1)
    second = workplace.devbench("run", "--plan", plan, "--store", "other", "--quiet")
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=10)
    assert second.status == 4
    assert f"error: this-machine is busy: run 20" in second.stderr  # noqa: F541 - the id follows
    assert f"(process {first.pid}) measures it" in second.stderr
    assert "try:   wait for that run to end, or stop it" in second.stderr


def test_resume_takes_no_other_plan(workplace: Workplace) -> None:
    """--resume with options that say what to measure is refused."""
    done = workplace.devbench("run", "--resume", "--threads", "2")
    assert done.status == 2
    assert done.stderr == (
        "error: --resume goes on with the plan and the devices the run began with and takes no other\n"
        "  try:   leave out the options that say what to measure, or start a new run\n"
    )


# What cannot be measured


def test_threads_beyond_the_cores_are_skipped_with_the_reason(workplace: Workplace) -> None:
    """More threads than cores is known beforehand: skipped and shown. No device ran it, so the exit code is 5."""
    done = workplace.devbench("run", "--plan", workplace.quick_plan(), "--threads", "1,500")
    assert done.status == 5
    assert "asked for, but measured on no device: tiny_add (xnnpack, 500 threads, load idle)" in done.stderr
    assert "skipped tiny_add (xnnpack, 500 threads, load idle): 500 threads on a device with" in done.stderr
    assert "500 threads on a device with" in done.stdout


def test_a_delegate_the_runner_lacks_is_skipped(workplace: Workplace) -> None:
    """A delegate that this runner cannot run is skipped by name, and never looks measured: exit code 5."""
    done = workplace.devbench("run", "--plan", workplace.quick_plan(), "--delegate", "gpu,xnnpack", "--json")
    assert done.status == 5
    assert done.json["trials"]["skipped"] == 1
    reasons = [reason["reason"] for cell in done.json["cells"] for reason in cell["reasons"]]
    assert reasons == ["litert_runner cannot run delegate gpu (it can: xnnpack, cpu)"]


def test_a_run_in_which_everything_is_skipped_is_not_a_success(workplace: Workplace) -> None:
    """When nothing could be measured the exit code says so."""
    done = workplace.devbench("run", "--plan", workplace.quick_plan(), "--delegate", "gpu", "--quiet")
    assert done.status == 5
    assert "nothing was measured" in done.stderr


def test_an_operator_the_runtime_lacks_fails_by_name_and_is_tried_once(workplace: Workplace) -> None:
    """A model with an unknown operator fails with its name, is not tried again, and others are measured."""
    plan = workplace.quick_plan(blocks="3:3")
    models = ["--model", str(DATA / "custom_op.tflite"), "--model", str(TINY)]
    done = workplace.devbench("run", "--plan", plan, *models, "--json")
    assert done.status == 5
    assert done.json["trials"] == {"measured": 3, "rejected": 0, "failed": 1, "skipped": 0, "not-run": 2}
    failed = next(trial for trial in workplace.exported() if trial["outcome"] == "failed")
    assert failed["reason"] == "the runtime lacks the custom operator DevbenchNoSuchOp"


def test_a_crash_is_a_failed_trial_with_the_signal(workplace: Workplace) -> None:
    """A model that crashes the runtime fails twice, is given up, and the reason names the signal."""
    done = workplace.devbench(
        "run", "--plan", workplace.quick_plan(blocks="3:3"), "--model", DATA / "no_scale.tflite", "--json"
    )
    assert done.status == 5
    assert done.json["trials"]["failed"] == 2
    assert done.json["trials"]["not-run"] == 1
    reason = workplace.exported()[0]["reason"]
    assert reason.startswith("the runner was killed by signal 6")


def test_a_runner_that_hangs_is_killed_at_its_timeout(workplace: Workplace) -> None:
    """A trial that does not end is killed on the device and counted as failed."""
    plan = workplace.quick_plan(blocks="1:1")
    plan.write_text(plan.read_text().replace("runs = 5", 'runs = 200000\nmax_ms = 3600000\ntrial_timeout = "1s"'))
    done = workplace.devbench("run", "--plan", plan, "--model", str(bundled_float()), "--quiet")
    assert done.status == 5
    assert not agents_alive(workplace)
    assert workplace.exported()[0]["reason"] == "no end after 1 s: killed"


def test_a_runner_that_is_killed_is_a_failed_trial(workplace: Workplace) -> None:
    """Somebody (the kernel, out of memory) kills the runner: the trial failed, the run goes on."""
    plan = workplace.quick_plan(blocks="2:2")
    plan.write_text(plan.read_text().replace("min_ms = 0", "min_ms = 1500"))
    process = workplace.start("run", "--plan", plan, "--quiet")
    deadline = Deadline.after(20)
    while not (pids := runner_pids(workplace)):
        assert not deadline.passed
        SYSTEM.sleep(0.01)
    SYSTEM.sleep(0.3)
    signal_runner(pids[0])
    assert process.wait(60) == 0
    outcomes = [trial["outcome"] for trial in workplace.exported()]
    assert sorted(outcomes) == ["failed", "measured", "measured"]
    assert "killed by signal 9" in next(t["reason"] for t in workplace.exported() if t["outcome"] == "failed")


def bundled_float() -> Path:
    from orchestrator.bundled import bundled_models

    return bundled_models()[0]


def runner_pids(workplace: Workplace) -> list[int]:
    cache = workplace.env["XDG_CACHE_HOME"].encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        is_runner = len(words) > 2 and words[1].startswith(cache) and words[1].endswith(b"litert_runner.py")
        if is_runner and b"--check" not in words:
            found.append(int(process.name))
    return found


def signal_runner(pid: int) -> None:
    import os

    os.kill(pid, signal.SIGKILL)


def test_export_and_import_round_trip(workplace: Workplace) -> None:
    """What is exported can be imported elsewhere, shows the same numbers, and is not doubled by importing again."""
    assert workplace.devbench("run", "--plan", workplace.quick_plan(), "--quiet").status == 0
    assert workplace.devbench("export", "--output", "trials.jsonl").status == 0
    taken = workplace.devbench("import", "trials.jsonl", "--store", "other", "--json")
    assert taken.status == 0, taken.stderr
    assert taken.json["added"] == taken.json["read"] == 2
    assert workplace.devbench("import", "trials.jsonl", "--store", "other", "--json").json["added"] == 0
    here = workplace.devbench("show", "--json").json["cells"]
    assert workplace.devbench("show", "--store", "other", "--json").json["cells"] == here
    assert workplace.devbench("show", "trials.jsonl", "--json").json["cells"] == here
    again = workplace.devbench("export", "--store", "other")
    assert [json.loads(line) for line in again.stdout.splitlines()] == workplace.exported()


def test_a_device_that_cannot_be_reached_is_part_of_the_runs_story(workplace: Workplace) -> None:
    """The run is kept with the reason, and show tells it later."""
    workplace.write("file", "x")
    fleet = f'[[device]]\nname = "broken"\ntransport = "local"\nworkdir = "{workplace.folder}/file/x"\n'
    workplace.write("devices.toml", fleet)
    assert workplace.devbench("run", "--plan", workplace.quick_plan(), "--quiet").status == 4
    shown = workplace.devbench("show")
    assert shown.status == 0
    assert "broken: not reached" in shown.stdout
    assert "The work ended early: lost: cannot copy" in shown.stdout


def test_devices_leaves_a_device_alone_while_it_is_measured(workplace: Workplace) -> None:
    """Looking would disturb the measurement: the device is said to be busy."""
    process = workplace.start("run", "--plan", workplace.quick_plan(blocks="40:40"), "--quiet")
    wait_for_trials(workplace, 1)
    done = workplace.devbench("devices")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=10)
    assert done.status == 4
    assert "warn: this-machine is busy: run 20" in done.stdout


def test_a_closed_pipe_does_not_end_the_run(workplace: Workplace) -> None:
    """`devbench run 2>&1 | head -1` still measures everything."""
    process = workplace.start("run", "--plan", workplace.quick_plan(blocks="3:3"))
    assert process.stderr
    process.stderr.readline()
    process.stderr.close()
    assert process.wait(60) == 0
    assert len(workplace.exported()) == 3


def test_resuming_a_run_whose_device_is_busy_changes_nothing(workplace: Workplace) -> None:
    """The record of an interrupted run stays as it is when it cannot be gone on with."""
    first = workplace.start("run", "--plan", workplace.quick_plan(blocks="8:8"), "--quiet")
    wait_for_trials(workplace, 2)
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=10)
    before = workplace.devbench("show", "--json").json
    other = workplace.start("run", "--plan", workplace.quick_plan(blocks="60:60"), "--quiet", "--store", "other")
    deadline = Deadline.after(30)
    while not list(workplace.folder.glob("other/artifacts/*/*.log")):
        assert not deadline.passed
        SYSTEM.sleep(0.02)
    resumed = workplace.devbench("run", "--resume", "--quiet")
    other.send_signal(signal.SIGINT)
    other.communicate(timeout=10)
    assert resumed.status == 4
    after = workplace.devbench("show", before["run"], "--json").json
    assert (after["status"], after["trials"]) == ("interrupted", before["trials"])


def test_a_run_that_got_no_device_has_failed_and_is_not_resumed(workplace: Workplace) -> None:
    """It is kept with its reason, and a bare --resume means the run before it."""
    assert workplace.devbench("run", "--plan", workplace.quick_plan(), "--quiet").status == 0
    good = workplace.devbench("show", "--json").json["run"]
    workplace.write("file", "x")
    fleet = f'[[device]]\nname = "broken"\ntransport = "local"\nworkdir = "{workplace.folder}/file/x"\n'
    workplace.write("devices.toml", fleet)
    assert workplace.devbench("run", "--plan", workplace.quick_plan(), "--quiet").status == 4
    assert workplace.devbench("show", "--json").json["status"] == "failed"
    resumed = workplace.devbench("run", "--resume", "--json", "--quiet")
    assert (resumed.status, resumed.json["run"]) == (0, good)


def test_the_lock_does_not_follow_tmpdir(workplace: Workplace) -> None:
    """Jobs with temporary folders of their own still see each other."""
    del workplace.env["DEVBENCH_LOCKS"]
    workplace.env["TMPDIR"] = str(workplace.folder)
    first = workplace.start("run", "--plan", workplace.quick_plan(blocks="60:60"), "--quiet")
    wait_for_trials(workplace, 1)
    del workplace.env["TMPDIR"]
    second = workplace.devbench("run", "--plan", workplace.quick_plan(), "--quiet", "--store", "other")
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=10)
    assert second.status == 4
    assert "this-machine is busy" in second.stderr


def test_a_store_that_vanishes_ends_the_run_with_its_reason(workplace: Workplace) -> None:
    """Somebody deletes the store while a run goes on: exit code 6, not a bug."""
    process = workplace.start("run", "--plan", workplace.quick_plan(blocks="60:60"), "--quiet")
    wait_for_trials(workplace, 1)
    shutil.rmtree(workplace.folder / "devbench-results")
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 6, stderr
    assert "Traceback" not in stderr


@pytest.mark.parametrize("arguments", [("show",), ("export",), ("devices",)])
def test_a_reader_may_leave_early(workplace: Workplace, arguments: tuple[str, ...]) -> None:
    """`devbench show | head -1` ends by the closed pipe, as other tools do, and never with 1, a judgement."""
    assert workplace.devbench("run", "--plan", workplace.quick_plan(), "--quiet").status == 0
    process = workplace.start(*arguments)
    assert process.stdout
    process.stdout.close()
    assert process.wait(30) in (-signal.SIGPIPE, 0)


def test_a_reader_who_leaves_does_not_change_the_verdict_of_a_run(workplace: Workplace) -> None:
    """`devbench run | head -1` has the exit code of the run."""
    process = workplace.start("run", "--plan", workplace.quick_plan(), "--quiet")
    assert process.stdout
    process.stdout.close()
    assert process.wait(60) == 0


def test_an_output_that_knows_only_ascii_is_served(workplace: Workplace) -> None:
    """Letters it lacks are escaped; JSON stays JSON."""
    hostile = workplace.folder / "modèle.tflite"
    shutil.copy(TINY, hostile)
    workplace.env |= {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = workplace.devbench("run", "--plan", workplace.quick_plan(model=hostile), "--json", "--quiet")
    assert done.status == 0, done.stderr
    assert done.json["cells"][0]["model"] == "modèle"
    assert workplace.devbench("show").status == 0
    assert workplace.exported()[0]["model"] == "modèle"


def test_results_that_cannot_be_written_are_the_hosts_trouble(workplace: Workplace) -> None:
    """A full disk behind standard output: exit code 3 with the reason."""
    assert workplace.devbench("run", "--plan", workplace.quick_plan(), "--quiet").status == 0
    command = [sys.executable, "-c", "from orchestrator.cli import main; main()", "show"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, cwd=workplace.folder, env=workplace.env, stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 3
    assert b"error: cannot write the results: No space left on device" in done.stderr


def test_the_same_model_twice_is_said(workplace: Workplace) -> None:
    """A file that is the same as another is measured once, and not silently."""
    shutil.copy(TINY, workplace.folder / "a.tflite")
    shutil.copy(TINY, workplace.folder / "b.tflite")
    done = workplace.devbench("run", "--plan", workplace.quick_plan(), "--model", "*.tflite", "--quiet")
    assert done.status == 0
    assert "note: b.tflite has the same content as a.tflite, which is measured once for both" in done.stderr
