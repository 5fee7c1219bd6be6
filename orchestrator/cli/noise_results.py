"""Shows what a calibration found."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from orchestrator.cli.options import print_json

if TYPE_CHECKING:
    from orchestrator.store import RunRecord, Store


def keep_and_show_noise(store: Store, record: RunRecord, *, as_json: bool) -> None:
    """The noise of a calibration run goes to the store and to standard output."""
    from orchestrator.clock import SYSTEM, timestamp
    from orchestrator.noise_book import keep_noise

    calibration = keep_noise(store, record, timestamp(SYSTEM.now()))
    if as_json:
        print_json("devbench.calibration", calibration.as_json())
        return
    from orchestrator.reports.planning import show_calibration
    from orchestrator.reports.terminal import console_for

    show_calibration(console_for(sys.stdout), calibration)
