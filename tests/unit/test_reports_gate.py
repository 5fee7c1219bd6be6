"""The gate's verdict as JUnit XML, Markdown and workflow commands: hostile names, every category, and limits."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.analysis.gate_words import Confirmation, DeviceNight, GateResult, Row, Verdict
from orchestrator.analysis.sequential import Shift
from orchestrator.reports.gate_markdown import CHAT_MAX, code, escaped, gate_markdown
from orchestrator.reports.gate_text import headline, reasons
from orchestrator.reports.github import workflow_commands
from orchestrator.reports.junit import junit_xml
from orchestrator.trial import Cell
from tests.unit.trial_factory import make_cell

HOSTILE = 'a|b<c>&"d\x00\x1b]0;pwned\x07`e`\n::error::x %0A _f_ @all [g](http://h)'
SHIFT = Shift(0.07, 0.05, 0.09, 0.001)
PASSING = (Verdict.REFUTED, Verdict.DEVICE_MOVED, Verdict.FASTER, Verdict.STEADY, Verdict.REFERENCE)
ERRORS = (Verdict.FAILED, Verdict.REJECTED)


def a_row(verdict: Verdict, cell: Cell | None = None, reason: str = "because", *, lost: bool = False) -> Row:
    cell = cell or make_cell(model=f"model-{verdict}")
    judged = SHIFT if verdict in (Verdict.SUSPECTED, Verdict.CONFIRMED) else None
    found = Confirmation("duel-1", "slower", 0.08, 0.06, 0.1, 12) if verdict is Verdict.CONFIRMED else None
    return Row(cell, verdict, reason, "base", cell, judged, confirmation=found, blocks=(8, 8), lost=lost)


def a_result(
    *rows: Row, fail_on: str = "confirmed", lost: str | None = None, notes: tuple[str, ...] = ()
) -> GateResult:
    return GateResult("run-2", "run-1", 0.03, fail_on, rows, (DeviceNight("pixel8", lost=lost),), notes)


def suites(result: GateResult) -> list[ElementTree.Element]:
    root = ElementTree.fromstring(junit_xml(result, created_at="2026-11-18T02:00:00.000Z", host="lab"))
    assert root.tag == "testsuites"
    return root.findall("testsuite")


class TestJunit:
    @pytest.mark.parametrize("verdict", list(Verdict))
    def test_each_category_has_its_element(self, verdict: Verdict) -> None:
        """Only a regression is a failure; what was not measured is neither failure nor pass."""
        (suite,) = suites(a_result(a_row(verdict)))
        (case,) = suite.findall("testcase")
        tags = [child.tag for child in case]
        if verdict is Verdict.CONFIRMED:
            assert tags == ["failure"]
        elif verdict in ERRORS:
            assert tags == ["error"]
        else:
            assert tags == ([] if verdict in PASSING else ["skipped"])

    def test_a_suspicion_fails_for_those_who_want_it(self) -> None:
        (suite,) = suites(a_result(a_row(Verdict.SUSPECTED), fail_on="suspected"))
        assert (suite.get("failures"), suite.get("skipped")) == ("1", "0")

    def test_the_counts_are_those_of_the_cases(self) -> None:
        (suite,) = suites(a_result(*(a_row(verdict) for verdict in Verdict), lost="went away"))
        cases = suite.findall("testcase")
        assert suite.get("tests") == str(len(cases)) == str(len(Verdict) + 1)
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert suite.get(attribute) == str(sum(case.find(tag) is not None for case in cases))

    def test_a_lost_device_is_an_error_of_its_suite(self) -> None:
        (suite,) = suites(a_result(lost="lost: pixel8 went away"))
        error = suite.find("testcase/error")
        assert error is not None and "went away" in (error.get("message") or "")

    def test_it_is_what_readers_of_ant_reports_take(self) -> None:
        """The attributes and the order of elements that Ant's schema demands."""
        (suite,) = suites(a_result(a_row(Verdict.STEADY)))
        needed = {"name", "timestamp", "hostname", "tests", "failures", "errors", "time", "package", "id"}
        assert needed <= set(suite.keys())
        assert suite.get("timestamp") == "2026-11-18T02:00:00"
        assert [child.tag for child in suite] == ["properties", "testcase", "system-out", "system-err"]
        assert {"name", "classname", "time"} <= set(suite.find("testcase").keys())  # type: ignore[union-attr]  # it is there

    def test_hostile_names_stay_text(self) -> None:
        """Markup is escaped, and what XML cannot hold is replaced."""
        cell = make_cell(model=HOSTILE, device=HOSTILE)
        result = GateResult("r", "b", 0.03, "confirmed", (a_row(Verdict.CONFIRMED, cell, HOSTILE),), ())
        (suite,) = suites(result)
        assert "\x00" not in ElementTree.tostring(suite, encoding="unicode")
        assert "a|b<c>&" in (suite.get("name") or "")

    @given(st.text())
    @settings(max_examples=60, deadline=None)
    def test_any_text_gives_a_document_that_can_be_read(self, text: str) -> None:
        suites(a_result(a_row(Verdict.FAILED, make_cell(model=text), text), notes=(text,)))


