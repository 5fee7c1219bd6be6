"""Getting into a machine whose host key has been verified: keys, the ssh agent, a password from the environment."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import paramiko

from orchestrator.clock import Deadline
from orchestrator.errors import DeviceError, DeviceUnfit
from orchestrator.transports.ssh_route import Hop


@dataclass
class _Attempts:
    """What was tried, so that a refusal can say so."""

    tried: list[str] = field(default_factory=list)
    locked: list[Path] = field(default_factory=list)
    """Keys that are encrypted, and nobody said how to open them."""
    allowed: list[str] = field(default_factory=list)
    """The ways in which the server lets people in."""


def log_in(transport: paramiko.Transport, hop: Hop, deadline: Deadline) -> None:
    """Log in, the keys that were named first: a server counts failures. DeviceUnfit says what was tried."""
    attempts = _Attempts()
    transport.auth_timeout = deadline.left_s
    try:
        if _nothing_asked(transport, hop, attempts):
            return
        for name, key in _keys(hop, attempts):
            attempts.tried.append(name)
            if _succeeds(partial(transport.auth_publickey, hop.user, key), attempts):
                return
        if hop.password_env is not None:
            password = _from_environment(hop, "password_env", hop.password_env)
            attempts.tried.append(f"the password in {hop.password_env}")
            if _succeeds(partial(transport.auth_password, hop.user, password), attempts):
                return
    except paramiko.SSHException as error:
        if transport.is_active():
            raise
        raise _refused(hop, attempts, f"; then it closed the connection ({error})") from error
    raise _refused(hop, attempts, "")


def _nothing_asked(transport: paramiko.Transport, hop: Hop, attempts: _Attempts) -> bool:
    """A board that lets everybody in, as some do; and the way to learn how the others do."""
    return _succeeds(partial(transport.auth_none, hop.user), attempts)


def _succeeds(attempt: Callable[[], list[str]], attempts: _Attempts) -> bool:
    try:
        missing = attempt()
    except paramiko.BadAuthenticationType as error:
        attempts.allowed = list(error.allowed_types)
        return False
    except paramiko.AuthenticationException as error:
        if "timeout" in str(error).lower():
            raise
        return False
    if missing:  # it was right, and the server wants another proof beside it
        attempts.allowed = list(missing)
    return not missing


def _keys(hop: Hop, attempts: _Attempts) -> Iterator[tuple[str, paramiko.PKey]]:
    """The keys to try with a name for each: files as they are listed, each by the agent where it has it; then the
    agent's others."""
    agent = paramiko.Agent()
    try:
        held = {key.asbytes(): key for key in agent.get_keys()}
        for path in hop.keys:
            if public := _held_public(path, held):
                yield f"{path} (agent)", held.pop(public)
            elif key := _load(path, hop, attempts):
                yield str(path), key
        for key in () if hop.only_these_keys else held.values():
            yield f"the agent's {key.fingerprint}", key
    finally:
        agent.close()


def _held_public(path: Path, held: dict[bytes, paramiko.AgentKey]) -> bytes | None:
    """The public part of a key file, if the agent has that key."""
    try:
        words = path.with_name(f"{path.name}.pub").read_text(encoding="utf-8").split()
        public = paramiko.PKey.from_type_string(words[0], base64.b64decode(words[1])).asbytes()
    except (OSError, IndexError, ValueError, paramiko.SSHException):
        return None
    return public if public in held else None


def _load(path: Path, hop: Hop, attempts: _Attempts) -> paramiko.PKey | None:
    try:
        return _read(path, hop)
    except (paramiko.PasswordRequiredException, TypeError):  # the second by cryptography, which paramiko passes on
        attempts.locked.append(path)
    except (paramiko.SSHException, ValueError, OSError) as error:
        attempts.tried.append(f"{path} (cannot be read: {error})")
    return None


def _read(path: Path, hop: Hop) -> paramiko.PKey:
    """Most keys are not encrypted, whatever devices.toml says of another one."""
    try:
        return paramiko.PKey.from_path(path)
    except (paramiko.PasswordRequiredException, TypeError):
        if hop.passphrase_env is None:
            raise
    passphrase = _from_environment(hop, "passphrase_env", hop.passphrase_env).encode()
    return paramiko.PKey.from_path(path, passphrase)  # type: ignore[arg-type] # a str fails in cryptography


def _from_environment(hop: Hop, key: str, name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise DeviceUnfit(
            f"{hop.address}: {key} names the environment variable {name}, which is not set",
            remedy=f"export {name}, or use the ssh agent and remove {key}",
        )
    return value


def _refused(hop: Hop, attempts: _Attempts, ending: str) -> DeviceError:
    tried = ", ".join(attempts.tried) or "no key, because there is none"
    allowed = f"; it takes {', '.join(attempts.allowed)}" if attempts.allowed else ""
    fact = f"{hop.address} does not let {hop.user} in{allowed}; tried {tried}{ending}"
    if attempts.locked:
        listed = ", ".join(str(path) for path in attempts.locked)
        return DeviceUnfit(
            f"{fact}; {listed} is encrypted",
            remedy=f"`ssh-add {attempts.locked[0]}`, or set passphrase_env to the name of an environment variable",
        )
    copy = hop.command.removeprefix("ssh ")
    return DeviceUnfit(
        fact,
        remedy=f"let a key in with `ssh-copy-id {copy}`, set key and user in devices.toml, or load the key: `ssh-add`",
    )
