"""What a phone's tools print is read without a guess: never an exception, never a number that is not there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from android_harness import dumpsys
from android_harness.dumpsys import Battery, Temperature
from orchestrator.platforms.questions import Answer, answers, batch

DATA = Path(__file__).parents[1] / "data" / "android"
QUESTIONS = {"one": "echo 1", "none": "true", "bad": "echo oops >&2; (exit 117)", "raw": "printf x"}
SHAPES = sorted(path.name for path in DATA.glob("*.txt"))


def shape(name: str) -> str:
    return (DATA / name).read_text(encoding="utf-8")


class TestBatch:
    def run(self) -> bytes:
        return subprocess.run(["sh", "-c", batch(QUESTIONS)], capture_output=True, check=True).stdout

    def test_one_script_many_answers(self) -> None:
        """Each with its text, both streams in one, and its status."""
        assert answers(self.run()) == {
            "one": Answer("1", 0),
            "none": Answer("", 0),
            "bad": Answer("oops", 117),
            "raw": Answer("x", 0),
        }

    def test_an_answer_that_was_cut_off_is_known(self) -> None:
        """Wherever the bytes end, no answer is taken for a whole one, and none is invented."""
        whole = self.run()
        complete = answers(whole)
        for end in range(len(whole)):
            for name, answer in answers(whole[:end]).items():
                assert answer == complete.get(name) or answer.exit is None

    def test_old_phones_send_carriage_returns(self) -> None:
        """A terminal makes CR LF of every newline."""
        assert answers(self.run().replace(b"\n", b"\r\n")) == answers(self.run())

    @given(st.binary())
    def test_any_bytes(self, stdout: bytes) -> None:
        """No exception, whatever comes."""
        answers(stdout)

    @pytest.mark.parametrize(
        ("text", "status", "reason"),
        [
            ("Can't find service: thermalservice", 0, "no such service"),
            ("cmd: Can't find service: power", 20, "no such service"),
            ("Permission Denial: can't dump battery from pid=1, uid=2000", 0, "not permitted"),
            ("cat: /sys/x: Permission denied", 1, "EACCES"),
            ("sh: getenforce: inaccessible or not found", 127, "no such command"),
            ("sh: 1: getenforce: not found", 127, "no such command"),
            ("*** SERVICE 'power' DUMP TIMEOUT (10000ms) EXPIRED ***", 0, "the service did not answer in time"),
            ("", 0, "no answer"),
            ("", 1, "no answer"),
            ("half", None, "the answer was cut off"),
            ("words", 3, "status 3"),
            ("fine", 0, None),
        ],
    )
    def test_why_there_is_no_answer(self, text: str, status: int | None, reason: str | None) -> None:
        """A word or an errno, for `absent`."""
        assert Answer(text, status).trouble == reason


class TestThermal:
    def test_current_temperatures_only(self) -> None:
        """The cache is of any age; battery voltage and charge are listed among the temperatures and are none."""
        found = dumpsys.thermal(shape("thermalservice_aidl.txt"))
        assert (found.status, found.overridden) == (2, False)
        assert found.temperatures == (
            Temperature("BIG", "cpu", 57.9),
            Temperature("LITTLE", "cpu", 51.25),
            Temperature("G3D", "gpu", 40.300003),
            Temperature("battery", "battery", 30.1),
            Temperature("VIRTUAL-SKIN", "skin", 41.351),
        )
        assert (found.hottest("skin"), found.hottest("cpu", "soc"), found.hottest("npu")) == (41.351, 57.9, None)

    def test_a_vendors_numbers(self) -> None:
        """Names go before types; 0, -99.9 and -273 are no temperatures."""
        found = dumpsys.thermal(shape("thermalservice_vendor.txt"))
        kinds = {sensor.name: sensor.kind for sensor in found.temperatures}
        assert kinds == {"BAT": "battery", "AP": "soc", "PA": "other"}
        assert found.status == 0

    def test_no_hal(self) -> None:
        """The service has a status before anybody told it one; that is none."""
        assert dumpsys.thermal(shape("thermalservice_not_ready.txt")) == dumpsys.Thermal()
        assert dumpsys.thermal("Thermal Status: 0\nHAL Ready: false\n").status is None

    @pytest.mark.parametrize("status", ["7", "-1", "-2147483648", "x", ""])
    def test_a_status_is_0_to_6(self, status: str) -> None:
        assert dumpsys.thermal(f"Thermal Status: {status}\nHAL Ready: true\n").status is None

    def test_somebody_elses_override_is_seen(self) -> None:
        assert dumpsys.thermal("IsStatusOverride: true\nThermal Status: 3\n") == dumpsys.Thermal(3, True)

    @given(st.text())
    def test_any_text(self, text: str) -> None:
        """No exception, and only numbers that are in the text."""
        for prefix in ("", "Thermal Status: ", "Current temperatures from HAL:\n\tTemperature{mValue="):
            found = dumpsys.thermal(prefix + text)
            assert found.status is None or str(found.status) in re.findall(r"\d+", prefix + text)
            assert all(-40 < sensor.celsius < 150 for sensor in found.temperatures)

    @given(st.floats(), st.integers(-1, 20), st.text(st.characters(blacklist_characters=",}\n"), max_size=8))
    def test_any_sensor(self, value: float, kind: int, name: str) -> None:
        """What is no plausible temperature is left out, and what is stays as it is."""
        line = f"\tTemperature{{mValue={value:f}, mType={kind}, mName={name}, mStatus=0}}\n"
        found = dumpsys.thermal(f"Current temperatures from HAL:\n{line}").temperatures
        shown = float(f"{value:f}")
        plausible = -40 < shown < 150 and shown != 0 and kind not in (6, 7, 8)
        assert [sensor.celsius for sensor in found] == ([shown] if plausible else [])


class TestBattery:
    def test_plain(self) -> None:
        expected = Battery(85.0, 28.1, 4120, charging=True, plugged=True, updates_stopped=False, health="good")
        assert dumpsys.battery(shape("battery.txt")) == expected

    @pytest.mark.parametrize("name", ["battery_microvolts.txt", "battery_vendor.txt"])
    def test_the_same_by_other_vendors(self, name: str) -> None:
        """Microvolts, and lines under names that were there already."""
        assert dumpsys.battery(shape(name)) == dumpsys.battery(shape("battery.txt"))

    def test_stopped_updates_are_seen(self) -> None:
        assert dumpsys.battery(shape("battery_stopped.txt")).updates_stopped

    @pytest.mark.parametrize(
        ("status", "charging"), [("1", None), ("2", True), ("3", False), ("4", False), ("5", False)]
    )
    def test_a_full_battery_does_not_charge(self, status: str, charging: bool | None) -> None:
        text = shape("battery.txt").replace("  status: 2", f"  status: {status}")
        assert dumpsys.battery(text).charging is charging

    def test_no_battery(self) -> None:
        """A board's power supply has no level of 0 %."""
        text = shape("battery.txt").replace("present: true", "present: false")
        assert dumpsys.battery(text) == Battery(plugged=True)

    @pytest.mark.parametrize("line", ["level: -1", "level: 101", "level: ", "level: 5e1", "temperature: -2730"])
    def test_nonsense_is_unknown(self, line: str) -> None:
        name = line.partition(":")[0]
        found = dumpsys.battery(re.sub(rf"\b{name}: .*", line, shape("battery.txt")))
        assert (found.percent if name == "level" else found.temperature_c) is None

    @given(st.text(), st.integers())
    def test_any_text(self, text: str, number: int) -> None:
        """No exception; a percentage is one."""
        for start in ("", f"level: {number}\n", f"scale: {number}\nlevel: 5\n", f"voltage: {number}\n"):
            found = dumpsys.battery(start + text)
            assert found.percent is None or 0 <= found.percent <= 100
            assert found.voltage_mv is None or found.voltage_mv > 0


