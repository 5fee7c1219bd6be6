"""The errors a user can meet, each with its remedy, its exit code and whether a retry may help.

DevbenchError
├── UsageError          2   the command line, or a file the user wrote, is wrong
│   ├── SettingsError       devices.toml or plan.toml: file, table and key are named
│   ├── ModelError          a model file that cannot be measured
│   ├── RunNotFound         no such run in the store
│   ├── ImportRefused       a file of trials that cannot be read
│   └── ComparisonRefused   two sides that are not the same thing measured twice
├── HostError           3   this host lacks something
├── DeviceError         4   a device, or the way to it
│   ├── DeviceLost          it went away; worth a retry
│   ├── DeviceBusy          another run measures it
│   ├── DeviceFull          no space left on it
│   ├── DeviceUnfit         it cannot run what was asked
│   ├── TracerFailed        it gave no trace; all else about it is well
│   └── CommandTimeout      it did not answer in time; worth a retry
├── StoreError          6   the store cannot be used
│   └── StoreNewer          written by a newer devbench
└── Interrupted       130   the user stopped the run
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class DevbenchError(Exception):
    """A fact and what to do about it; `contexts` says what was going on, innermost first."""

    exit_code = 70
    retryable = False

    def __init__(self, fact: str, *, remedy: str) -> None:
        super().__init__(fact)
        self.fact = fact
        self.remedy = remedy
        self.contexts: list[str] = []

    def __str__(self) -> str:
        return self.fact


class UsageError(DevbenchError):
    exit_code = 2


class SettingsError(UsageError):
    pass


class ModelError(UsageError):
    pass


class RunNotFound(UsageError):
    pass


class ImportRefused(UsageError):
    pass


class ComparisonRefused(UsageError):
    pass


class HostError(DevbenchError):
    exit_code = 3


class DeviceError(DevbenchError):
    exit_code = 4


class DeviceLost(DeviceError):
    retryable = True


class DeviceBusy(DeviceError):
    pass


class DeviceFull(DeviceError):
    pass


class DeviceUnfit(DeviceError):
    pass


class TracerFailed(DeviceError):
    pass


class CommandTimeout(DeviceError):
    retryable = True


class StoreError(DevbenchError):
    exit_code = 6


class StoreNewer(StoreError):
    pass


class Interrupted(DevbenchError):
    exit_code = 130


@contextmanager
def during(activity: str) -> Iterator[None]:
    """Add what was going on to any devbench error that passes through."""
    try:
        yield
    except DevbenchError as error:
        error.contexts.append(activity)
        raise


def error_text(error: DevbenchError) -> str:
    """The error as a person reads it: the fact, what was going on, what to try."""
    lines = [f"error: {error.fact}"]
    lines += [f"  while: {activity}" for activity in error.contexts]
    lines.append(f"  try:   {error.remedy}")
    return "\n".join(lines)
