"""Reads the TOML files that users write, strictly: every error names file, table, key and the nearest right key."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from orchestrator.errors import SettingsError


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """The choice a person most likely meant."""
    matches = difflib.get_close_matches(word, list(choices), n=1, cutoff=0.55)
    return matches[0] if matches else None


def suggestion(word: str, choices: Sequence[str]) -> str:
    """`did you mean X?` where something is near, and all choices where not."""
    match = nearest(word, choices)
    listed = ", ".join(choices)
    return f'did you mean "{match}"? The choices are: {listed}' if match else f"the choices are: {listed}"


_DURATION_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d)\s*")


def duration_s(text: str) -> float:
    """Seconds in `90s`, `20m`, `1h30m`; ValueError with the accepted forms otherwise."""
    position, total = 0, 0.0
    while match := _DURATION.match(text, position):
        total += float(match[1]) * _DURATION_UNITS_S[match[2]]
        position = match.end()
    if position != len(text) or not text.strip() or total <= 0:
        raise ValueError(f'"{text}" is no duration: write it like 90s, 20m or 1h30m')
    return total


def fraction(text: str) -> float:
    """0.02 for `2%` (or `0.02`); ValueError with the accepted forms otherwise."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*", text)
    value = float(match[1]) / (100.0 if match[2] else 1.0) if match else 0.0
    if not 0.0 < value < 1.0:
        raise ValueError(f'"{text}" is no share between 0 and 100 %: write it like 2%')
    return value


_SIZE_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def size_bytes(text: str) -> int:
    """Bytes in `64MB`, `1.5GB` or `512 KiB`; ValueError with the accepted forms otherwise."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMG]i?B)\s*", text)
    if not match:
        raise ValueError(f'"{text}" is no size: write it like 64MB')
    return round(float(match[1]) * _SIZE_UNITS[match[2]])


def read_toml(path: Path) -> Table:
    """The root table of a file; a missing, unreadable or ill-formed file is an error with its place."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise SettingsError(
            f"{path}: no such file",
            remedy="`devbench init` writes a devices.toml and a plan.toml to start from",
        ) from error
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}", remedy="make the file readable") from error
    except UnicodeDecodeError as error:
        raise SettingsError(
            f"{path}: not UTF-8 text (byte {error.start})",
            remedy="save the file as UTF-8; TOML allows nothing else",
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path}: not TOML: {error}", remedy="mend the line named above") from error
    return Table(path, "", content)


class Table:
    """One TOML table being read: ask for each key once, then `finish` refuses what nobody asked for."""

    def __init__(self, path: Path, name: str, content: dict[str, Any]) -> None:
        self.path = path
        self.name = name
        self._content = content
        self._asked: list[str] = []

    def error(self, key: str, problem: str, remedy: str) -> SettingsError:
        where = f"{self.path}: {self.name + ' ' if self.name else ''}"
        return SettingsError(f"{where}{key}: {problem}", remedy=remedy)

    def _take(self, key: str) -> Any:
        self._asked.append(key)
        return self._content.get(key)

    def _typed(self, key: str, kind: type | tuple[type, ...], expected: str) -> Any:
        value = self._take(key)
        is_bool_for_number = isinstance(value, bool) and kind is not bool
        if value is not None and (not isinstance(value, kind) or is_bool_for_number):
            raise self.error(key, f"{value!r} is not {expected}", f"write {key} as {expected}")
        return value

    def _required(self, key: str, value: Any) -> Any:
        if value is None:
            raise self.error(key, "is missing", f"add {key} = … to {self.name or 'the top of the file'}")
        return value

    def optional_text(self, key: str) -> str | None:
        value = self._typed(key, str, "a string")
        if value == "":
            raise self.error(key, "is empty", f"give {key} a value or leave it out")
        return value if value is None else str(value)

    def text(self, key: str) -> str:
        return str(self._required(key, self.optional_text(key)))

    def choice(self, key: str, choices: Sequence[str], default: str | None = None) -> str:
        value = self.optional_text(key) or default
        value = self._required(key, value)
        if value not in choices:
            raise self.error(key, f'"{value}" is unknown', suggestion(str(value), choices))
        return str(value)

    def optional_number(self, key: str, low: float, high: float) -> float | None:
        value = self._typed(key, (int, float), "a number")
        if value is not None and not low <= value <= high:
            raise self.error(key, f"{value} is out of range", f"use a number from {low:g} to {high:g}")
        return None if value is None else float(value)

    def number(self, key: str, low: float, high: float, default: float) -> float:
        value = self.optional_number(key, low, high)
        return default if value is None else value

    def optional_integer(self, key: str, low: int, high: int) -> int | None:
        value = self._typed(key, int, "a whole number")
        if value is not None and not low <= value <= high:
            raise self.error(key, f"{value} is out of range", f"use a whole number from {low} to {high}")
        return None if value is None else int(value)

    def integer(self, key: str, low: int, high: int, default: int) -> int:
        value = self.optional_integer(key, low, high)
        return default if value is None else value

    def boolean(self, key: str, default: bool) -> bool:
        value = self._typed(key, bool, "true or false")
        return default if value is None else bool(value)

    def optional_boolean(self, key: str) -> bool | None:
        value = self._typed(key, bool, "true or false")
        return None if value is None else bool(value)

    def texts(self, key: str, default: Sequence[str] = ()) -> tuple[str, ...]:
        value = self._typed(key, list, "a list of strings")
        if value is None:
            return tuple(default)
        if not all(isinstance(item, str) and item for item in value):
            raise self.error(key, f"{value!r} is not a list of strings", f'write {key} = ["…", "…"]')
        return tuple(value)

    def raw(self, key: str) -> Any:
        """The value as TOML has it, for keys of more than one form; the caller checks it."""
        return self._take(key)

    def duration_s(self, key: str) -> float | None:
        text = self.optional_text(key)
        return None if text is None else self._parsed(key, text, duration_s)

    def fraction(self, key: str) -> float | None:
        text = self.optional_text(key)
        return None if text is None else self._parsed(key, text, fraction)

    def _parsed(self, key: str, text: str, parse: Any) -> float:
        try:
            return float(parse(text))
        except ValueError as error:
            problem, _, remedy = str(error).partition(": ")
            raise self.error(key, problem, remedy) from error

    def table(self, key: str) -> Table:
        """A sub-table; an empty one where the file has none."""
        value = self._typed(key, dict, f"a table [{key}]")
        return Table(self.path, f"{self.name} {key}" if self.name else f"[{key}]", value or {})

    def tables(self, key: str) -> list[Table]:
        value = self._typed(key, list, f"a list of tables [[{key}]]") or []
        if not all(isinstance(item, dict) for item in value):
            raise self.error(key, f"{value!r} is not a list of tables", f"write each as [[{key}]]")
        return [Table(self.path, _entry_name(key, index, item), item) for index, item in enumerate(value, 1)]

    def has(self, key: str) -> bool:
        return key in self._content

    def finish(self) -> None:
        """Refuse keys that nobody asked for."""
        for key in self._content:
            if key not in self._asked:
                raise self.error(key, "is not a key here", suggestion(key, sorted(set(self._asked))))


def _entry_name(key: str, index: int, item: dict[str, Any]) -> str:
    name = item.get("name")
    return f'[[{key}]] "{name}"' if isinstance(name, str) else f"[[{key}]] number {index}"
