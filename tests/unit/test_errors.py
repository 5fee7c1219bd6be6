"""The error tree: what it promises, and how an error reads."""

from __future__ import annotations

import inspect
import re

import pytest

from orchestrator import errors
from orchestrator.errors import DevbenchError, DeviceLost, during, error_text

CONTRACT = {2, 3, 4, 6, 130}
"""The exit codes of the contract that an error may have; 1 and 5 are results, not errors."""


def classes() -> dict[str, type[DevbenchError]]:
    found = inspect.getmembers(errors, inspect.isclass)
    return {name: kind for name, kind in found if issubclass(kind, DevbenchError)}


def drawn() -> dict[str, tuple[str | None, int | None, bool]]:
    """What the module's docstring draws: for each class its parent, its exit code if written, whether to retry."""
    tree: dict[str, tuple[str | None, int | None, bool]] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        match = re.fullmatch(r"([│├└─\s]*)([A-Z]\w+)(?:\s+(\d+))?(?:\s{2,}(.*))?", line)
        if match is None:
            continue
        depth = len(match[1]) // 4
        path[depth:] = [match[2]]
        parent = path[depth - 1] if depth else None
        code = int(match[3]) if match[3] else None
        tree[match[2]] = (parent, code, "worth a retry" in (match[4] or ""))
    return tree


def test_the_drawn_tree_is_the_tree() -> None:
    """Whoever reads the top of errors.py has read all of it."""
    real = {name: kind.__bases__[0].__name__ for name, kind in classes().items() if kind is not DevbenchError}
    assert {name: parent for name, (parent, _, _) in drawn().items() if parent} == real


def test_the_drawn_exit_codes_are_the_exit_codes() -> None:
    """A code stands where it is set; below it is inherited."""
    written = {name: code for name, (_, code, _) in drawn().items() if code is not None}
    assert written == {
        name: kind.exit_code
        for name, kind in classes().items()
        if "exit_code" in vars(kind) and kind is not DevbenchError
    }


def test_the_drawn_retries_are_the_retries() -> None:
    """Whether a retry may help is a property of the type."""
    assert {name for name, (_, _, retry) in drawn().items() if retry} == {
        name for name, kind in classes().items() if kind.retryable
    }


@pytest.mark.parametrize("kind", [kind for kind in classes().values() if kind is not DevbenchError])
def test_every_error_has_an_exit_code_of_the_contract(kind: type[DevbenchError]) -> None:
    """Scripts depend on them."""
    assert kind.exit_code in CONTRACT


def test_an_error_cannot_be_raised_without_a_remedy() -> None:
    """Nobody can raise a dead end."""
    with pytest.raises(TypeError, match="remedy"):
        DevbenchError("it broke")  # type: ignore[call-arg]  # this is what is being tested


def test_an_error_reads_with_what_was_going_on_innermost_first() -> None:
    """The example of STYLE.md, word for word."""
    with (
        pytest.raises(DeviceLost) as caught,
        during("running mobilenet_v2 (gpu, 4 threads, load cpu:50) on pixel8"),
        during("pushing mobilenet_v2.tflite"),
    ):
        raise DeviceLost("pixel8 went away", remedy="reconnect it, then `devbench run --resume last`")
    assert error_text(caught.value) == (
        "error: pixel8 went away\n"
        "  while: pushing mobilenet_v2.tflite\n"
        "  while: running mobilenet_v2 (gpu, 4 threads, load cpu:50) on pixel8\n"
        "  try:   reconnect it, then `devbench run --resume last`"
    )


def test_an_error_without_context_has_two_lines() -> None:
    """The fact and what to do."""
    assert error_text(DevbenchError("it broke", remedy="mend it")) == "error: it broke\n  try:   mend it"


def test_an_error_as_text_is_its_fact() -> None:
    """For messages that quote it."""
    assert str(DevbenchError("it broke", remedy="mend it")) == "it broke"


def test_context_leaves_other_exceptions_alone() -> None:
    """A bug passes through as it is."""
    with pytest.raises(ZeroDivisionError), during("dividing"):
        raise ZeroDivisionError
