"""What can go wrong between a Mac and an iPhone: how each failure is recognised, and what to do about it. Pure data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.errors import DeviceError, DeviceFull, DeviceLost, DeviceUnfit

_WORDS_MAX = 300
_DEPTH_MAX = 12


@dataclass(frozen=True)
class Failure:
    """One kind of failure. `marks` are regular expressions; any of them in the words of the tools is enough."""

    name: str
    marks: tuple[str, ...]
    fact: str
    remedy: str
    error: type[DeviceError] = DeviceUnfit

    def is_in(self, words: str) -> bool:
        return any(re.search(mark, words, re.IGNORECASE) for mark in self.marks)


FAILURES: tuple[Failure, ...] = (
    # The first that matches tells the story: a locked phone also fails to mount its developer disk image.
    Failure(
        "locked",
        (
            r"FBSOpenApplicationErrorDomain error 7\b",
            r"could not be, unlocked",
            r"DeviceLocked",
            r"\bdevice is locked\b",
            r"passcode.protected",
        ),
        "the phone is locked",
        "unlock it, set Auto-Lock to Never under Settings > Display & Brightness, then `devbench run --resume`",
    ),
    Failure(
        "keychain-locked",
        (
            r"errSecInternalComponent",
            r"errSecInteractionNotAllowed",
            r"User interaction is not allowed",
            r"\(?-25308\)?",
            r"keychain.{0,40}\blocked\b",
        ),
        "the Mac's keychain is locked for this ssh session, so nothing can be signed in it",
        "sign the app in a session on the Mac itself, or `security unlock-keychain` in the very session that signs; "
        "devbench only installs what is signed",
    ),
    Failure(
        "profile-expired",
        (r"0xe8008011", r"provisioning profile has expired", r"certificate.{0,40}\bexpired\b"),
        "the app's provisioning profile has expired (after 7 days on a free account)",
        "build and sign the app anew as ios_harness/benchmark_app/README.md says, and put it in its place on the Mac",
    ),
    Failure(
        "profile-not-for-this-phone",
        (
            r"0xe8008012",
            r"0xe8008015",
            r"valid provisioning profile for this executable was not found",
            r"cannot be installed on this device",
        ),
        "the app's provisioning profile does not cover this phone",
        "register the phone's udid with the team, then build and sign the app anew",
    ),
    Failure(
        "not-trusted",
        (
            r"FBSOpenApplicationErrorDomain error 3\b",
            r"has not been explicitly trusted",
            r"invalid code signature",
            r"ApplicationVerificationFailed",
            r"0xe80080(?:0|1)[0-9a-f]\b",
        ),
        "the phone does not trust the app's signature",
        "on the phone: Settings > General > VPN & Device Management, trust the developer; it needs the network once",
    ),
    Failure(
        "developer-mode-off",
        (r"Developer Mode is (?:disabled|not enabled|off)", r"Developer Mode Status: Disabled"),
        "Developer Mode is off on the phone",
        "on the phone: Settings > Privacy & Security > Developer Mode, switch it on and let the phone restart",
    ),
    Failure(
        "disk-image",
        (r"developer disk image", r"CoreDeviceError error 120\d\d\b"),
        "the Mac cannot mount its developer disk image on the phone",
        "switch Developer Mode on, unlock the phone, and open Xcode > Window > Devices once with the phone attached; "
        "a phone newer than the Xcode needs a newer Xcode",
    ),
    Failure(
        "not-paired",
        (
            r"must be paired",
            r"is not paired",
            r"\bunpaired\b",
            r"CoreDeviceError error 2\b",
            r"pairing.{0,30}\bdenied\b",
        ),
        "the Mac and the phone are not paired",
        "attach the phone by cable, unlock it and answer Trust; `xcrun devicectl manage pair` asks again",
    ),
    Failure(
        "no-devicectl",
        (
            r'unable to find utility "?devicectl',
            r"invalid active developer path",
            r"xcode-select: (?:error|note)",
            r"xcrun: (?:command )?not found",
            r"no (?:such )?(?:program|command).{0,20}xcrun",
        ),
        "the Mac has no devicectl: Xcode is missing, too old, or not chosen",
        "install Xcode 15 or newer, and `sudo xcode-select -s /Applications/Xcode.app/Contents/Developer`",
    ),
    Failure(
        "licence",
        (r"agreed? to the Xcode (?:and Apple SDKs )?license",),
        "the licence of Xcode has not been accepted on the Mac",
        "run `sudo xcodebuild -license accept` there",
    ),
    Failure(
        "no-room",
        (r"No space left", r"not enough (?:free )?(?:space|storage)", r"InsufficientStorage", r"disk is full"),
        "no space is left on the phone or the Mac",
        "free space there, then run again",
        DeviceFull,
    ),
    Failure(
        "app-missing",
        (
            r"FBSApplicationLibrary",
            r"(?:application|app|bundle).{0,80}\bis not installed",
            r"No such (?:app|application)\b",
            r"unknown application",
        ),
        "the benchmark app is not installed on the phone",
        "build it as ios_harness/benchmark_app/README.md says; devbench installs it from the Mac",
    ),
    Failure(
        "offline",
        (
            r"CoreDeviceError error (?:4|4000|3002|1011)\b",
            r"disconnected immediately",
            r"connection (?:was )?(?:interrupted|invalidated|lost)",
            r"\btunnel\b.{0,80}(?:fail|unavailable|timed out|disconnect|not be)",
            r"unable to locate a device",
            r"device (?:is )?(?:not connected|unavailable|offline)",
        ),
        "the phone is offline, or its tunnel to the Mac is down",
        "attach it by cable, wake and unlock it; if it stays so, restart phone and Mac",
        DeviceLost,
    ),
    Failure(
        "unknown-device",
        (r"CoreDeviceError error 1000\b", r"specified device was not found"),
        "the Mac knows no phone with this udid",
        "check udid in devices.toml against `xcrun devicectl list devices` on the Mac",
    ),
)


def recognised(words: str) -> Failure | None:
    """The failure that these words of `xcrun`, `devicectl` or the phone tell of."""
    return next((failure for failure in FAILURES if failure.is_in(words)), None)


def explained(device: str, step: str, words: str) -> DeviceError:
    """The error for a step that failed with these words."""
    failure = recognised(words)
    if failure:
        return failure.error(f"{device}: {failure.fact} ({step})", remedy=failure.remedy)
    return DeviceError(
        f"{device}: devicectl could not {step}: {last_words(words) or 'it said nothing'}",
        remedy="try the same by hand on the Mac; `xcrun devicectl --help` shows how",
    )


def last_words(words: str) -> str:
    """The line that says most: the last that begins with ERROR, or the last one."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    errors = [line for line in lines if line.upper().startswith("ERROR")]
    return (errors or lines or [""])[-1][:_WORDS_MAX]


def error_words(document: Mapping[str, Any]) -> str:
    """What devicectl's JSON says of an error, underlying errors included, in the words its text output uses."""
    return "\n".join(_chain(document.get("error"), _DEPTH_MAX))


def _chain(error: Any, left: int) -> Iterator[str]:
    if not isinstance(error, Mapping) or not left:
        return
    details = error.get("userInfo")
    details = details if isinstance(details, Mapping) else {}
    texts = [str(value["string"]) for value in details.values() if isinstance(value, Mapping) and "string" in value]
    yield f"ERROR: {' '.join(texts)} ({error.get('domain')} error {error.get('code')})"
    for value in details.values():
        if isinstance(value, Mapping):
            yield from _chain(value.get("error"), left - 1)


def no_libraries(names: Iterable[str]) -> DeviceUnfit:
    """What is raised where a delegate brings libraries: iOS loads none that is not signed with the app."""
    listed = ", ".join(names)
    return DeviceUnfit(f"no library can be put on an iPhone ({listed})", remedy="use a delegate that brings none")