class TestMarkdown:
    def test_the_verdict_comes_first(self) -> None:
        text = gate_markdown(a_result(a_row(Verdict.CONFIRMED)))
        assert text.startswith("**REGRESSION: 1 cell slower, confirmed**")
        assert "+8.3 % \\[+6.2, +10.5\\]" in text
        assert "`devbench reproduce run-2 " in text

    def test_it_fits_a_chat_message_however_much_there_is(self) -> None:
        """The worst cells are shown, and how many more there are."""
        rows = [a_row(Verdict.SUSPECTED, make_cell(model=f"a-model-with-a-long-name-{n}" * 3)) for n in range(200)]
        text = gate_markdown(a_result(a_row(Verdict.CONFIRMED), *rows, notes=("a long note " * 40,) * 50))
        assert len(text) < CHAT_MAX
        assert "more cells" in text
        assert "| confirmed |" in text

    def test_hostile_names_break_no_table(self) -> None:
        cell = make_cell(model=HOSTILE, device="x|y\nz")
        text = gate_markdown(a_result(a_row(Verdict.SUSPECTED, cell)))
        (line,) = [line for line in text.splitlines() if line.startswith("| suspected")]
        assert line.replace("\\|", "").count("|") == 5
        assert "<c>" not in text.replace("\\<c\\>", "")

    def test_names_with_underscores_stay_readable(self) -> None:
        assert escaped("mobilenet_v2 on this-machine") == "mobilenet_v2 on this-machine"
        assert escaped("_a_ `b` *c* @d &amp; e&f") == "\\_a\\_ \\`b\\` \\*c\\* @\u200bd \\&amp; e&f"
        assert code("a `b` c") == "`` a `b` c ``"


class TestGithub:
    def test_failures_are_errors_and_suspects_warnings(self) -> None:
        lines = workflow_commands(a_result(a_row(Verdict.CONFIRMED), a_row(Verdict.SUSPECTED), lost="went away"))
        assert [line.split()[0] for line in lines] == ["::error", "::warning", "::warning", "::notice"]

    def test_nothing_can_begin_a_command_of_its_own(self) -> None:
        """Line ends and per cents are escaped, and in titles colons and commas, too."""
        (line, _) = workflow_commands(a_result(a_row(Verdict.CONFIRMED, make_cell(model=HOSTILE), HOSTILE)))
        assert "\n" not in line and "\r" not in line
        title = line.removeprefix("::error title=").split("::")[0]
        assert ":" not in title and "," not in title and "%3A" in title
        assert "%250A" in line

    def test_no_more_than_github_shows(self) -> None:
        rows = [a_row(Verdict.SUSPECTED, make_cell(model=f"m{n}")) for n in range(25)]
        warnings = [line for line in workflow_commands(a_result(*rows)) if line.startswith("::warning")]
        assert len(warnings) == 10
        assert "and 16 more" in warnings[-1]


class TestHeadlines:
    def test_every_ending_has_its_words(self) -> None:
        assert headline(a_result(a_row(Verdict.STEADY))) == "PASSED: no regression in 1 cell"
        assert headline(a_result(a_row(Verdict.SUSPECTED))).startswith("SUSPICION: 1 cell suspected")
        partial = headline(a_result(a_row(Verdict.STEADY), a_row(Verdict.FAILED, lost=True), lost="went away"))
        assert partial == "PARTIAL: no regression found, but not measured: pixel8; 1 cell not measured"
        assert headline(a_result(lost="went away")) == "NOTHING MEASURED: pixel8"

    def test_what_was_not_compared_is_not_counted_as_passed(self) -> None:
        apart = [a_row(Verdict.VANISHED, make_cell(model=f"gone{n}")) for n in range(2)]
        result = a_result(a_row(Verdict.STEADY), a_row(Verdict.REFERENCE), *apart)
        assert headline(result) == "PASSED: no regression in 1 cell; 2 not compared"

    def test_a_night_of_rejections_says_so(self) -> None:
        rows = [replace(a_row(Verdict.REJECTED, make_cell(model=f"m{n}")), blocks=(8, 0)) for n in range(2)]
        assert headline(a_result(*rows)) == "NOTHING MEASURED: 2 rejected"

    def test_a_reason_of_several_cells_is_said_once(self) -> None:
        rows = [a_row(Verdict.VANISHED, make_cell(model=f"gone{n}"), "not asked for") for n in range(3)]
        (line,) = reasons(rows, a_result(*rows))
        assert line == f"{rows[0].cell} and 2 more cells: not asked for"
