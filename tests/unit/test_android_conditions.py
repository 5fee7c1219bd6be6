"""Conditions on a phone: applied, read back, undone, and nothing forgotten wherever the phone or the host dies.

The scripts run in a real shell against the simulated phone of android_phone.py.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from android_harness import conditions
from orchestrator.errors import CommandTimeout, DevbenchError, DeviceError, DeviceLost
from orchestrator.plan import Conditions
from orchestrator.trial import Finding, Severity

from .android_phone import Phone

EVERYTHING = Conditions(
    governor="performance", screen="on", airplane=True, fixed_performance=True, doze="off", stop_background_apps=True
)
IN_EFFECT = {
    "tflite_trace": "0",
    "airplane": "1",
    "fixed_performance": "true",
    "doze": "0 0",
    "governor": "policy0=performance policy4=performance",
    "stay_awake": "7",
    "screen_timeout": "2147483647",
    "screen": "on",
}
NewPhone = Callable[[], Phone]


@pytest.fixture
def new_phone(tmp_path: Path) -> NewPhone:
    count = iter(range(1000))

    def make() -> Phone:
        folder = tmp_path / f"phone-{next(count)}"
        folder.mkdir()
        return Phone(folder)

    return make


@pytest.fixture
def phone(new_phone: NewPhone) -> Phone:
    return new_phone()


def known(phone: Phone) -> conditions.Phone:
    """What the platform would know of it."""
    return conditions.Phone(
        journal=str(phone.folder / "journal"),
        cpufreq=str(phone.cpufreq),
        root_prefix="su -c",
        holds_governor=True,
        api=34,
    )


def session(phone: Phone, wanted: Conditions = EVERYTHING) -> tuple[Finding, ...]:
    """A session from beginning to end."""
    with conditions.held(wanted, known(phone), phone.ask) as findings:
        return findings


def rules(findings: tuple[Finding, ...]) -> list[str]:
    return [finding.rule for finding in findings]


class TestHolding:
    def test_everything_is_in_effect_and_then_as_it_was(self, phone: Phone) -> None:
        """Two round trips to begin, one to end; the journal is gone with what it listed."""
        before = phone.settings()
        with conditions.held(EVERYTHING, known(phone), phone.ask) as findings:
            assert rules(findings) == ["tflite-trace"]
            assert phone.settings() == IN_EFFECT
            assert phone.journal() == before
            assert phone.asked == 2
        assert phone.settings() == before
        assert not (phone.folder / "journal").exists()
        assert phone.asked == 3

    def test_undone_in_reverse_order(self, phone: Phone) -> None:
        """The first to be changed is the last to go back."""
        session(phone)
        removed = [Path(line).name for line in phone.changes if line.startswith("rm ") and "/.new" not in line]
        noted = [Path(line).name for line in phone.changes if line.startswith("mv ")]
        assert len(noted) == 8
        assert removed == noted[::-1]

    def test_nothing_asked_changes_nothing(self, phone: Phone) -> None:
        """One question, no change: not even a folder."""
        phone.set({"prop.debug.tflite.trace": ""})
        assert session(phone, Conditions()) == ()
        assert (phone.asked, phone.changes) == (1, [])
        assert not (phone.folder / "journal").exists()

    def test_what_is_already_so_is_left_alone(self, phone: Phone) -> None:
        """An airplane mode that the user had switched on stays on afterwards."""
        phone.set({"global.airplane_mode_on": "1", "prop.debug.tflite.trace": "0"})
        assert session(phone, Conditions(airplane=True)) == ()
        assert phone.changes == []

    def test_the_screen_off(self, phone: Phone) -> None:
        """Nothing but the screen; and on again afterwards."""
        phone.set({"wakefulness": "Awake", "prop.debug.tflite.trace": ""})
        with conditions.held(Conditions(screen="off"), known(phone), phone.ask):
            assert phone.settings()["screen"] == "off"
            assert list(phone.journal()) == ["screen"]
        assert phone.settings()["screen"] == "on"

    def test_only_the_idle_modes_that_were_on_come_back(self, phone: Phone) -> None:
        """Many phones have no deep doze to begin with."""
        phone.set({"idle.deep": "0"})
        with conditions.held(Conditions(doze="off"), known(phone), phone.ask):
            assert phone.settings()["doze"] == "0 0"
        assert phone.settings()["doze"] == "0 1"

    def test_a_trace_somebody_left_on_is_off_during_any_session(self, phone: Phone) -> None:
        """It would slow every trial down; it is told and put back."""
        with conditions.held(Conditions(), known(phone), phone.ask) as findings:
            assert rules(findings) == ["tflite-trace"]
            assert phone.settings()["tflite_trace"] == "0"
        assert phone.settings()["tflite_trace"] == "1"

    def test_scripts_fit_old_daemons(self, phone: Phone) -> None:
        """A command line of 4 KiB is all that a phone of 2015 takes."""
        phone.stays_away = True
        phone.die_before_change(19)
        with suppress(DeviceLost):
            session(phone)
        phone.revive()
        session(phone)
        # The longest puts everything back and reads everything.
        assert max(len(shlex.quote(script)) for script in phone.scripts) < 4000


class TestNotHeld:
    def test_a_release_without_it_is_named(self, phone: Phone) -> None:
        """What came later is not even tried."""
        old = replace(known(phone), api=23)
        asked = Conditions(airplane=True, fixed_performance=True, doze="off")
        phone.set({"prop.debug.tflite.trace": ""})
        with conditions.held(asked, old, phone.ask) as findings:
            pass
        assert [finding.reason for finding in findings] == [
            "airplane was asked for and is not held: it came with Android API level 30, and this phone has 23",
            "fixed_performance was asked for and is not held: it came with Android API level 30, and this phone has 23",
            "doze was asked for and is not held: it came with Android API level 24, and this phone has 23",
        ]
        assert phone.changes == []

    def test_what_does_not_take_effect_is_put_back_at_once(self, phone: Phone) -> None:
        """And the phone's own words are passed on."""
        phone.break_("stuck_airplane")
        with conditions.held(Conditions(airplane=True), known(phone), phone.ask) as findings:
            assert "airplane" not in phone.journal()
        assert findings[-1].severity is Severity.WARN
        assert findings[-1].reason == (
            "airplane was asked for and is not held: airplane = 1 did not take effect, and was put back "
            '(the phone said: "Permission denied Permission denied")'
        )

    def test_hardware_without_fixed_performance(self, phone: Phone) -> None:
        """The command exists and fails; that is no reason to call the phone broken afterwards."""
        phone.break_("no_power_hal")
        findings = session(phone, Conditions(fixed_performance=True))
        assert rules(findings) == ["tflite-trace", "fixed_performance-not-held"]
        assert "Failed to set FIXED_PERFORMANCE mode" in findings[-1].reason
        assert phone.journal() == {}

    def test_no_such_service(self, phone: Phone) -> None:
        """A value that cannot be read is not changed."""
        phone.break_("missing_deviceidle")
        findings = session(phone, Conditions(doze="off"))
        assert findings[0].reason == (
            "doze was asked for and is not held: its present value cannot be read (no such service)"
        )

    def test_airplane_mode_never_cuts_off_a_phone_on_the_network(self, phone: Phone) -> None:
        """There would be no way left to switch it off again."""
        wireless = replace(known(phone), over_network=True)
        with conditions.held(Conditions(airplane=True), wireless, phone.ask) as findings:
            assert phone.settings()["airplane"] == "0"
        assert "cut the phone off" in findings[0].reason

    def test_without_a_journal_nothing_is_changed(self, phone: Phone) -> None:
        """What could not be put back after a crash is not begun."""
        (phone.folder / "journal").write_text("in the way")
        before = phone.settings()
        with conditions.held(Conditions(doze="off"), known(phone), phone.ask) as findings:
            assert phone.settings() == before
        assert "no journal can be written on the phone" in findings[-1].reason
        assert rules(findings) == ["tflite-trace", "doze-not-held"]

    def test_a_governor_that_is_none(self, phone: Phone) -> None:
        """What the plan says goes into no script before it is looked at."""
        asked = Conditions(governor='x"; reboot; "')
        findings = session(phone, asked)
        assert rules(findings)[0] == "governor-not-held"
        assert not any("reboot" in script for script in phone.scripts)


