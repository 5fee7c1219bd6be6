"""From the address keys in devices.toml and ~/.ssh/config to the way to a board: one hop, or several."""

from __future__ import annotations

import getpass
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import paramiko

from orchestrator.errors import SettingsError
from orchestrator.fleet import Device

_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}=?")
_JUMP = re.compile(r"(?:ssh://)?(?:(?P<user>[^@\s]+)@)?(?P<host>\[[^\]]+\]|[^:\s]+)(?::(?P<port>\d+))?/?")
_DEFAULT_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")
_KNOWN_HOSTS = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2", "/etc/ssh/ssh_known_hosts")
_HOPS_MAX = 8
_INCLUDES_MAX = 16


@dataclass(frozen=True)
class Hop:
    """One machine on the way, and how to get into it."""

    host: str
    port: int
    user: str
    keys: tuple[Path, ...]
    only_these_keys: bool
    """No other key of the ssh agent is offered."""
    known_hosts: tuple[Path, ...]
    known_as: str
    """Its name in known_hosts."""
    host_key: str | None = None
    """The fingerprint that devices.toml pins."""
    passphrase_env: str | None = None
    password_env: str | None = None

    @property
    def address(self) -> str:
        """`host:port`, for messages."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def command(self) -> str:
        """What a person types to get there."""
        port = "" if self.port == 22 else f"-p {self.port} "
        return f"ssh {port}{self.user}@{self.host}"


@dataclass(frozen=True)
class Route:
    """All hops to one device, which is the last of them."""

    device: str
    hops: tuple[Hop, ...]

    @property
    def identity(self) -> str:
        """Names the device: what one address means depends on the machine it is seen from."""
        return "ssh:" + "/".join(hop.address for hop in self.hops)


def route_to(device: Device) -> Route:
    """The way to a device; SettingsError where devices.toml or ~/.ssh/config says something impossible."""
    config = _UserConfig.read(device.name)
    hops = config.hops(_host(device), _Wishes.of(device), jumps_left=_HOPS_MAX)
    return Route(device.name, hops)


def _host(device: Device) -> str:
    """The board; or the Mac that a phone is attached to."""
    key = _host_setting(device)
    host = str(device.address.get(key, "")).strip().removeprefix("[").removesuffix("]")
    if not host:
        raise _wrong(device.name, f"has no {key}", f'add {key} = "…": a name, an address, or a Host of ~/.ssh/config')
    if "@" in host or re.search(r"\s", host) or host.startswith("-"):
        raise _wrong(device.name, f'{key} = "{host}" is no host name', "write the host alone; user and port have keys")
    return host


def _host_setting(device: Device) -> str:
    """`gateway` for a phone behind a Mac, `host` for all others."""
    for key in ("gateway", "udid", "app"):
        if key in device.address and device.platform not in ("ios", None):
            raise _wrong(device.name, f"{key} belongs to platform ios", f'remove {key}, or set platform = "ios"')
    if "gateway" in device.address and "host" in device.address:
        raise _wrong(device.name, "has a host and a gateway", "leave host out: the gateway is the Mac's ssh host")
    return "gateway" if "gateway" in device.address else "host"


def _wrong(device: str, fact: str, remedy: str) -> SettingsError:
    return SettingsError(f'device "{device}": {fact}', remedy=remedy)


@dataclass(frozen=True)
class _Wishes:
    """What devices.toml, or a ProxyJump, says of a hop; it wins over ~/.ssh/config."""

    user: str | None = None
    port: int | None = None
    key: Path | None = None
    host_key: str | None = None
    passphrase_env: str | None = None
    password_env: str | None = None

    @classmethod
    def of(cls, device: Device) -> _Wishes:
        texts = {key: str(value) for key, value in device.address.items()}
        host_key, key = texts.get("host_key"), texts.get("key")
        if host_key is not None and not _FINGERPRINT.fullmatch(host_key):
            raise _wrong(
                device.name,
                f'host_key = "{host_key}" is no fingerprint',
                'write "SHA256:" and 43 characters, as `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` prints on it',
            )
        if key is not None and not Path(key).expanduser().is_file():
            raise _wrong(
                device.name, f'key = "{key}": no such file', "give the path of the private key, ~ for your home"
            )
        return cls(
            user=texts.get("user"),
            port=int(texts["port"]) if "port" in texts else None,
            key=Path(key).expanduser() if key else None,
            host_key=host_key.rstrip("=") if host_key else None,
            passphrase_env=texts.get("passphrase_env"),
            password_env=texts.get("password_env"),
        )


@dataclass(frozen=True)
class _UserConfig:
    """~/.ssh/config, for one device."""

    device: str
    config: paramiko.SSHConfig

    @classmethod
    def read(cls, device: str) -> _UserConfig:
        path = Path("~/.ssh/config").expanduser()
        try:
            return cls(device, paramiko.SSHConfig.from_text(_with_includes(path, _INCLUDES_MAX)))
        except (paramiko.SSHException, OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"{path} cannot be read: {error}", remedy="mend it; `ssh -G HOST` checks it") from error

    def hops(self, alias: str, wishes: _Wishes, *, jumps_left: int) -> tuple[Hop, ...]:
        """The hop of that name with those before it, as far as ~/.ssh/config knows of any."""
        said = self.config.lookup(alias)
        self._refuse_proxy_command(alias, said)
        hop = self._hop(alias, said, wishes)
        jump = _text(said, "proxyjump")
        if jump is None or jump.lower() == "none":
            return (hop,)
        if not jumps_left:
            raise _wrong(self.device, f"ProxyJump of {alias} goes round in a circle", "mend ProxyJump in ~/.ssh/config")
        before: tuple[Hop, ...] = ()
        for number, step in enumerate(part.strip() for part in jump.split(",")):
            inner = self.hops(*self._parse_jump(step), jumps_left=jumps_left - 1)
            # Only the first is reached by its own way; each other one from the one before it.
            before += inner if number == 0 else inner[-1:]
        return (*before, hop)

    def _parse_jump(self, step: str) -> tuple[str, _Wishes]:
        found = _JUMP.fullmatch(step)
        if not found:
            raise _wrong(self.device, f'ProxyJump "{step}" is no [user@]host[:port]', "mend ~/.ssh/config")
        port = int(found["port"]) if found["port"] else None
        return found["host"].strip("[]"), _Wishes(user=found["user"], port=port)

    def _refuse_proxy_command(self, alias: str, said: Mapping[str, object]) -> None:
        command = _text(said, "proxycommand")
        if command is not None and command.lower() != "none":
            raise _wrong(
                self.device,
                f"~/.ssh/config has a ProxyCommand for {alias}, which devbench does not run",
                "use ProxyJump, or give devbench the address behind it",
            )

    def _hop(self, alias: str, said: Mapping[str, object], wishes: _Wishes) -> Hop:
        host = _text(said, "hostname") or alias
        port = wishes.port or self._port(alias, _text(said, "port"))
        named = wishes.key is not None or "identityfile" in said
        configured = said.get("identityfile") or [f"~/.ssh/{name}" for name in _DEFAULT_KEYS]
        keys = ([wishes.key] if wishes.key else []) + [Path(str(path)).expanduser() for path in _listed(configured)]
        known_as = _text(said, "hostkeyalias") or (host if port == 22 else f"[{host}]:{port}")
        files = " ".join(str(part) for part in _listed(said.get("userknownhostsfile") or " ".join(_KNOWN_HOSTS)))
        return Hop(
            host=host,
            port=port,
            user=wishes.user or _text(said, "user") or getpass.getuser(),
            keys=tuple(dict.fromkeys(path for path in keys if path.is_file())),
            only_these_keys=named and (_text(said, "identitiesonly") or "no").lower() == "yes",
            known_hosts=tuple(Path(part).expanduser() for part in files.replace('"', "").split()),
            known_as=known_as.lower(),
            host_key=wishes.host_key,
            passphrase_env=wishes.passphrase_env,
            password_env=wishes.password_env,
        )

    def _port(self, alias: str, text: str | None) -> int:
        if text is None:
            return 22
        if not text.isdigit() or not 1 <= int(text) <= 65535:
            raise _wrong(self.device, f'~/.ssh/config has Port "{text}" for {alias}', "write a number from 1 to 65535")
        return int(text)


def _text(said: Mapping[str, object], key: str) -> str | None:
    value = said.get(key)
    return None if value is None else str(value).strip()


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else [value]


def _with_includes(path: Path, left: int) -> str:
    """The file's text, with what it includes in its place; nothing where there is no file."""
    if not path.is_file():
        return ""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        words = line.split()
        if not words or words[0].lower() != "include" or not left:
            lines.append(line)
            continue
        for pattern in words[1:]:
            named = Path(pattern).expanduser()
            rooted = named if named.is_absolute() else Path("~/.ssh").expanduser() / named
            for found in sorted(Path(rooted.anchor).glob(str(rooted.relative_to(rooted.anchor)))):
                lines.append(_with_includes(found, left - 1))
    return "\n".join(lines) + "\n"
