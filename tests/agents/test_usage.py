"""What the agent says to somebody who mistypes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

HELP = " (devbench-agent help lists the options)\n"

MISTAKES = {
    "": "expected a command: run, load, sample, probe, hash, canary or version",
    "walk": "unknown command walk: expected run, load, sample, probe, hash, canary or version",
    "run": "run needs a command after --",
    "run --": "run needs a command after --",
    "run true": "unexpected word true: the measured command goes after --",
    "run --bogus 1 -- true": "unknown option --bogus",
    "run --sample-ms=5 -- true": "unknown option --sample-ms=5 (a value follows its option as a word of its own)",
    "run --seconds 1 -- true": "run has no option --seconds",
    "run --sample-ms -- true": "--sample-ms needs a value (N)",
    "run --sample-ms fast -- true": "--sample-ms fast: expected a whole number from 0 to 3600000",
    "run --deadline-s 1m -- true": "--deadline-s 1m: expected seconds, such as 30 or 0.5",
    "run --deadline-s 0 -- true": "--deadline-s must be more than 0",
    "run --affinity xyz -- true": "--affinity xyz: expected a hexadecimal CPU mask, such as f0",
    "run --affinity 0 -- true": "--affinity 0: expected a hexadecimal CPU mask, such as f0",
    "run --load cpu -- true": "load cpu: expected idle, cpu:N@P, mem:N, app or exec",
    "run --load cpu:2 -- true": "load cpu:2: expected cpu:THREADS@PERCENT, such as cpu:2@50",
    "run --load cpu:2@101 -- true": "load cpu:2@101: expected 1 to 100 percent",
    "run --load cpu:65@5 -- true": "load cpu:65@5: expected 1 to 64 threads",
    "run --load cpu:2@50% -- true": "load cpu:2@50%: unexpected text after the percentage",
    "run --load mem:0 -- true": "load mem:0: expected 1 to 64 threads",
    "run --load exec -- true": "an exec load needs its command: --load-argc K and -- argv...",
    "run --load exec --load-argc 2 -- true": "--load-argc 2, but only 1 words follow --",
    "run --load exec --load-argc 1 -- true": "run needs a command after --",
    "run --load-argc 1 -- a b": "--load-argc goes with --load exec only",
    "run --load-placement near -- true": "--load-placement near: expected same-group or other-group",
    "run --env NAME -- true": "--env NAME: expected a name, an equals sign and a value",
    "run --hold =1 -- true": "--hold =1: expected a name, an equals sign and a value",
    "run --detached --heartbeat-s 1 -- true": "--detached and --heartbeat-s contradict one another",
    "load --seconds 1": "load needs a SPEC, such as cpu:2@50",
    "load cpu:1@50": "load needs --seconds S",
    "load cpu:1@50 --seconds 1 -- true": "load runs no command",
    "sample cpu": "unexpected word cpu",
    "sample --sample-ms 0": "sample --sample-ms 0 would do nothing",
    "hash": "hash needs at least one FILE",
    "canary now": "canary: unexpected word now",
    "canary --affinity": "--affinity needs a mask in hexadecimal",
    "canary --affinity xyz": "--affinity needs a mask in hexadecimal",
    "probe now": "probe: unexpected word now",
}


@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_is_named(agent: Path, words: str) -> None:
    """A usage error exits 64, says what is wrong on standard error, and prints no protocol."""
    command = [str(agent), *words.split()]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.stderr == f"devbench-agent: {MISTAKES[words]}{HELP}"
    assert (done.returncode, done.stdout) == (64, "")


def test_version(agent: Path) -> None:
    """One line that names the program and its version."""
    done = subprocess.run([agent, "version"], capture_output=True, text=True, check=True)
    assert done.stdout == "devbench-agent 0.1.0\n"


def test_help_lists_every_option(agent: Path) -> None:
    """Help comes from the table that parses."""
    done = subprocess.run([agent, "help"], capture_output=True, text=True, check=True)
    for option in ("--load-placement", "--settle-ms", "--hold", "--heartbeat-s", "--detached"):
        assert option in done.stdout
