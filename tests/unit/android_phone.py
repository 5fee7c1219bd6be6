"""A simulated phone for unit tests: the scripts we send run in a real shell, with Android's commands as small stubs.

Its state is a folder of files. It can die at any moment: before the n-th command that changes something, in the middle
of a script, as when adbd kills what a lost host was running; or at a question, before or after it was obeyed.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from orchestrator.errors import DeviceLost
from orchestrator.platforms.base import Facts
from orchestrator.transports.base import Completed

NO_FACTS = Facts("aarch64", None, 1, (), "6.1", None, None, None, None, (), {})
"""For what needs none."""

_SHELL = shutil.which("mksh") or shutil.which("dash") or "/bin/sh"
_COMMANDS = ("sleep", "mv", "rm", "getprop", "setprop", "settings", "input", "am", "cmd", "dumpsys", "getenforce", "df")
_TOOLS = ("cat", "grep", "mkdir", "rmdir")

_STUB = r"""#!{sh}
S={state}
change() {{ # dies before it changes anything, when its time has come
  read -r left <$S/.left; [ "$left" = 1 ] && kill -9 0
  [ "$left" -gt 0 ] && echo $((left - 1)) >$S/.left
  echo "${{0##*/}} $*" >>$S/.changes
}}
val() {{ [ -f "$S/$1" ] && {cat} "$S/$1" || echo "$2"; }}
missing() {{ [ -f "$S/.missing_$1" ] && {{ echo "Can't find service: $1"; exit "$2"; }}; }}
name=${{0##*/}}
case $name in
sleep) ;;
mv) change "$@"; exec {mv} "$@" ;;
rm) change "$@"; exec {rm} "$@" ;;
getprop) if [ $# = 0 ]; then val dump.getprop ""; else val "prop.$1" ""; fi ;;
setprop) change "$@"; echo "$2" >"$S/prop.$1" ;;
settings) case $1 in
  get) val "$2.$3" null ;;
  put) change "$@"; [ -f "$S/.stuck_$3" ] || echo "$4" >"$S/$2.$3" ;;
  delete) change "$@"; {rm} -f "$S/$2.$3" ;; esac ;;
input) change "$@"; case $2 in 224) echo Awake >$S/wakefulness ;; 223) echo Asleep >$S/wakefulness ;; esac ;;
am) change "$@"; [ "$1" = kill-all ] || exit 1 ;;
cmd) missing $1 20; case "$1 $2" in
  "connectivity airplane-mode") change "$@"; [ -f $S/.stuck_airplane ] && {{ echo "Permission denied"; exit 1; }}
    case $3 in enable) echo 1 ;; *) echo 0 ;; esac >$S/global.airplane_mode_on ;;
  "power set-fixed-performance-mode-enabled") change "$@"
    [ -f $S/.no_power_hal ] && {{ echo "Failed to set FIXED_PERFORMANCE mode"; exit 255; }}
    echo $3 >$S/fixed ;; *) echo "Unknown command: $2"; exit 255 ;; esac ;;
dumpsys) missing $1 0; case "$1 $2" in
  "deviceidle enabled") val idle.$3 1 ;;
  "deviceidle enable") change "$@"; echo 1 >$S/idle.$3 ;;
  "deviceidle disable") change "$@"; echo 0 >$S/idle.$3 ;;
  "power ") echo "POWER MANAGER"; echo "  mWakefulness=$(val wakefulness)" ;;
  *) val "dump.$1" "Can't find service: $1" ;; esac ;;
