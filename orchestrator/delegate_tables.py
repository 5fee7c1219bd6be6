"""Delegates that a user defines: the `[[delegate]]` tables of a plan, every key checked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from orchestrator.delegates import BUILT_IN, LOADED, PLATFORMS, SETTINGS, Delegate, check_name, parts_of
from orchestrator.settings import Table, fraction, suggestion

_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FLAG_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_SETTING_KEYS = tuple(dict.fromkeys(key for words in SETTINGS.values() for key in words))


def check_delegate(word: str, known: Sequence[str]) -> str:
    """The word, where it names one of the known; ValueError with the nearest where not."""
    name, _ = parts_of(word)
    if name not in known:
        raise ValueError(f'"{name}" is no delegate: {suggestion(name, known)}')
    return word


def read_required_share(table: Table) -> float:
    """`require`: the share of nodes that the delegate must take; `full`, `any`, or such as `80%`."""
    text = table.optional_text("require") or "any"
    words = {"any": 0.0, "full": 1.0, "100%": 1.0}
    try:
        return words[text] if text in words else fraction(text)
    except ValueError as error:
        problem = f'"{text}" is no share of the nodes'
        raise table.error("require", problem, 'write require = "full", "any" or such as "80%"') from error


def read_delegates(root: Table) -> tuple[Delegate, ...]:
    """The user's own delegates, in their order."""
    found: dict[str, Delegate] = {}
    for table in root.tables("delegate"):
        name = _read_name(table)
        if name in found or name in BUILT_IN:
            problem = "is built in" if name in BUILT_IN else "is defined twice"
            raise table.error("name", f'"{name}" {problem}', "give your delegate another name")
        found[name] = _read_one(table, name)
    return tuple(found.values())


def _read_name(table: Table) -> str:
    try:
        return check_name(table.text("name"))
    except ValueError as error:
        problem, _, remedy = str(error).partition(": ")
        raise table.error("name", problem, remedy) from error


def _read_one(table: Table, name: str) -> Delegate:
    below = BUILT_IN[table.choice("base", tuple(BUILT_IN), "external")]
    path = table.optional_text("path")
    if path is not None and not path.startswith("/"):
        raise table.error("path", f'"{path}" is not absolute', "name the library's place on the device from / on")
    delegate = replace(
        below,
        name=name,
        is_own=True,
        platforms=_read_platforms(table, below),
        settings={**below.settings, **_read_settings(table, below.base)},
        paths=(path,) if path else below.paths,
        library=table.optional_text("library"),
        libraries=table.texts("libraries"),
        options=_read_options(table, below),
        env={**below.env, **_read_pairs(table, "env", _ENV_NAME, "a name of an environment variable")},
        flags=_read_pairs(table, "flags", _FLAG_NAME, "a flag without its dashes"),
        evidence=(*below.evidence, *_read_patterns(table, "evidence")),
        failures=(*below.failures, *_read_patterns(table, "failures")),
    )
    _check_library(table, delegate)
    table.finish()
    return delegate


def _read_platforms(table: Table, below: Delegate) -> tuple[str, ...]:
    named = table.texts("platforms", below.platforms)
    for word in named:
        if word not in PLATFORMS:
            raise table.error("platforms", f'"{word}" is no platform', f"the choices are: {', '.join(PLATFORMS)}")
    return named


def _read_settings(table: Table, base: str) -> dict[str, str]:
    allowed = SETTINGS.get(base, {})
    found = {}
    for key in _SETTING_KEYS:
        if key not in allowed and table.has(key):
            can = ", ".join(allowed) or "none"
            raise table.error(key, f"is no setting of base {base}", f"remove it; the settings of {base}: {can}")
        if key in allowed and table.has(key):
            words = allowed[key]
            found[key] = table.choice(key, words) if words else table.text(key)
    return found


def _read_options(table: Table, below: Delegate) -> Mapping[str, str]:
    """A table, or the text `key=value;key=value`. The tool drops what it cannot split without a word, so that is
    refused here."""
    value = table.raw("options")
    if value is None:
        return below.options
    if below.base != "external":
        raise table.error("options", f"base {below.base} takes none", "remove it; only external delegates have options")
    if isinstance(value, str):
        pairs = [part.partition("=") for part in value.split(";") if part.strip()]
        if not all(mark for _, mark, _ in pairs):
            raise table.error("options", f'"{value}" is not key=value;key=value', 'write options = { key = "value" }')
        value = {key.strip(): text.strip() for key, _, text in pairs}
    if not isinstance(value, dict):
        raise table.error("options", f"{value!r} is not a table of texts", 'write options = { key = "value" }')
    return {**below.options, **{key: _option(table, key, text) for key, text in value.items()}}


def _option(table: Table, key: str, value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if not isinstance(value, (str, int, float)) or not key or not text or re.search(r"[:;\s]", key + text):
        raise table.error(
            "options",
            f"{key} = {value!r} would never arrive: the tool splits at : and ;",
            "use keys and values without : ; and spaces",
        )
    return text


def _read_pairs(table: Table, key: str, names: re.Pattern[str], expected: str) -> dict[str, str]:
    value = table.raw(key)
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(item, (str, int)) for item in value.values()):
        raise table.error(key, f"{value!r} is not a table of texts", f'write {key} = {{ NAME = "value" }}')
    for name, text in value.items():
        if not names.fullmatch(name):
            raise table.error(key, f'"{name}" is not {expected}', "mend the name")
        if "\0" in str(text) or "\n" in str(text):
            raise table.error(key, f"{name} has a line break in its value", "use one line")
    return {name: str(text).lower() if isinstance(text, bool) else str(text) for name, text in value.items()}


def _read_patterns(table: Table, key: str) -> tuple[str, ...]:
    patterns = table.texts(key)
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise table.error(key, f'"{pattern}" is no pattern: {error}', "write a regular expression") from error
    return patterns


def _check_library(table: Table, delegate: Delegate) -> None:
    if delegate.base in LOADED and not delegate.library and not delegate.paths:
        raise table.error(
            "library",
            "is missing",
            'add library = "FILE on this host", to be deployed, or path = "/place/on/the/device.so"',
        )
    if delegate.library and delegate.base not in LOADED:
        remedy = f"use libraries; base {delegate.base} loads them by folder"
        raise table.error("library", f"base {delegate.base} loads no single library", remedy)
    if delegate.library and table.has("path"):
        raise table.error("path", "stands beside library", "keep one: path on the device, or library to be deployed")
