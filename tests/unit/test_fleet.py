"""devices.toml, read into passive facts."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.errors import DevbenchError, SettingsError, UsageError, error_text
from orchestrator.fleet import Device, Fleet, Limits, read_fleet

TRANSPORTS: dict[str, dict[str, type]] = {
    "adb": {"serial": str, "adb_server": str},
    "local": {},
    "ssh": {"host": str, "port": int, "user": str},
}
PLATFORMS = ("android", "linux")
LOCAL = '[[device]]\nname = "here"\ntransport = "local"\n'


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that messages say `devices.toml`, whatever the folder."""
    monkeypatch.chdir(tmp_path)


def fleet(content: str) -> Fleet:
    path = Path("devices.toml")
    path.write_text(content, encoding="utf-8")
    return read_fleet(path, TRANSPORTS, PLATFORMS)


def refusal(content: str) -> str:
    """What a person reads when the file is refused."""
    with pytest.raises(SettingsError) as caught:
        fleet(content)
    return error_text(caught.value)


def test_a_device_of_two_keys_is_enough() -> None:
    """A name and a way to reach it; all else has a default."""
    assert fleet(LOCAL).devices == (Device("here", "local"),)


def test_every_key_is_read() -> None:
    """Nothing that the file says is lost."""
    content = """
    [[device]]
    name = "board"
    transport = "ssh"
    platform = "linux"
    host = "10.0.0.7"
    port = 2222
    user = "bench"
    workdir = "/data/bench"
    runner = "litert_runner:zero-copy"
    delegates = ["xnnpack", "cpu"]
    tags = ["lab", "slow"]
    [device.limits]
    temperature_c_max = 60
    battery_percent_min = 30.5
    thermal_status_max = 2
    charging = false
    low_power_mode = true
    """
    assert fleet(content).devices == (
        Device(
            "board",
            "ssh",
            platform="linux",
            address={"host": "10.0.0.7", "port": 2222, "user": "bench"},
            workdir="/data/bench",
            runner="litert_runner:zero-copy",
            delegates=("xnnpack", "cpu"),
            tags=("lab", "slow"),
            limits=Limits(60.0, 30.5, 2, charging=False, low_power_mode=True),
        ),
    )


def test_devices_keep_the_order_of_the_file() -> None:
    """Reports list them as the user did."""
    content = "".join(f'[[device]]\nname = "{name}"\ntransport = "local"\n' for name in ("z", "a", "m"))
    assert [device.name for device in fleet(content).devices] == ["z", "a", "m"]


class TestDefaults:
    DEFAULTS = """
    [defaults]
    workdir = "/data/all"
    runner = "litert_runner"
    delegates = ["cpu"]
    tags = ["lab"]
    limits = { temperature_c_max = 50, battery_percent_min = 20 }
    """

    def test_a_default_holds_for_a_device_that_does_not_say(self) -> None:
        """Every key of [defaults] reaches the device."""
        (device,) = fleet(self.DEFAULTS + LOCAL).devices
        assert device == Device(
            "here",
            "local",
            workdir="/data/all",
            runner="litert_runner",
            delegates=("cpu",),
            tags=("lab",),
            limits=Limits(50.0, 20.0),
        )

    def test_a_device_overrides_the_default(self) -> None:
        """What stands with the device wins, an empty list of tags too."""
        own = 'workdir = "/mine"\nrunner = "other"\ndelegates = ["xnnpack"]\ntags = []\n'
        (device,) = fleet(self.DEFAULTS + LOCAL + own).devices
        assert (device.workdir, device.runner, device.delegates, device.tags) == ("/mine", "other", ("xnnpack",), ())

    def test_limits_are_inherited_one_by_one(self) -> None:
        """Setting one limit does not drop the others; zero is a limit."""
        (device,) = fleet(self.DEFAULTS + LOCAL + "limits = { battery_percent_min = 0 }\n").devices
        assert device.limits == Limits(50.0, 0.0)
        (device,) = fleet(self.DEFAULTS + LOCAL + "limits = { temperature_c_max = 0 }\n").devices
        assert device.limits == Limits(0.0, 20.0)

    def test_an_address_is_no_default(self) -> None:
        """Two devices cannot share a serial."""
        assert refusal('[defaults]\nserial = "x"\n' + LOCAL) == (
            "error: devices.toml: [defaults] serial: is not a key here\n"
            "  try:   the choices are: delegates, limits, runner, tags, workdir"
        )