su) [ "$1" = -c ] || exit 1; [ "$2" = id ] && {{ echo "uid=0(root)"; exit; }}; change "$@"; exec {sh} -c "$2" ;;
getenforce) echo Enforcing ;;
df) echo "Filesystem 1K-blocks Used Available Use% Mounted on"; echo "/dev/dm-1 1000000 1 999999 1% /data" ;;
esac
"""


class Phone:
    """The simulated phone. `ask` is what a platform is given."""

    def __init__(self, folder: Path, *, rooted: bool = True) -> None:
        self.folder = folder / "data"
        self.cpufreq = folder / "cpufreq"
        self._state, self._bin = folder / "state", folder / "bin"
        for path in (self.folder, self._state, self._bin):
            path.mkdir()
        for name in _TOOLS:
            (self._bin / name).symlink_to(shutil.which(name) or name)
        tools = {name: shlex.quote(shutil.which(name) or name) for name in ("cat", "mv", "rm")}
        stub = self._bin / ".stub"
        stub.write_text(_STUB.format(sh=_SHELL, state=shlex.quote(str(self._state)), **tools))
        stub.chmod(0o755)
        for name in [*_COMMANDS, *(["su"] if rooted else [])]:
            (self._bin / name).symlink_to(stub)
        (self._bin / "sh").symlink_to(_SHELL)
        for policy, governor in (("policy0", "schedutil"), ("policy4", "walt")):
            (self.cpufreq / policy).mkdir(parents=True)
            (self.cpufreq / policy / "scaling_governor").write_text(f"{governor}\n")
        self.set({"wakefulness": "Asleep", "global.stay_on_while_plugged_in": "0", "global.airplane_mode_on": "0"})
        self.set({"prop.debug.tflite.trace": "1", "idle.deep": "1", "idle.light": "1", "fixed": "false"})
        self.asked = 0
        self.scripts: list[str] = []
        self.stays_away = False
        """Whether a phone that is lost once is lost for good."""
        self.lost_for_good = False
        self.lose_before: int | None = None
        self.lose_after: int | None = None
        self.die_before_change(0)

    def set(self, values: dict[str, str]) -> None:
        for name, value in values.items():
            (self._state / name).write_text(f"{value}\n")

    def break_(self, fault: str) -> None:
        """`missing_SERVICE`, `stuck_KEY`, `no_power_hal`."""
        (self._state / f".{fault}").touch()

    def mend(self, fault: str) -> None:
        (self._state / f".{fault}").unlink()

    def die_before_change(self, number: int) -> None:
        """0 is never."""
        (self._state / ".left").write_text(f"{number}\n")

    @property
    def changes(self) -> list[str]:
        """Every command so far that changes something."""
        path = self._state / ".changes"
        return path.read_text().splitlines() if path.exists() else []

    def settings(self) -> dict[str, str]:
        """Everything that can be changed, by the names of the journal."""
        paths = {
            "tflite_trace": "prop.debug.tflite.trace",
            "airplane": "global.airplane_mode_on",
            "fixed_performance": "fixed",
            "stay_awake": "global.stay_on_while_plugged_in",
            "screen_timeout": "system.screen_off_timeout",
        }
        found = {name: self._value(path) for name, path in paths.items()}
        found["doze"] = f"{self._value('idle.deep')} {self._value('idle.light')}"
        found["screen"] = {"Awake": "on"}.get(self._value("wakefulness"), "off")
        policies = sorted(self.cpufreq.iterdir())
        governors = [f"{one.name}={(one / 'scaling_governor').read_text().strip()}" for one in policies]
        return found | {"governor": " ".join(governors)}

    def _value(self, name: str) -> str:
        path = self._state / name
        return path.read_text().strip() if path.exists() else "null"

    def journal(self) -> dict[str, str]:
        folder = self.folder / "journal"
        files = [path for path in folder.iterdir() if not path.name.startswith(".")] if folder.is_dir() else []
        return {path.name: path.read_text().strip() for path in files}

    def revive(self) -> None:
        """The link is back, and nothing else is about to happen."""
        self.stays_away = self.lost_for_good = False
        self.lose_before = self.lose_after = None
        self.die_before_change(0)

    def ask(self, argv: Sequence[str]) -> Completed:
        self.asked += 1
        self.scripts.append(argv[-1])
        if self.lost_for_good or self.asked == self.lose_before:
            self.lost_for_good = self.stays_away
            raise DeviceLost("the phone went away", remedy="plug it in")
        done = subprocess.run(
            [str(self._bin / argv[0]), *argv[1:]],
            env={"PATH": str(self._bin)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            start_new_session=True,  # a phone that dies takes the group along, not the tests
            check=False,
            timeout=60,
        )
        if done.returncode < 0 or self.asked == self.lose_after:
            self.lost_for_good = self.stays_away
            raise DeviceLost("the phone went away", remedy="plug it in")
        return Completed(done.returncode, done.stdout, done.stderr)
