"""The commands `devbench binaries`: add, fetch, list."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.options import JsonOption, print_json

if TYPE_CHECKING:
    from orchestrator.binaries import Binary

_FETCH_S = 900.0

binaries_app = typer.Typer(
    help="The builds of benchmark_model on this host.", rich_markup_mode=None, no_args_is_help=True
)

NameOption = Annotated[
    str | None, typer.Option("--name", help="What to call it, as in benchmark_model:NAME; from the file if not given.")
]


@binaries_app.command(name="add")
def add(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A build of benchmark_model: a program, or the benchmark app's APK.")
    ],
    name: NameOption = None,
) -> None:
    """Add a build: which program, which flags and which ABI are told from its bytes, without running it."""
    from orchestrator.binaries import Binaries

    _say(Binaries().add(file, name))


@binaries_app.command(name="fetch")
def fetch(
    version: Annotated[
        str, typer.Argument(metavar="VERSION", help="tf-nightly, tf-nightly-app, latest, nightly or such as 2.2.0.")
    ],
    platform: Annotated[str, typer.Argument(metavar="PLATFORM", help="Such as android-arm64 or linux-x86-64.")],
    name: NameOption = None,
) -> None:
    """Fetch a build that Google publishes. Its hash goes to devbench-binaries.lock and is checked ever after."""
    from orchestrator.binaries import Binaries
    from orchestrator.clock import Deadline
    from orchestrator.published_binaries import fetch as fetch_published
    from orchestrator.published_binaries import published

    wanted = published(version, platform)
    print(f"fetching {wanted.url}", file=sys.stderr)
    _say(fetch_published(Binaries(), wanted, name=name, deadline=Deadline.after(_FETCH_S)))


@binaries_app.command(name="list")
def list_binaries(as_json: JsonOption = False) -> None:
    """List the builds, the newest first."""
    from orchestrator.binaries import Binaries

    binaries = Binaries()
    known = binaries.all()
    if as_json:
        rows = [binary.as_json() | {"path": str(binaries.path(binary))} for binary in known]
        print_json("devbench.binaries", {"folder": str(binaries.folder), "binaries": rows})
        return
    if not known:
        print(f"none in {binaries.folder}; `devbench binaries add FILE` adds one", file=sys.stderr)
        return
    rows_text: list[tuple[str, ...]] = [
        ("name", "program", "release", "system", "ABI", "bytes", "SHA-256", "added", "form")
    ]
    rows_text += [_row(binary) for binary in known]
    widths = [max(len(row[column]) for row in rows_text) for column in range(len(rows_text[0]))]
    for row in rows_text:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


def _row(binary: Binary) -> tuple[str, ...]:
    release, size = binary.fingerprint.release, str(binary.size)
    what = (binary.name, str(binary.program), release, binary.system, binary.abi)
    return (*what, size, binary.sha256[:12], binary.added_at, binary.form)


def _say(binary: Binary) -> None:
    print(f"{binary.runner}  {binary.program} {binary.form}, {binary.fingerprint.release}")
    print(f"  {binary.abi} ({binary.system}), {binary.size} bytes, {len(binary.flags)} flags known, {binary.sha256}")