class TestUndoing:
    def test_what_cannot_be_put_back_is_an_error_with_its_name(self, phone: Phone) -> None:
        """The journal keeps it, and the next session that can puts it back."""
        before = phone.settings()
        with (
            pytest.raises(DeviceError, match=r"could not be put back as it was: stay_awake \(was 0\)"),
            conditions.held(EVERYTHING, known(phone), phone.ask),
        ):
            phone.break_("stuck_stay_on_while_plugged_in")
        assert phone.journal() == {"stay_awake": "0"}
        findings = session(phone, Conditions())
        assert "left-changed" in rules(findings)
        phone.mend("stuck_stay_on_while_plugged_in")
        assert "left-over" in rules(session(phone, Conditions()))
        assert phone.settings() == before

    def test_the_value_before_the_first_session_counts(self, phone: Phone) -> None:
        """Where undoing failed, a second session does not take the changed value for the phone's own."""
        phone.set({"wakefulness": "Awake"})
        before = phone.settings()
        with suppress(DeviceError), conditions.held(Conditions(screen="on"), known(phone), phone.ask):
            phone.break_("stuck_stay_on_while_plugged_in")
        with suppress(DeviceError):
            session(phone, Conditions(screen="on"))
        assert phone.journal() == {"stay_awake": "0"}
        phone.mend("stuck_stay_on_while_plugged_in")
        session(phone, Conditions(screen="on"))
        assert phone.settings() == before

    @pytest.mark.parametrize("error", [CommandTimeout("too slow", remedy="wait"), KeyboardInterrupt(), ValueError()])
    def test_an_error_under_way_is_never_replaced(self, phone: Phone, error: BaseException) -> None:
        """The phone may be lost at the same time; the first error is the story."""
        with pytest.raises(type(error)) as caught, conditions.held(EVERYTHING, known(phone), phone.ask):
            phone.lost_for_good = phone.stays_away = True
            raise error
        assert caught.value is error
        if isinstance(error, DevbenchError):
            assert error.contexts[-1].startswith("putting back tflite_trace, airplane,")

    def test_nor_by_a_close_in_a_finally(self, phone: Phone) -> None:
        """The conductor closes its stack of held things without passing the error in."""
        error = CommandTimeout("too slow", remedy="wait")

        def work() -> None:
            stack = ExitStack()
            stack.enter_context(conditions.held(EVERYTHING, known(phone), phone.ask))
            try:
                phone.lost_for_good = phone.stays_away = True
                raise error
            finally:
                stack.close()

        with pytest.raises(CommandTimeout) as caught:
            work()
        assert caught.value is error

    def test_a_phone_lost_at_the_end_is_told(self, phone: Phone) -> None:
        """When nothing else went wrong, that is what went wrong; one retry, no wait per setting."""
        with pytest.raises(DeviceLost) as caught, conditions.held(EVERYTHING, known(phone), phone.ask):
            phone.lost_for_good = phone.stays_away = True
        assert caught.value.contexts[0].startswith("putting back screen, screen_timeout, stay_awake, governor, doze,")
        assert phone.asked == 4

    def test_a_strange_journal_is_left_and_told(self, phone: Phone) -> None:
        """What a newer devbench wrote, or nobody: it is not executed, and not lost."""
        folder = phone.folder / "journal"
        folder.mkdir()
        (folder / "warp_drive").write_text("on\n")
        (folder / "stay_awake").write_text('0"; touch x; "\n')
        findings = session(phone, Conditions())
        assert rules(findings) == ["left-changed", "tflite-trace"]
        assert "warp_drive" in findings[0].reason and "stay_awake" in findings[0].reason
        assert set(phone.journal()) == {"warp_drive", "stay_awake"}