MESSAGES = {
    "empty file": (
        "",
        "error: devices.toml: no [[device]] in it\n  try:   add one, or let `devbench init` write the file",
    ),
    "plural table": (
        '[[devices]]\nname = "a"\n',
        "error: devices.toml: devices: is not a key here\n"
        '  try:   did you mean "device"? The choices are: defaults, device',
    ),
    "no name": (
        '[[device]]\ntransport = "local"\n',
        "error: devices.toml: [[device]] number 1 name: is missing\n  try:   add name = … to [[device]] number 1",
    ),
    "bad name": (
        '[[device]]\nname = "my phone"\ntransport = "local"\n',
        "error: devices.toml: [[device]] \"my phone\" name: 'my phone' is no device name\n"
        "  try:   use letters, digits, dots, dashes and underscores, 64 at most",
    ),
    "no transport": (
        '[[device]]\nname = "a"\n',
        'error: devices.toml: [[device]] "a" transport: is missing\n  try:   add transport = … to [[device]] "a"',
    ),
    "unknown transport": (
        '[[device]]\nname = "a"\ntransport = "shh"\n',
        'error: devices.toml: [[device]] "a" transport: "shh" is unknown\n'
        '  try:   did you mean "ssh"? The choices are: adb, local, ssh',
    ),
    "unknown platform": (
        LOCAL + 'platform = "linus"\n',
        'error: devices.toml: [[device]] "here" platform: "linus" is unknown\n'
        '  try:   did you mean "linux"? The choices are: android, linux',
    ),
    "key of another transport": (
        LOCAL + 'serial = "8A1X"\n',
        'error: devices.toml: [[device]] "here" serial: belongs to transport "adb", and this device uses "local"\n'
        '  try:   remove serial, or set transport = "adb"',
    ),
    "unknown key": (
        LOCAL + 'workdirr = "/tmp"\n',
        'error: devices.toml: [[device]] "here" workdirr: is not a key here\n'
        '  try:   did you mean "workdir"? The choices are: delegates, limits, name, platform, runner, tags, '
        "transport, workdir",
    ),
    "port out of range": (
        '[[device]]\nname = "b"\ntransport = "ssh"\nport = 70000\n',
        'error: devices.toml: [[device]] "b" port: 70000 is out of range\n'
        "  try:   use a whole number from 1 to 65535",
    ),
    "port as a string": (
        '[[device]]\nname = "b"\ntransport = "ssh"\nport = "22"\n',
        "error: devices.toml: [[device]] \"b\" port: '22' is not a whole number\n"
        "  try:   write port as a whole number",
    ),
    "one name twice": (
        LOCAL + LOCAL,
        'error: devices.toml: two devices are called "here"\n'
        "  try:   give each device a name of its own (upper and lower case count as the same)",
    ),
    "a name twice but for case": (
        LOCAL + LOCAL.replace("here", "Here"),
        'error: devices.toml: two devices are called "Here"\n'
        "  try:   give each device a name of its own (upper and lower case count as the same)",
    ),
    "tags no list": (
        LOCAL + 'tags = "lab"\n',
        "error: devices.toml: [[device]] \"here\" tags: 'lab' is not a list of strings\n"
        "  try:   write tags as a list of strings",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("content", "text"), MESSAGES.values(), ids=MESSAGES)
def test_a_wrong_file_is_refused_in_these_words(content: str, text: str) -> None:
    """Each message names file, device and key, and what to do."""
    assert refusal(content) == text


@pytest.mark.parametrize("name", ["-x", ".x", "", "a/b", "a" * 65, "ünï", "a\\nb", "a b"])
def test_names_that_would_hurt_in_paths_are_refused(name: str) -> None:
    """A device's name becomes part of file names."""
    with pytest.raises(SettingsError):
        fleet(f'[[device]]\nname = "{name}"\ntransport = "local"\n')


def test_a_wrong_limit_names_its_device() -> None:
    """The value is easily found in a file of twenty devices."""
    assert refusal(LOCAL + "limits = { temperature_c_max = 500 }\n") == (
        'error: devices.toml: [[device]] "here" limits temperature_c_max: 500 is out of range\n'
        "  try:   use a number from 0 to 150"
    )


def test_a_delegate_that_cannot_be_called_so_is_refused() -> None:
    """Whether there is such a one is seen with the plan, which may define delegates of its own."""
    assert refusal(LOCAL + 'delegates = ["GPU 1"]\n') == (
        'error: devices.toml: [[device]] "here" delegates: "GPU 1" is no name for a delegate\n'
        "  try:   use small letters, digits, _ and -, 32 at most"
    )


class TestSelect:
    FLEET = Fleet(
        Path("devices.toml"),
        (
            Device("here", "local", tags=("host",)),
            Device("pixel8", "adb", tags=("phone", "lab")),
            Device("pixel9", "adb", tags=("phone",)),
        ),
    )

    def chosen(self, names: tuple[str, ...] = (), tags: tuple[str, ...] = ()) -> list[str]:
        return [device.name for device in self.FLEET.select(names, tags)]

    def refused(self, names: tuple[str, ...] = (), tags: tuple[str, ...] = ()) -> str:
        with pytest.raises(DevbenchError) as caught:
            self.FLEET.select(names, tags)
        assert isinstance(caught.value, UsageError)
        return error_text(caught.value)

    def test_nothing_said_is_everything(self) -> None:
        """The whole fleet in its order."""
        assert self.chosen() == ["here", "pixel8", "pixel9"]

    def test_names_and_tags_both_narrow(self) -> None:
        """One of the names and one of the tags."""
        assert self.chosen(names=("pixel9", "here")) == ["here", "pixel9"]
        assert self.chosen(tags=("lab", "host")) == ["here", "pixel8"]
        assert self.chosen(names=("pixel8", "here"), tags=("phone",)) == ["pixel8"]

    def test_an_unknown_name_suggests_the_nearest(self) -> None:
        """The devices there are stand beside the guess."""
        assert self.refused(names=("pixel",)) == (
            'error: devices.toml has no device "pixel"\n'
            '  try:   did you mean "pixel9"? The choices are: here, pixel8, pixel9'
        )

    def test_an_unknown_tag_lists_the_tags(self) -> None:
        """All tags of the file, sorted."""
        assert self.refused(tags=("tablet", "tv")) == (
            "error: devices.toml: no device carries the tag tablet or tv\n  try:   the tags there are: host, lab, phone"
        )

    def test_a_name_without_the_tag_is_not_told_that_nobody_has_the_tag(self) -> None:
        """`pixel9` exists and so does `lab`; what fails is the combination."""
        text = self.refused(names=("pixel9",), tags=("lab",))
        assert "no device carries the tag lab" not in text
        assert "pixel9" in text
