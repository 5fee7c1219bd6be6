"""Getting into an ssh board: host keys, keys, the agent, ~/.ssh/config and jump hosts, against real servers."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.clock import Deadline
from orchestrator.errors import DeviceError, DeviceUnfit, error_text
from orchestrator.fleet import Device
from orchestrator.transports.ssh import SSH
from tests.devices.fixtures import StartBoard
from tests.devices.ssh_board import BoardOptions, SshBoard


def soon(seconds: float = 20.0) -> Deadline:
    return Deadline.after(seconds)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own, without keys and without an agent."""
    folder = tmp_path / "home"
    (folder / ".ssh").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return folder


@pytest.fixture
def one(board: StartBoard) -> SshBoard:
    return board()


def answers(device: Device) -> bool:
    transport = SSH.open(device, deadline=soon())
    try:
        return transport.run(["echo", "here"], deadline=soon()).stdout == b"here\n"
    finally:
        transport.close()


def refusal(device: Device) -> DeviceError:
    with pytest.raises(DeviceUnfit) as caught:
        answers(device)
    assert caught.value.exit_code == 4 and not caught.value.retryable
    return caught.value


class TestHostKeys:
    def test_an_unknown_key_is_refused_with_what_to_do(self, one: SshBoard) -> None:
        """The fingerprint is in the error, and so is the line for devices.toml."""
        text = error_text(refusal(one.device(host_key="")))
        assert text == (
            f"error: 127.0.0.1:{one.port} shows a host key that is not known here: ed25519 {one.fingerprint()}\n"
            "  try:   compare with `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` on it; then add host_key = "
            f'"{one.fingerprint()}" to its [[device]], or log in once with '
            f"`ssh -p {one.port} {one.options.user}@127.0.0.1`"
        )

    def test_a_changed_key_is_refused_with_both_fingerprints(self, one: SshBoard, home: Path) -> None:
        """File and line of the old one are named."""
        one.write_known_hosts()
        shutil.copy(one.known_hosts, home / ".ssh" / "known_hosts")
        old = one.fingerprint()
        assert answers(one.device(host_key=""))
        one.renew_host_key()
        error = refusal(one.device(host_key=""))
        assert error.fact == (
            f"the host key of 127.0.0.1:{one.port} has changed: it shows ed25519 {one.fingerprint()}, and "
            f"{home}/.ssh/known_hosts line 1 has ed25519 {old}"
        )
        assert f"ssh-keygen -R '[127.0.0.1]:{one.port}'" in error.remedy

    def test_another_key_than_the_pinned_one_is_refused(self, one: SshBoard) -> None:
        """known_hosts is not asked where devices.toml names the key."""
        device = one.device()
        one.renew_host_key()
        error = refusal(device)
        assert f"shows the host key ed25519 {one.fingerprint()}, and host_key in devices.toml is" in error.fact

    def test_names_that_known_hosts_hides_are_found(self, one: SshBoard, home: Path) -> None:
        """As Debian writes them: hashed."""
        one.write_known_hosts()
        known = home / ".ssh" / "known_hosts"
        shutil.copy(one.known_hosts, known)
        subprocess.run(["ssh-keygen", "-q", "-H", "-f", known], check=True, capture_output=True)
        assert "127.0.0.1" not in known.read_text()
        assert answers(one.device(host_key=""))

    def test_the_key_that_is_known_is_the_one_asked_for(self, board: StartBoard, home: Path) -> None:
        """A server has several keys and shows one: which one is up to us."""
        one = board(BoardOptions(key_types=("ed25519", "rsa", "ecdsa")))
        for kind in ("rsa", "ecdsa", "ed25519"):
            one.write_known_hosts(kind)
            shutil.copy(one.known_hosts, home / ".ssh" / "known_hosts")
            assert answers(one.device(host_key=""))

    def test_a_revoked_key_is_refused_even_if_it_is_pinned(self, one: SshBoard, home: Path) -> None:
        """Somebody took the trouble to say so."""
        one.write_known_hosts()
        (home / ".ssh" / "known_hosts").write_text(f"@revoked {one.known_hosts.read_text()}")
        assert "a host key that known_hosts revokes" in refusal(one.device()).fact


