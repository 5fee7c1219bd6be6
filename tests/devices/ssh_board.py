"""Real ssh servers on loopback as boards: OpenSSH or dropbear, the host's userland or busybox's alone.

As root each board has a world of its own: a mount namespace in which an unprivileged user `board` exists, so that
nothing on the host changes. Without root, OpenSSH runs as the current user and the board's user is that one.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.clock import SYSTEM, Deadline
from orchestrator.fleet import Device

SSHD, DROPBEAR, BUSYBOX = "/usr/sbin/sshd", "/usr/sbin/dropbear", "/usr/bin/busybox"
USER_ID = 4242
IS_ROOT = os.geteuid() == 0
USER = "board" if IS_ROOT else pwd.getpwuid(os.geteuid()).pw_name
_MARK = "DEVBENCH_BOARD"


@dataclass(frozen=True)
class BoardOptions:
    """What kind of board it is."""

    server: str = "openssh"
    userland: str = "host"
    """`busybox`: nothing but its applets in /usr/bin."""
    shell: str = "/bin/sh"
    config: Sequence[str] = ()
    """More lines of sshd_config."""
    key_types: Sequence[str] = ("ed25519",)
    address: str = "127.0.0.1"
    user: str = USER
    without: Sequence[str] = ()
    """Applets that this busybox lacks."""
    scratch_mount: str = ""
    """Mount options of a file system of its own for `scratch`: `noexec`, `size=1m`, `ro`."""


def why_no_board(options: BoardOptions) -> str | None:
    """Why such a board cannot be had here; None when it can."""
    needed = [{"openssh": SSHD, "dropbear": DROPBEAR}[options.server], options.shell]
    needed += [BUSYBOX] if options.userland == "busybox" else []
    for program in needed:
        if not Path(program).exists():
            return f"{program} is not installed: `make test-tools` as root installs it"
    if not IS_ROOT and options != BoardOptions(config=options.config, key_types=options.key_types):
        return "a board with dropbear or another userland needs root, for a user and a mount namespace of its own"
    return None


@dataclass
class SshBoard:
    """A server that runs; `folder` holds its keys, the user's home and room for tests."""

    options: BoardOptions
    folder: Path
    port: int
    _server: subprocess.Popen[bytes] | None = None
    _children: list[int] = field(default_factory=list)

    @classmethod
    def start(cls, options: BoardOptions | None = None) -> SshBoard:
        options = options or BoardOptions()
        folder = Path(tempfile.mkdtemp(prefix="devbench-board-"))
        folder.chmod(0o755)
        board = cls(options, folder, _free_port(options.address))
        try:
            board._furnish()
            board.up()
        except BaseException:
            board.stop()
            raise
        return board

    # What tests need to know

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def scratch(self) -> Path:
        return self.folder / "scratch"

    @property
    def key(self) -> Path:
        """The private key that the board lets in."""
        return self.folder / "id"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def host_key(self, kind: str = "ed25519") -> Path:
        return self.folder / f"host_{kind}"

    def fingerprint(self, kind: str = "ed25519") -> str:
        done = _run("ssh-keygen", "-lf", f"{self.host_key(kind)}.pub")
        return done.split()[1]

    @property
    def address_keys(self) -> dict[str, str | int]:
        """The keys of `[[device]]` that lead to it."""
        return {
            "host": self.options.address,
            "port": self.port,
            "user": self.options.user,
            "key": str(self.key),
            "host_key": self.fingerprint(self.options.key_types[0]),
        }

    def device(self, **address: str | int) -> Device:
        """The board as devices.toml would have it; a key that is given empty is left out."""
        keys = {key: value for key, value in (self.address_keys | address).items() if value != ""}
        return Device("board", "ssh", address=keys)

    def write_known_hosts(self, *kinds: str, port: int | None = None) -> None:
        """known_hosts as ssh would have written it after a first visit, for the given key types."""
        name = f"[{self.options.address}]:{port or self.port}"
        lines = [f"{name} {Path(f'{self.host_key(kind)}.pub').read_text()}" for kind in kinds or ("ed25519",)]
        self.known_hosts.write_text("".join(lines))

    def processes(self) -> list[int]:
        """Everything that a session of this board started and that still lives, orphans included."""
        marks = (f"HOME={self.home}\0".encode(), f"{_MARK}={self.folder.name}\0".encode())
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    environ = (entry / "environ").read_bytes() + b"\0"
                except OSError:
                    continue
                if any(mark in environ for mark in marks):
                    found.append(int(entry.name))
        return found

    def wait_until_idle(self, seconds: float = 5.0) -> bool:
        """Whether nothing of a session runs any more."""
        deadline = Deadline.after(seconds)
        while self.processes() and not deadline.passed:
            SYSTEM.sleep(0.02)
        return not self.processes()

    # Its life

    def up(self) -> None:
        """Start the server, and wait until it takes connections."""
        with (self.folder / "log").open("ab") as log:
            self._server = subprocess.Popen(
                self._command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, process_group=0
            )
        deadline = Deadline.after(20)
        while not _takes_connections(self.options.address, self.port):
            if self._server.poll() is not None or deadline.passed:
                raise RuntimeError(f"the board's server did not start:\n{self.log}")
            SYSTEM.sleep(0.01)

    def down(self) -> None:
        """Kill the server and its connections, as a power cut of the network card would; commands live on."""
        if self._server:
            for pid in [self._server.pid, *_descendants(self._server.pid)]:
                if _name(pid) in ("sshd", "dropbear", "unshare", "sh-board"):
                    _kill(pid)
            self._server.wait()
            self._server = None

    def stop(self) -> None:
        for pid in _descendants(self._server.pid) if self._server else ():
            _kill(pid)
        self.down()
        for pid in self.processes():
            _kill(pid)
        shutil.rmtree(self.folder, ignore_errors=True)

    def renew_host_key(self) -> None:
        """What re-installing the board does."""
        self.down()
        for kind in self.options.key_types:
            self.host_key(kind).unlink()
            self._make_host_key(kind)
        self.up()

    # Its furniture

    def _furnish(self) -> None:
        for place in (self.home, self.scratch):
            place.mkdir()
            if IS_ROOT:
                os.chown(place, USER_ID if self.options.user == "board" else 0, USER_ID)
        self.scratch.chmod(0o777)
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.key))
        for kind in self.options.key_types:
            self._make_host_key(kind)
        ssh = self.home / ".ssh"
        ssh.mkdir()
        shutil.copy(f"{self.key}.pub", ssh / "authorized_keys")
        if IS_ROOT:
            for path in (ssh, ssh / "authorized_keys"):
                os.chown(path, USER_ID if self.options.user == "board" else 0, USER_ID)
        (self.folder / "sshd_config").write_text("\n".join(self._config()) + "\n")
        if self.options.userland == "busybox":
            self._make_busybox()

    def _make_host_key(self, kind: str) -> None:
        if self.options.server == "dropbear":
            done = _run("dropbearkey", "-t", kind, "-f", str(self.host_key(kind)))
            public = next(line for line in done.splitlines() if line.startswith(("ssh-", "ecdsa-")))
            Path(f"{self.host_key(kind)}.pub").write_text(public + "\n")
        else:
            Path(f"{self.host_key(kind)}.pub").unlink(missing_ok=True)
            _run("ssh-keygen", "-q", "-t", kind, "-N", "", "-f", str(self.host_key(kind)))

    def _make_busybox(self) -> None:
        applets = self.folder / "usr-bin"
        applets.mkdir()
        shutil.copy(BUSYBOX, applets / "busybox")
        for name in _run(BUSYBOX, "--list").split():
            if name not in self.options.without and not (applets / name).exists():
                (applets / name).symlink_to("busybox")

    def _config(self) -> list[str]:
        lines = [f"HostKey {self.host_key(kind)}" for kind in self.options.key_types]
        lines += [f"Port {self.port}", f"ListenAddress {self.options.address}", "UsePAM no", "StrictModes no"]
        lines += [
            "PidFile none",
            "PrintMotd no",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "PermitRootLogin prohibit-password",
        ]
        lines += [f"AuthorizedKeysFile {self.home}/.ssh/authorized_keys", f"SetEnv {_MARK}={self.folder.name}"]
        lines += ["MaxStartups 100:30:200"]
        # OpenSSH takes the first line that says something of a setting.
        return [*self.options.config, *lines]

    def _command(self) -> list[str]:
        config = str(self.folder / "sshd_config")
        if not IS_ROOT:
            return [SSHD, "-D", "-e", "-f", config]
        passwd = self.folder / "passwd"
        entry = f"board:x:{USER_ID}:{USER_ID}::{self.home}:{self.options.shell}\n"
        root = f"root:x:0:0:root:{self.home}:{self.options.shell}\n"
        others = [line for line in Path("/etc/passwd").read_text().splitlines(True) if not line.startswith("root:")]
        passwd.write_text(root + "".join(others) + entry)
        serve = [SSHD, "-D", "-e", "-f", config]
        if self.options.server == "dropbear":
            serve = [DROPBEAR, "-F", "-E", "-s", "-p", f"{self.options.address}:{self.port}"]
            serve += [word for kind in self.options.key_types for word in ("-r", str(self.host_key(kind)))]
        steps = ["mount --make-rprivate /", f"mount --bind {passwd} /etc/passwd"]
        # Shells that are not in /etc/shells are refused by dropbear.
        shells = self.folder / "shells"
        shells.write_text(Path("/etc/shells").read_text() + self.options.shell + "\n")
        steps += [f"mount --bind {shells} /etc/shells"]
        steps += ["mount -t tmpfs tmpfs /run", "mkdir -p /run/sshd"]
        if self.options.userland == "busybox":
            steps += [f"mount --bind {self.folder}/usr-bin /usr/bin"]
        if self.options.scratch_mount:
            steps += [f"mount -t tmpfs -o mode=1777,{self.options.scratch_mount} tmpfs {self.scratch}"]
        script = " && ".join([*steps, f"exec {shlex.join(serve)}"])
        return ["unshare", "--mount", "/bin/sh", "-c", script]


def _run(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout


def _free_port(address: str) -> int:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


def _takes_connections(address: str, port: int) -> bool:
    try:
        with socket.create_connection((address, port), timeout=5) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _descendants(pid: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
            parents.setdefault(parent, []).append(int(entry.name))
    found, waiting = [], [pid]
    while waiting:
        waiting += (children := parents.get(waiting.pop(), []))
        found += children
    return found


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
