"""What can be made to go wrong with a virtual phone, while it runs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass
class Faults:
    """The faults of one phone. Set fields at any time from any thread; None, False and 0 mean healthy.

    The `drop_*` counters are used up: when so many bytes have passed, the link is cut once and the field is None again.
    """

    #: Cut the link when so many bytes of files have been pushed.
    drop_push_after: int | None = None
    #: Cut the link when so many bytes of files have been pulled.
    drop_pull_after: int | None = None
    #: Cut the link when commands have printed so many bytes (0: at the first).
    drop_run_after: int | None = None
    #: The cut is a silent one, as of a cable between two switches: nothing is answered any more, the connection stays,
    #: and adb goes on saying "device". `thaw` and a new connection end it.
    cut_is_silent: bool = False
    #: Whether a half-pushed file stays when the link is cut. A daemon that lives removes it; a phone that dies cannot.
    partial_files_stay: bool = True
    #: A push keeps so many bytes of each file and still reports success.
    torn_push_bytes: int | None = None
    #: The link's speed, both ways, and what each message waits.
    bytes_per_s: float | None = None
    latency_s: float = 0.0
    #: Connections are accepted and nothing is answered, so that the host shows "offline".
    offline: bool = False
    #: Commands that match never start and never answer.
    wedged: re.Pattern[str] | None = None
    #: Services that are refused (OPEN is answered with CLSE), by the start of their name.
    refused: tuple[str, ...] = ()
    #: How often each fault has struck, by name.
    struck: dict[str, int] = field(default_factory=dict)

    def strike(self, name: str) -> None:
        """Counts that a fault has happened."""
        self.struck[name] = self.struck.get(name, 0) + 1

    def passes(self, counter: str, count: int) -> int:
        """How many of `count` bytes may still pass before the link is cut; the counter goes down with them."""
        left: int | None = getattr(self, counter)
        if left is None:
            return count
        if count > left or left == 0:
            setattr(self, counter, None)
            self.strike(counter)
            return left
        setattr(self, counter, left - count)
        return count
