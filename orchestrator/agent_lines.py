"""What an agent says about a trial: its lines (device_agents/PROTOCOL.md) read into a report. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from orchestrator.stage import Report

_LINE_MAX = 4 * 1024 * 1024
_MASK = re.compile(r"[0-9a-fA-F]+")


class LineReader:
    """Turns the agent's bytes into a Report, line by line."""

    def __init__(self) -> None:
        self.report = Report()
        self._rest = bytearray()
        self._parts: dict[str, bytearray] = {"O": bytearray(), "E": bytearray()}

    def feed(self, chunk: bytes) -> None:
        self.report.transcript += chunk
        self._rest += chunk
        *lines, rest = self._rest.split(b"\n")
        self._rest = rest
        for line in lines:
            self._take(bytes(line).removesuffix(b"\r"))
        if len(self._rest) > _LINE_MAX:
            self.report.unreadable += 1
            self._rest.clear()

    def finish(self) -> Report:
        """The report when nothing more comes. Output that ended without a newline is a line as well."""
        for stream, target in (("O", self.report.stdout), ("E", self.report.stderr)):
            if self._parts[stream]:
                target.append(bytes(self._parts[stream]))
                self._parts[stream].clear()
        return self.report

    def _take(self, line: bytes) -> None:
        letter, content = line[:1].decode("latin-1"), line[2:]
        if letter == "X":
            self.report.closing = self._json(content) or {}
            return
        self.report.lines += 1
        if letter in ("O", "E", "o", "e"):
            self._take_output(letter, content)
        elif (record := self._json(content)) is not None:
            self._take_record(letter, record)

    def _take_record(self, letter: str, record: Mapping[str, Any]) -> None:
        match letter:
            case "H":
                self.report.header = record
            case "C":
                self.report.started = record
            case "S" if type(record.get("t_ns")) is int:
                self.report.samples.append(record)
            case "L":
                self.report.loads.append(record)
            case "W":
                self.report.warnings.append(record)
            case _:
                self.report.unreadable += 1

    def _take_output(self, letter: str, content: bytes) -> None:
        """A line of the child. A small letter says that the line goes on in the next of its kind, if there is one."""
        _, _, text = content.partition(b" ")
        stream = letter.upper()
        self._parts[stream] += text
        if letter == stream:
            target = self.report.stdout if stream == "O" else self.report.stderr
            target.append(bytes(self._parts[stream]))
            self._parts[stream].clear()

    def _json(self, content: bytes) -> Mapping[str, Any] | None:
        """The record in a line; None, and a mark in the report, where it cannot be read."""
        try:
            record = json.loads(content.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            self.report.unreadable += 1
            return None
        if not isinstance(record, dict) or not _has_a_mask_or_none(record):
            self.report.unreadable += 1
            return None
        return record


def _has_a_mask_or_none(record: Mapping[str, Any]) -> bool:
    """A damaged line may still be JSON, and say a mask that is none."""
    mask = record.get("affinity")
    return mask is None or (isinstance(mask, str) and _MASK.fullmatch(mask) is not None)