def check_nothing_is_forgotten(phone: Phone, before: dict[str, str]) -> None:
    """What differs from before is in the journal with its old value, and a next session puts it back."""
    after, journal = phone.settings(), phone.journal()
    changed = {name: before[name] for name in before if after[name] != before[name]}
    assert changed.items() <= journal.items()
    assert journal.items() <= before.items()
    phone.revive()
    findings = session(phone, Conditions())
    assert ("left-over" in rules(findings)) == bool(journal)
    assert phone.settings() == before
    assert not (phone.folder / "journal").exists()


def changes_of_a_session(phone: Phone) -> int:
    session(phone)
    return len(phone.changes)


class TestDying:
    @pytest.mark.parametrize("stays_away", [True, False], ids=["host dies", "link drops"])
    def test_in_the_middle_of_a_script(self, new_phone: NewPhone, stays_away: bool) -> None:
        """Before each command that changes anything: what is left changed is in the journal, or put back already."""
        for number in range(1, changes_of_a_session(new_phone()) + 1):
            phone = new_phone()
            before = phone.settings()
            phone.die_before_change(number)
            phone.stays_away = stays_away
            with suppress(DeviceLost):
                session(phone)
            check_nothing_is_forgotten(phone, before)

    @pytest.mark.parametrize("stays_away", [True, False], ids=["host dies", "link drops"])
    @pytest.mark.parametrize("obeyed", [True, False], ids=["answer lost", "question lost"])
    def test_at_a_question(self, new_phone: NewPhone, stays_away: bool, obeyed: bool) -> None:
        """Whether the phone obeyed or not, the host does not know."""
        for number in range(1, 4):
            phone = new_phone()
            before = phone.settings()
            phone.lose_after, phone.lose_before = (number, None) if obeyed else (None, number)
            phone.stays_away = stays_away
            with suppress(DeviceLost):
                session(phone)
            assert phone.asked >= number
            check_nothing_is_forgotten(phone, before)

    def test_while_the_leftovers_of_a_dead_host_are_put_back(self, new_phone: NewPhone) -> None:
        """The second host may die too."""
        for number in range(1, 20, 2):
            phone = new_phone()
            before = phone.settings()
            phone.stays_away = True
            phone.lose_after = 2
            with suppress(DeviceLost):
                session(phone)
            assert phone.journal() == before
            phone.revive()
            phone.stays_away = True
            phone.die_before_change(number)
            with suppress(DeviceLost):
                session(phone)
            check_nothing_is_forgotten(phone, before)
