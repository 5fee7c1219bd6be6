"""The words for background load: what a plan may ask for, and what the agent is told."""

from __future__ import annotations

import re
from dataclasses import dataclass

_CPU = re.compile(r"cpu:(\d+)@(\d+)")
_MEMORY = re.compile(r"mem:(\d+)")
FORMS = "idle, cpu:N@P (N threads at P percent), mem:N, app, model:FILE"
THREADS_MAX = 64


@dataclass(frozen=True)
class Load:
    """A background load as asked for. `model` is the file of a `model:FILE` load."""

    spec: str
    threads: int = 0
    percent: int | None = None
    model: str | None = None

    @property
    def is_idle(self) -> bool:
        return self.spec == "idle"


def parse_load(text: str) -> Load:
    """The load a user wrote; ValueError says what is wrong with it and which forms there are."""
    if text == "idle":
        return Load("idle")
    if text == "app":
        return Load("app", threads=2)
    if text.startswith("model:") and len(text) > len("model:"):
        return Load(text, model=text.removeprefix("model:"))
    if match := _MEMORY.fullmatch(text):
        return Load(text, threads=_thread_count(text, int(match[1])))
    if match := _CPU.fullmatch(text):
        percent = int(match[2])
        if not 1 <= percent <= 100:
            raise ValueError(f'load "{text}" asks for {percent} %: use 1 to 100 percent of one CPU a thread')
        return Load(text, threads=_thread_count(text, int(match[1])), percent=percent)
    raise ValueError(f'"{text}" is no load: the forms are {FORMS}')


def _thread_count(text: str, threads: int) -> int:
    if not 1 <= threads <= THREADS_MAX:
        raise ValueError(f'load "{text}" asks for {threads} threads: use 1 to {THREADS_MAX}')
    return threads
