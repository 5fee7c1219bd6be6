"""The way to a board from devices.toml and ~/.ssh/config, without touching the network."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.errors import SettingsError
from orchestrator.fleet import Device
from orchestrator.transports.ssh import SSH
from orchestrator.transports.ssh_route import Hop, route_to


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file ~/.ssh/config of a home of the test's own."""
    (tmp_path / ".ssh").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LOGNAME", "me")
    return tmp_path / ".ssh" / "config"


def device(**address: str | int) -> Device:
    return Device("board", "ssh", address={"host": "pi", **address})


def hop(**address: str | int) -> Hop:
    (only,) = route_to(device(**address)).hops
    return only


def test_without_a_configuration_the_address_is_all() -> None:
    """Port 22, this user, and known_hosts where ssh keeps it."""
    found = hop()
    assert (found.host, found.port, found.user, found.known_as) == ("pi", 22, "me", "pi")
    assert found.known_hosts[0] == Path("~/.ssh/known_hosts").expanduser()


def test_devices_toml_wins_over_the_configuration(config: Path) -> None:
    config.write_text("Host pi\n HostName 10.0.0.5\n Port 2222\n User root\n")
    assert hop().command == "ssh -p 2222 root@10.0.0.5"
    assert hop(port=22, user="pi").command == "ssh pi@10.0.0.5"


def test_another_port_is_another_name_in_known_hosts(config: Path) -> None:
    """Unless HostKeyAlias names it."""
    assert hop(host="PI", port=2222).known_as == "[pi]:2222"
    config.write_text("Host pi\n HostKeyAlias farm-7\n")
    assert hop(port=2222).known_as == "farm-7"


def test_known_hosts_files_can_be_several_and_quoted(config: Path) -> None:
    config.write_text("Host pi\n UserKnownHostsFile ~/.ssh/lab /etc/lab_hosts\n")
    assert hop().known_hosts == (Path("~/.ssh/lab").expanduser(), Path("/etc/lab_hosts"))


def test_an_identity_is_the_way_and_the_end_of_it(config: Path) -> None:
    """10.0.0.5 behind one jump host is another board than behind another; an alias is no other board."""
    config.write_text("Host a b\n HostName 10.0.0.5\nHost a\n ProxyJump me@gate:2200\n")
    assert SSH.identity(device(host="a")) == "ssh:gate:2200/10.0.0.5:22"
    assert SSH.identity(device(host="b")) == SSH.identity(device(host="10.0.0.5")) == "ssh:10.0.0.5:22"
    assert SSH.identity(device(host="[fe80::1]", port=23)) == "ssh:[fe80::1]:23"


def test_jump_hosts_come_in_their_order(config: Path) -> None:
    """The first by its own way, which may begin with another jump; each other one from the one before."""
    config.write_text("Host pi\n ProxyJump one,two\nHost one\n ProxyJump zero\nHost two\n ProxyJump elsewhere\n")
    assert [found.host for found in route_to(device()).hops] == ["zero", "one", "two", "pi"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Host pi\n ProxyJump pi\n", "ProxyJump of pi goes round in a circle"),
        ("Host pi\n ProxyJump a b\n", 'ProxyJump "a b" is no'),
        ("Host pi\n ProxyCommand nc %h %p\n", "has a ProxyCommand for pi, which devbench does not run"),
        ("Host pi\n Port many\n", 'has Port "many" for pi'),
        ("Host pi\n \xff", "cannot be read"),
        ("nonsense\n", "cannot be read"),
    ],
)
def test_a_configuration_that_leads_nowhere_is_refused(config: Path, text: str, words: str) -> None:
    """By name, with what to do."""
    config.write_bytes(text.encode("latin-1"))
    with pytest.raises(SettingsError) as caught:
        route_to(device())
    assert words in caught.value.fact and caught.value.remedy


def test_a_file_that_includes_itself_ends() -> None:
    """ssh stops at sixteen; so do we."""
    path = Path("~/.ssh/config").expanduser()
    path.write_text("Include config\nHost pi\n Port 23\n")
    assert hop().port == 23


def test_the_default_folder_is_the_users_own() -> None:
    """On disk, absolute, and of a name that needs no quoting."""
    assert SSH.default_workdir(device(user="pi")) == "/var/tmp/devbench-pi"
    assert SSH.default_workdir(device(user="DOMAIN\\me x")) == "/var/tmp/devbench-DOMAIN_me_x"


def test_the_interpreter_can_be_named() -> None:
    assert SSH.python(device()) == "python3"
    assert SSH.python(device(python="/opt/venv/bin/python")) == "/opt/venv/bin/python"