class TestKeys:
    def test_a_key_that_is_not_let_in_is_named(self, one: SshBoard, tmp_path: Path) -> None:
        """With what the server takes, and how to let it in."""
        stranger = tmp_path / "stranger"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", stranger], check=True)
        error = refusal(one.device(key=str(stranger)))
        user = one.options.user
        assert error.fact == f"127.0.0.1:{one.port} does not let {user} in; it takes publickey; tried {stranger}"
        assert f"ssh-copy-id -p {one.port} {user}@127.0.0.1" in error.remedy

    def test_without_any_key_that_is_said(self, one: SshBoard) -> None:
        """An empty ~/.ssh is a frequent beginning."""
        assert "tried no key, because there is none" in refusal(one.device(key="")).fact

    def test_a_default_key_is_found(self, one: SshBoard, home: Path) -> None:
        """~/.ssh/id_ed25519 needs no mention."""
        shutil.copy(one.key, home / ".ssh" / "id_ed25519")
        assert answers(one.device(key=""))

    def test_a_file_that_is_no_key_is_named(self, one: SshBoard, tmp_path: Path) -> None:
        """And costs no attempt on the server."""
        nonsense = tmp_path / "nonsense"
        nonsense.write_text("no key\n")
        assert f"{nonsense} (cannot be read: " in refusal(one.device(key=str(nonsense))).fact

    def test_an_encrypted_key_is_opened_by_an_environment_variable(
        self, one: SshBoard, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its name stands in devices.toml, never its content; without one the error says how."""
        subprocess.run(["ssh-keygen", "-q", "-p", "-P", "", "-N", "secret word", "-f", one.key], check=True)
        error = refusal(one.device())
        assert f"{one.key} is encrypted" in error.fact
        assert f"`ssh-add {one.key}`, or set passphrase_env" in error.remedy
        assert "LAB_PASSPHRASE, which is not set" in refusal(one.device(passphrase_env="LAB_PASSPHRASE")).fact
        monkeypatch.setenv("LAB_PASSPHRASE", "wrong")
        assert str(one.key) in refusal(one.device(passphrase_env="LAB_PASSPHRASE")).fact
        monkeypatch.setenv("LAB_PASSPHRASE", "secret word")
        assert answers(one.device(passphrase_env="LAB_PASSPHRASE"))

    def test_a_password_comes_from_the_environment_alone(self, one: SshBoard, monkeypatch: pytest.MonkeyPatch) -> None:
        """This board takes none: the error says which variable was tried."""
        monkeypatch.setenv("LAB_PASSWORD", "guess")
        error = refusal(one.device(key="", password_env="LAB_PASSWORD"))
        assert "it takes publickey; tried the password in LAB_PASSWORD" in error.fact
        assert "guess" not in error_text(error)


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An ssh agent of the test's own."""
    socket = tmp_path / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.DEVNULL)
    deadline = soon()
    while not socket.exists() and not deadline.passed:
        deadline.clock.sleep(0.01)
    monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
    yield
    process.terminate()
    process.wait()


class TestAgent:
    def test_a_key_of_the_agent_lets_in(self, one: SshBoard, agent: None) -> None:
        """No file is named, and none is there."""
        subprocess.run(["ssh-add", "-q", one.key], check=True, stderr=subprocess.DEVNULL)
        assert answers(one.device(key=""))

    def test_the_key_that_was_named_comes_before_the_agents(
        self, one: SshBoard, agent: None, tmp_path: Path, home: Path
    ) -> None:
        """A server closes the connection after a few wrong ones. IdentitiesOnly leaves the others out altogether."""
        for number in range(8):
            key = tmp_path / f"other{number}"
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
            subprocess.run(["ssh-add", "-q", key], check=True, stderr=subprocess.DEVNULL)
        assert answers(one.device())
        (home / ".ssh" / "config").write_text("Host 127.0.0.1\n IdentitiesOnly yes\n")
        assert refusal(one.device(key=f"{tmp_path}/other0")).fact.endswith(f"; tried {tmp_path}/other0 (agent)")

    def test_an_encrypted_key_is_used_by_the_agent(self, one: SshBoard, agent: None) -> None:
        """It was opened once, by ssh-add."""
        subprocess.run(["ssh-add", "-q", one.key], check=True, stderr=subprocess.DEVNULL)
        subprocess.run(["ssh-keygen", "-q", "-p", "-P", "", "-N", "secret word", "-f", one.key], check=True)
        assert answers(one.device())


class TestConfig:
    def test_a_host_of_the_users_configuration_is_all_it_takes(self, one: SshBoard, home: Path) -> None:
        """HostName, Port, User, IdentityFile, UserKnownHostsFile; from an included file, as many have it."""
        one.write_known_hosts()
        (home / ".ssh" / "config").write_text("Include lab/*\n")
        (home / ".ssh" / "lab").mkdir()
        (home / ".ssh" / "lab" / "boards").write_text(
            f"Host pi\n HostName 127.0.0.1\n Port {one.port}\n User {one.options.user}\n IdentityFile {one.key}\n"
            f" UserKnownHostsFile {one.known_hosts}\n"
        )
        device = Device("board", "ssh", address={"host": "pi"})
        assert answers(device)
        assert SSH.identity(device) == SSH.identity(one.device()) == f"ssh:127.0.0.1:{one.port}"

    def test_a_board_behind_two_jump_hosts_is_reached(self, board: StartBoard, home: Path) -> None:
        """Each hop has its own key and its own host key; the board's server sees the last hop only."""
        first, second, last = board(), board(), board()
        config = ""
        for name, one, jump in (("first", first, ""), ("second", second, ""), ("last", last, "first,second")):
            one.write_known_hosts()
            config += f"Host {name}\n HostName 127.0.0.1\n Port {one.port}\n User {one.options.user}\n"
            config += f" IdentityFile {one.key}\n UserKnownHostsFile {one.known_hosts}\n"
            config += f" ProxyJump {jump}\n" if jump else ""
        (home / ".ssh" / "config").write_text(config)
        device = Device("board", "ssh", address={"host": "last"})
        transport = SSH.open(device, deadline=soon())
        source = home / "file"
        source.write_bytes(os.urandom(1_000_000))
        transport.push(source, f"{last.scratch}/file", deadline=soon())
        transport.close()
        assert (last.scratch / "file").read_bytes() == source.read_bytes()
        assert SSH.identity(device).count("/") == 2
        assert first.wait_until_idle() and second.wait_until_idle()

    def test_a_jump_host_that_does_not_know_the_board_is_blamed(self, one: SshBoard, home: Path) -> None:
        """The board itself was never asked."""
        one.write_known_hosts()
        (home / ".ssh" / "config").write_text(
            f"Host jump\n HostName 127.0.0.1\n Port {one.port}\n User {one.options.user}\n IdentityFile {one.key}\n"
            f" UserKnownHostsFile {one.known_hosts}\nHost 127.0.0.1\n ProxyJump jump\n"
        )
        with pytest.raises(DeviceError, match=r"the jump host does not reach 127.0.0.1:1: "):
            answers(one.device(port=1))
