"""The rules about delegates: each tripped by a recording of the real tool, or by lines that only phones print."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.delegates import BUILT_IN, Delegate
from orchestrator.evidence import judge
from orchestrator.evidence_terms import Asked
from orchestrator.fleet import Limits
from orchestrator.plan import Conditions, Measure
from orchestrator.runners.benchmark_model_output import read_output
from orchestrator.stage import Report
from orchestrator.trial import Finding, Outcome, Severity
from tests.unit.test_benchmark_model_output import ALL, RECORDINGS
from tests.unit.trial_factory import make_cell

RUNTIME = (RECORDINGS / "runtime_info.outfile.pb").read_bytes()
RESULT = (RECORDINGS / "result_file.result.pb").read_bytes()


def judged(
    name: str,
    delegate: Delegate,
    *,
    outputs: dict[str, bytes] | None = None,
    more: tuple[bytes, ...] = (),
    share: float = 0.0,
    entries: int | None = None,
    lost: dict[str, str] | None = None,
) -> tuple[Outcome, str | None, dict[str, Finding]]:
    recording = ALL[name]
    stdout, stderr = [*recording.stdout, *more], recording.stderr
    closing = {"reason": "exit", "exit": recording.exit, "lines": 0, "wall_ns": 10**10}
    asked = Asked(
        make_cell(delegate=delegate.label),
        Measure(runs=1),
        replace(Conditions(), delegated_share_min=share),
        Limits(),
        None,
        (),
        own_delegate=delegate,
        cache_entries=entries,
        lost_outputs=lost or {},
    )
    report = Report(closing=closing, stdout=stdout, stderr=stderr)
    outcome, reason, findings = judge(asked, report, read_output(stdout, stderr, outputs or {}))
    return outcome, reason, {finding.rule: finding for finding in findings}


APPLIED = b"INFO: Explicitly applied %s delegate, and the model graph will be completely executed by the delegate."
OWN = Delegate("mine", "external", paths=("/l.so",), is_own=True)


class TestShare:
    """Partial delegation: what the plan makes of it."""

    def test_any_part_will_do_by_default(self) -> None:
        """It is told."""
        outcome, _, rules = judged("extd_conv", OWN)
        assert outcome == Outcome.MEASURED
        assert rules["delegate-partial"].reason == "mine took 21 of 164 nodes"

    @pytest.mark.parametrize(
        ("share", "outcome"), [(0.1, Outcome.MEASURED), (0.5, Outcome.REJECTED), (1.0, Outcome.REJECTED)]
    )
    def test_a_share_may_be_required(self, share: float, outcome: Outcome) -> None:
        """21 of 164 nodes are 13 %."""
        assert judged("extd_conv", OWN, share=share)[0] == outcome

    def test_all_may_be_required(self) -> None:
        """The reason says what was taken and what was required."""
        assert judged("extd_conv", OWN, share=1.0)[1] == "mine took 21 of 164 nodes, and the plan requires all"
        assert judged("xnnpack_true_threads_1", BUILT_IN["xnnpack"], share=1.0)[0] == Outcome.MEASURED

    def test_what_nobody_counts_is_not_enough_where_a_share_is_required(self) -> None:
        """The tool says that it was a part, in pieces."""
        outcome, reason, _ = judged("profx_partial_stdout", BUILT_IN["xnnpack"], share=0.9)
        assert outcome == Outcome.REJECTED
        assert reason == "xnnpack took a part of the model, in 2 pieces, and the plan requires 90 %"

    def test_none_is_never_enough(self) -> None:
        """The delegate was applied, and took nothing."""
        assert judged("extd_noop", OWN)[1] == "mine took none of the 164 nodes: the model ran on plain CPU kernels"


class TestRuntime:
    """What the runtime's own file says of who took what."""

    def test_another_delegate_took_the_model(self) -> None:
        """As when a GPU cannot be used and XNNPACK steps in."""
        _, reason, rules = judged("runtime_info", BUILT_IN["gpu"], outputs={"runtime": RUNTIME})
        assert reason == "gpu was not applied"
        assert rules["delegate"].reason == "gpu took none of the 164 nodes: the model went to xnnpack"

    def test_plain_kernels_that_were_not(self) -> None:
        """Asked for `cpu`, and the default delegate was armed."""
        _, reason, _ = judged("runtime_info", BUILT_IN["cpu"], outputs={"runtime": RUNTIME})
        assert reason is not None and "plain CPU kernels were asked for" in reason

    def test_it_proves_the_whole(self) -> None:
        """Where the log has no count."""
        outcome, _, rules = judged(
            "xnnpack_true_threads_1", BUILT_IN["xnnpack"], outputs={"runtime": RUNTIME}, share=1.0
        )
        assert outcome == Outcome.MEASURED
        assert "delegate-partial" not in rules and "delegate-unverified" not in rules


