"""The gate's verdict as JUnit XML: a suite a device, a case a cell.

A regression is a failure; what crashed or ran otherwise than asked is an error; what was not measured, or could not be
compared, is skipped: none of these passes.
"""

from __future__ import annotations

import itertools
import re
from xml.etree import ElementTree

from orchestrator.analysis.gate_words import JUDGED, GateResult, Row, Verdict
from orchestrator.reports.gate_text import against, change_text, headline, why_text

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold, not even escaped."""
_SPACES = re.compile(r"\s+")
_ERRORS = (Verdict.FAILED, Verdict.REJECTED)


def junit_xml(result: GateResult, *, created_at: str, host: str) -> str:
    """A document that readers of Ant's JUnit reports take."""
    root = ElementTree.Element("testsuites")
    of_device: dict[str, list[Row]] = {device.name: [] for device in result.devices}
    for row in result.rows:
        of_device.setdefault(row.cell.device, []).append(row)
    numbers = itertools.count()
    for device, rows in sorted(of_device.items()):
        suite = _suite(root, device, next(numbers), created_at, host)
        _properties(suite, result, device)
        for row in rows:
            _case(suite, row, result)
        lost = next((found.lost for found in result.devices if found.name == device), None)
        if lost:
            _lost_case(suite, device, lost)
        _count(suite)
        ElementTree.SubElement(suite, "system-out").text = _clean(headline(result))
        ElementTree.SubElement(suite, "system-err").text = ""
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _suite(root: ElementTree.Element, device: str, number: int, created_at: str, host: str) -> ElementTree.Element:
    return ElementTree.SubElement(
        root,
        "testsuite",
        name=_token(device),
        package="devbench.gate",
        id=str(number),
        timestamp=created_at[:19],
        hostname=_token(host),
        time="0",
    )


def _properties(suite: ElementTree.Element, result: GateResult, device: str) -> None:
    properties = ElementTree.SubElement(suite, "properties")
    night = next((found for found in result.devices if found.name == device), None)
    stated = {
        "run": result.run,
        "baseline": result.baseline,
        "duel": result.duel,
        "threshold_percent": f"{100 * result.threshold:g}",
        "system": night.system if night else None,
    }
    for name, value in stated.items():
        if value is not None:
            ElementTree.SubElement(properties, "property", name=name, value=_clean(value))


def _case(suite: ElementTree.Element, row: Row, result: GateResult) -> None:
    case = _new_case(suite, row.cell.device, row.cell.model, f"{row.cell.setting} [{row.cell.id}]")
    change = change_text(row)
    words = f"{row.verdict}: {change + '; ' if change else ''}{why_text(row, result)}"
    if row in result.failing:
        failure = ElementTree.SubElement(case, "failure", message=_clean(words), type=str(row.verdict))
        failure.text = _clean(f"{row.cell}\n{words}\n{against(result)}")
    elif row.verdict in _ERRORS:
        ElementTree.SubElement(case, "error", message=_clean(words), type=str(row.verdict)).text = _clean(words)
    elif row.verdict is Verdict.SUSPECTED or row.verdict not in (*JUDGED, Verdict.REFERENCE):
        ElementTree.SubElement(case, "skipped", message=_clean(words))


def _lost_case(suite: ElementTree.Element, device: str, reason: str) -> None:
    case = _new_case(suite, device, "device", "could be measured")
    words = _clean(f"not measured: {reason}")
    ElementTree.SubElement(case, "error", message=words, type="device-lost").text = words


def _new_case(suite: ElementTree.Element, device: str, group: str, name: str) -> ElementTree.Element:
    classname = _token(f"{device}.{group}")
    return ElementTree.SubElement(suite, "testcase", name=_token(name), classname=classname, time="0")


def _count(suite: ElementTree.Element) -> None:
    cases = suite.findall("testcase")
    suite.set("tests", str(len(cases)))
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(sum(case.find(tag) is not None for case in cases)))


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)


def _token(text: str) -> str:
    """Text without spaces at its ends or in a row, which readers would fold."""
    return _SPACES.sub(" ", _clean(text)).strip() or "unnamed"
