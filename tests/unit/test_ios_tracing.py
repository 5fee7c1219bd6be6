"""The tracer of iPhones behind a Mac: what it is told, and what stands in its way."""

from __future__ import annotations

from collections.abc import Sequence

from ios_harness.platform import IOS, JAILBROKEN
from ios_harness.tracing import Xctrace, mac_tracers
from orchestrator.platforms.tracing import Room
from orchestrator.transports.base import Completed

UDID = "00008130-000A11112222333A"


def test_instruments_records_the_whole_phone_until_it_is_told_to_stop() -> None:
    """It says when it records; its folder is packed; TFLite's signposts are switched on in the app's environment."""
    recording = Xctrace(UDID).recording(Room("/mac/scratch/1", "abc", 64_000_000, 180))
    assert '--template "Time Profiler" --instrument os_signpost --all-processes' in recording.start
    assert f"--device {UDID} --time-limit 180s" in recording.start
    assert 'grep -q "Ctrl-C to stop"' in recording.start
    assert recording.stop.startswith("kill -INT $p")
    assert 'tar -C "/mac/scratch/1" -czf "$o" devbench.trace' in recording.stop
    assert recording.env == {"debug.tflite.trace": "1"}


def test_a_mac_without_xcode_has_none() -> None:
    """With its own words, and what to do."""

    def ask(argv: Sequence[str]) -> Completed:
        assert list(argv) == ["xcrun", "xctrace", "version"]
        return Completed(72, b"", b'xcrun: error: unable to find utility "xctrace"\n')

    (tracer,) = mac_tracers(UDID, ask)
    assert str(tracer.obstacle) == (
        'xctrace does not run on the Mac (xcrun: error: unable to find utility "xctrace") '
        "(try: install Xcode there: its tools alone have no xctrace)"
    )


def test_which_iphones_can_be_traced() -> None:
    """Those behind a Mac."""
    assert (tuple(IOS.trace_kinds), tuple(JAILBROKEN.trace_kinds)) == (("xctrace",), ())