class TestBackend:
    @pytest.mark.parametrize(
        ("backend", "line", "outcome"),
        [
            ("cl", b"INFO: Initialized OpenCL-based API.", Outcome.MEASURED),
            ("cl", b"INFO: Initialized OpenGL-based API.", Outcome.REJECTED),
            ("gl", b"INFO: Initialized OpenGL-based API.", Outcome.MEASURED),
            ("gl", b"INFO: Initialized OpenCL-based API from serialized data.", Outcome.REJECTED),
        ],
    )
    def test_the_backend_must_be_the_asked_one(self, backend: str, line: bytes, outcome: Outcome) -> None:
        """A missing OpenCL silently becomes OpenGL. The line is Android's, from the reference; no phone is here."""
        gpu = replace(BUILT_IN["gpu"], settings={"backend": backend})
        applied = (
            b"INFO: Explicitly applied GPU delegate, and the model graph will be completely executed by the delegate."
        )
        found, _, rules = judged("xnnpack_false_threads_1", gpu, more=(line, applied))
        assert (found, "gpu-backend" in rules) == (outcome, outcome == Outcome.REJECTED)


class TestPatterns:
    def test_what_must_be_said_and_what_must_not(self) -> None:
        """A user's own delegate, in its vendor's words."""
        said = replace(OWN, evidence=(r"^INFO: Dummy delegate: allowed_builtin_code set to \d",))
        assert judged("extd_conv", said)[0] == Outcome.MEASURED
        silent = replace(OWN, evidence=("HTP device ready",))
        assert judged("extd_conv", silent)[1] == 'the output of mine has nothing like "HTP device ready"'
        failing = replace(OWN, failures=("error_during_init set to 0",))
        assert judged("extd_conv", failing)[1] == "mine says: error_during_init set to 0"

    def test_deprecation_is_a_note(self) -> None:
        """It rejects nothing."""
        applied = (
            b"INFO: Explicitly applied NNAPI delegate, and the model graph will be completely executed by the delegate."
        )
        outcome, _, rules = judged("xnnpack_false_threads_1", BUILT_IN["nnapi"], more=(applied,))
        assert outcome == Outcome.MEASURED
        assert "Android 15" in rules["delegate-deprecated"].reason


class TestCachesAndFiles:
    def test_a_cache_that_holds_nothing_is_neither_cold_nor_warm(self) -> None:
        """The build took the flag and kept nothing."""
        warm = replace(BUILT_IN["xnnpack"], cache="warm")
        assert judged("xnnpack_weight_cache", warm, entries=1)[0] == Outcome.MEASURED
        reason = "a warm cache was asked for, and xnnpack kept nothing in it"
        assert judged("xnnpack_weight_cache", warm, entries=0)[1] == reason

    def test_a_result_file_of_another_run_rejects(self) -> None:
        """A name that was used before."""
        outcome, reason, _ = judged("xnnpack_true_threads_1", BUILT_IN["xnnpack"], outputs={"result": RESULT})
        assert (outcome, reason) == (Outcome.REJECTED, "the result file contradicts the printed summary")

    def test_a_file_that_did_not_arrive_is_told_and_costs_nothing(self) -> None:
        """The tool says so on standard error, and ends with 0."""
        _, _, rules = judged("result_file_unwritable", BUILT_IN["xnnpack"], lost={"result": "it was not written"})
        assert rules["result-file-lost"].reason == "the result file did not arrive: it was not written"
        assert rules["result-file-lost"].severity == Severity.WARN
