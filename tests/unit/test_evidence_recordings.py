"""Every rule of evidence and the recording that trips it: the output is as it was recorded, the asking differs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator import evidence, evidence_conditions, evidence_delegates, evidence_words
from orchestrator.agent_lines import LineReader
from orchestrator.delegates import BUILT_IN, Delegate
from orchestrator.evidence import judge
from orchestrator.evidence_terms import Asked
from orchestrator.fleet import Limits
from orchestrator.plan import Conditions, Measure
from orchestrator.platforms.base import Hold
from orchestrator.runners.base import Reading
from orchestrator.runners.benchmark_model_output import read_output
from orchestrator.runners.litert_runner import LITERT_RUNNER
from orchestrator.stage import Report
from orchestrator.telemetry import columns
from tests.unit.test_benchmark_model_output import ALL, RECORDINGS
from tests.unit.test_evidence import RECORDINGS as OF_THE_AGENT
from tests.unit.test_evidence import recorded
from tests.unit.trial_factory import make_cell

Scene = tuple[Asked, Report, Reading]
LITERT_LINES = OF_THE_AGENT.parent / "litert_runner"
OWN = Delegate("mine", "external", paths=("/l.so",), is_own=True)
XNNPACK = BUILT_IN["xnnpack"]
GOVERNOR = Hold("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance")


def asked_for(**changes: Any) -> Asked:
    fields = {"cell": make_cell(), "measure": Measure(runs=1, sample_ms=50), "conditions": Conditions()}
    fields |= {"limits": Limits(), "affinity_mask": None, "holds": ()}
    return Asked(**{**fields, **changes})


def agent(name: str, *, size: int | None = None, cell: dict[str, Any] | None = None, **changes: Any) -> Scene:
    """A trial as the agent sent it, of two threads; `size` cuts it off there."""
    report = recorded(f"{name}.txt", cut=lambda content: content[:size])
    reading = LITERT_RUNNER.read(report.stdout, report.stderr)
    content = {key: reading.observed.get(key, "0" * 64) for key in ("model_sha256", "runner_sha256")}
    return asked_for(cell=make_cell(**{"threads": 2, **content, **(cell or {})}), **changes), report, reading


def tool(
    name: str,
    delegate: Delegate = XNNPACK,
    *,
    files: dict[str, str] | None = None,
    size: int | None = None,
    **more: Any,
) -> Scene:
    """benchmark_model, beside files that it wrote, cut to `size`, and an ask with `more` in it."""
    outputs = {role: (RECORDINGS / file).read_bytes()[:size] for role, file in (files or {}).items()}
    stdout, stderr = ALL[name].stdout, ALL[name].stderr
    closing = {"reason": "exit", "exit": ALL[name].exit, "lines": 0, "wall_ns": 10**10}
    asked = asked_for(**{"cell": make_cell(delegate=delegate.label), "own_delegate": delegate, **more})
    return asked, Report(closing=closing, stdout=stdout, stderr=stderr), read_output(stdout, stderr, outputs)


def runner(name: str, **changes: Any) -> Scene:
    """The lines of litert_runner alone."""
    stdout = (LITERT_LINES / f"{name}.jsonl").read_bytes().split(b"\n")
    return (
        asked_for(**changes),
        Report(closing={"reason": "exit", "exit": 0, "lines": 0}),
        LITERT_RUNNER.read(stdout, []),
    )


LOADED = {"load": "cpu:1@50"}
TRIPPED: dict[str, Callable[[], Scene]] = {
    # It did not run, or not to its end.
    "runner-sha-mismatch": lambda: runner("sha_mismatch"),
    "runner-invoke": lambda: tool("extd_err_invoke_result", OWN),
    "spawn": lambda: agent("spawn"),
    "timeout": lambda: agent("deadline"),
    "crash": lambda: agent("crash"),
    "killed": lambda: agent("killed"),
    "exit": lambda: agent("exit_3"),
    "load-died": lambda: agent("load_died"),
    "cut": lambda: agent("host_gone"),
    "truncated": lambda: agent("idle", size=9_000),
    "no-samples": lambda: agent("no_newline"),
    # It was something else.
    "model-content": lambda: agent("idle", cell={"model_sha256": "ab" * 32}),
    "runner-content": lambda: agent("idle", cell={"runner_sha256": "ab" * 32}),
    "flags": lambda: tool("delegate_use_gpu", BUILT_IN["gpu"]),
    "threads": lambda: tool("flag_duplicate", cell=make_cell(threads=2)),
    "confined": lambda: agent("idle", cell={"threads": 4}),
    "affinity": lambda: agent("idle", affinity_mask="1"),
    "count": lambda: agent("idle", measure=Measure(runs=10**6)),
    "count-capped": lambda: tool("max_secs_small", measure=Measure(runs=1000)),
    "delegate": lambda: tool("ext_delegate_missing", OWN),
    "delegate-fallback": lambda: tool("more/delegate_two"),
    "delegate-partial": lambda: tool("extd_conv", OWN),
    "delegate-share": lambda: tool("extd_conv", OWN, conditions=replace(Conditions(), delegated_share_min=0.5)),
    "delegate-evidence": lambda: tool("extd_conv", replace(OWN, evidence=("HTP device ready",))),
    "delegate-failure": lambda: tool("extd_conv", replace(OWN, failures=("error_during_init set to 0",))),
    "delegate-deprecated": lambda: tool("more/delegate_use_nnapi", BUILT_IN["nnapi"]),
    "cache": lambda: tool("xnnpack_weight_cache", replace(XNNPACK, cache="warm"), cache_entries=0),
    "result-file": lambda: tool("xnnpack_true_threads_1", files={"result": "result_file.result.pb"}),
    "result-file-lost": lambda: tool("result_file_unwritable", lost_outputs={"result": "it was not written"}),
    "runtime-file-unreadable": lambda: tool("runtime_info", files={"runtime": "runtime_info.outfile.pb"}, size=999),
    "threads-unverified": lambda: tool("xnnpack_false"),
    # The conditions were others.
    "load": lambda: agent("idle", cell=LOADED),
    "load-not-achieved": lambda: agent("starved", cell={"load": "cpu:1@100"}),
    "load-starved": lambda: agent(
        "starved", cell={"load": "cpu:1@100"}, conditions=replace(Conditions(), load_tolerance_points=100.0)
    ),
    "load-squeezed": lambda: agent("loaded", cell=LOADED),
    "hold": lambda: agent("hold_refused", holds=(GOVERNOR,)),
    "hold-not-restored": lambda: agent("hold_lost", holds=(Hold("/tmp/devbench-held/setting", "2"),)),
    "temperature_c_max-unread": lambda: agent("idle", limits=Limits(temperature_c_max=40.0)),
    "other-cpu": lambda: agent("idle", conditions=replace(Conditions(), other_cpu_percent_max=0.0)),
    "steal": lambda: agent("slowed"),
    "frequency": lambda: agent("slowed"),
}
"""By rule: a recording of the real agent or tool. `slowed` is the real agent reading files in place of the kernel's."""

