"""A device connected to for a look, and left as it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from orchestrator import registry
from orchestrator.conductor import Conductor, Files
from orchestrator.device_lock import device_lock
from orchestrator.fleet import Device
from orchestrator.plan import Conditions, Measure


@contextmanager
def seen(device: Device) -> Iterator[Conductor]:
    """The device, locked while it is looked at; nothing is held there."""
    lock = partial(device_lock, device=device.name, run="a look")
    with lock(registry.transport(device.transport).identity(device)):
        conductor = Conductor(
            device,
            measure=Measure(),
            conditions=Conditions(canary="off"),
            files=Files(models={}, load_models={}),
            lock=lock,
        )
        try:
            yield conductor
        finally:
            conductor.close()