class TestTheRest:
    def test_properties(self) -> None:
        """A value may go over lines; an empty one is none."""
        props = dumpsys.properties(shape("getprop.txt"))
        assert props["sys.boot.reason.last"] == "reboot\nshell"
        assert props["sys.boot_completed"] == "1"
        assert props["ro.soc.model"] == "Tensor G3"
        assert "debug.tflite.trace" not in props

    @pytest.mark.parametrize(
        ("word", "on"),
        [("Awake", True), ("Dreaming", True), ("Dozing", False), ("Asleep", False), ("Odd", None), ("", None)],
    )
    def test_the_screen(self, word: str, on: bool | None) -> None:
        """The always-on display counts as off."""
        assert dumpsys.awake(shape("power.txt").replace("mWakefulness=Dozing", f"mWakefulness={word}")) is on

    @pytest.mark.parametrize(("text", "on"), [("1", True), ("0\n", False), ("null", False), ("2", None), ("", None)])
    def test_a_switch(self, text: str, on: bool | None) -> None:
        assert dumpsys.setting_is_on(text) is on

    def test_free_space(self) -> None:
        """In both shapes; what is neither is unknown."""
        assert dumpsys.free_kb(shape("df_toybox.txt")) == 91612340
        assert dumpsys.free_kb(shape("df_toolbox.txt")) == round(9.2 * 1024 * 1024)
        assert dumpsys.free_kb("df: /data: Permission denied") is None
        assert dumpsys.free_kb("Filesystem 1K-blocks Used Available\n/data 5 6 lots\n") is None

    def test_the_gpu(self) -> None:
        line = "GLES: ARM, Mali-G715, OpenGL ES 3.2 v1.r44p0-01eac0"
        assert dumpsys.gpu(f"Build configuration:\n{line}\n") == line.removeprefix("GLES: ")
        assert dumpsys.gpu("GLES:\n") is None

    def test_accelerators(self) -> None:
        assert dumpsys.accelerators(shape("services.txt")) == ("google-edgetpu", "nnapi-sample_all")

    @given(st.text() | st.sampled_from(SHAPES).map(shape))
    def test_any_text_to_any_reader(self, text: str) -> None:
        """No reader fails on another tool's output, and none sees in it what is not there."""
        kilobytes = dumpsys.free_kb(text)
        assert kilobytes is None or kilobytes >= 0
        for read in (dumpsys.properties, dumpsys.awake, dumpsys.setting_is_on, dumpsys.gpu, dumpsys.accelerators):
            read(text)

    @pytest.mark.parametrize("name", SHAPES)
    def test_cut_anywhere(self, name: str) -> None:
        """A dump that ends early gives fewer facts, not others."""
        text = shape(name)
        whole = dumpsys.thermal(text).temperatures
        for end in range(len(text)):
            assert dumpsys.thermal(text[:end]).temperatures == whole[: len(dumpsys.thermal(text[:end]).temperatures)]
            dumpsys.battery(text[:end]), dumpsys.properties(text[:end]), dumpsys.free_kb(text[:end])
