"""Every failure between a Mac and an iPhone, in the words that public logs show; no Mac was involved."""

from __future__ import annotations

import pytest

from ios_harness.failures import FAILURES, error_words, explained, last_words, recognised
from orchestrator.errors import DeviceFull, DeviceLost, error_text
from tests.devices.mac import FAILURES as RECORDED


def words_of(recorded: dict[str, object]) -> str:
    return f"{error_words(recorded)}\n{recorded.get('stderr', '')}"


@pytest.mark.parametrize("name", RECORDED)
def test_each_recorded_failure_is_recognised(name: str) -> None:
    """By its text or by its JSON, underlying errors included."""
    found = recognised(words_of(RECORDED[name]))
    assert found is not None
    assert found.name == RECORDED[name].get("name", name)


def test_each_row_of_the_table_has_a_recording() -> None:
    """A mark that nothing exercises is a guess."""
    seen = {recorded.get("name", name) for name, recorded in RECORDED.items()}
    assert {failure.name for failure in FAILURES} == seen


def test_a_locked_phone_is_explained() -> None:
    """The fact, the step and what to do."""
    error = explained("iphone", "launch the app", words_of(RECORDED["locked"]))
    assert error_text(error) == (
        "error: iphone: the phone is locked (launch the app)\n"
        "  try:   unlock it, set Auto-Lock to Never under Settings > Display & Brightness, then `devbench run --resume`"
    )


def test_unknown_words_are_passed_on() -> None:
    """The line that begins with ERROR says most."""
    error = explained(
        "iphone", "install the app", "12:00 Acquired tunnel\nERROR: Something new. (Foo error 9)\n  a = b\n"
    )
    assert error.fact == "iphone: devicectl could not install the app: ERROR: Something new. (Foo error 9)"
    assert explained("iphone", "x", "").fact == "iphone: devicectl could not x: it said nothing"
    assert len(last_words("x" * 5000)) == 300


def test_what_may_pass_is_tried_again() -> None:
    """A tunnel that is down may come back; a full phone or a locked one does not by itself."""
    kinds = {failure.name: failure.error for failure in FAILURES}
    assert [name for name, kind in kinds.items() if kind.retryable] == ["offline"]
    assert (kinds["offline"], kinds["no-room"]) == (DeviceLost, DeviceFull)


@pytest.mark.parametrize("document", [{}, {"error": None}, {"error": []}, {"error": {"userInfo": 3}}])
def test_errors_of_another_shape_do_not_hurt(document: dict[str, object]) -> None:
    """Whatever a newer Xcode writes."""
    assert recognised(error_words(document)) is None


def test_an_endless_chain_of_errors_ends() -> None:
    """Nothing is followed forever."""
    error: dict[str, object] = {"code": 1, "domain": "x"}
    error["userInfo"] = {"NSUnderlyingError": {"error": error}}
    assert len(error_words({"error": error}).splitlines()) == 12