UNRECORDED = {
    "gpu-backend": "needs a phone's GPU: lines from the reference in test_evidence_delegates",
    "foreground": "needs a phone: test_evidence_words, and the app on a virtual phone",
    "inputs": "no model is known that makes the runtime overwrite its inputs: test_evidence",
    "delegate-unverified": "runners that say nothing of delegation exist on other devices only: test_evidence",
    "other-cpu-unverified": "needs a phone's app: test_evidence_words",
    "limit": "the platform's judgement, on recordings of dumpsys: test_android_platform, test_evidence",
    "unwatched": "needs an iPhone: test_ios_jailbroken",
    "throttled": "needs a board's firmware: test_linux_board, test_evidence",
    "cool-down": "the host's own waiting: test_cool_down, test_evidence",
    "not-cool": "the host's own waiting: test_cool_down, test_evidence",
}
"""Rules that no recording can trip here, why, and where else they are tested."""


@pytest.mark.parametrize("rule", TRIPPED)
def test_a_recording_trips_the_rule(rule: str) -> None:
    """As it was recorded."""
    found = {finding.rule for finding in judge(*TRIPPED[rule]())[2]}
    assert rule in found


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(OF_THE_AGENT.glob("*.txt"))), st.data())
def test_a_damaged_stream_is_judged_too(path: Path, data: st.DataObject) -> None:
    """Whatever is left of it: never an exception."""
    content = bytearray(path.read_bytes()[:20_000])
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=8)):
        content[place] = data.draw(st.integers(0, 255) | st.sampled_from(b'0123456789"[,'))
    reader = LineReader()
    reader.feed(bytes(content[: data.draw(st.integers(0, len(content)))]))
    report = reader.finish()
    cell = make_cell(threads=2, load="cpu:1@100")
    asked = asked_for(cell=cell, affinity_mask="3", holds=(GOVERNOR,))
    columns(report)
    judge(asked, report, LITERT_RUNNER.read(report.stdout, report.stderr))


def stated_rules() -> Iterator[str]:
    """The names of all rules in the source; a part that is only known when it runs is a star."""
    for module in (evidence, evidence_conditions, evidence_delegates, evidence_words):
        for node in ast.walk(ast.parse(Path(module.__file__).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
                ending = {"unverified": "-unverified"}.get(node.func.id, "")
                if node.func.id in ("fail", "reject", "warn", "note", "Finding", "unverified"):
                    yield _pattern(node.args[0]) + ending


def _pattern(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    assert isinstance(node, ast.JoinedStr), "a rule's name is written out where it is given"
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "*" for part in node.values)


def test_no_rule_is_without_a_recording_or_a_reason() -> None:
    """And no name here is of a rule that is gone."""
    stated = set(stated_rules())
    covered = {*TRIPPED, *UNRECORDED}
    assert not set(TRIPPED) & set(UNRECORDED)
    matched = {rule: [name for name in covered if _matches(rule, name)] for rule in stated}
    assert [rule for rule, names in matched.items() if not names] == []
    assert covered - {name for names in matched.values() for name in names} == set()


def _matches(rule: str, name: str) -> bool:
    before, star, after = rule.partition("*")
    return name.startswith(before) and name.endswith(after) and bool(star) if star else name == rule
