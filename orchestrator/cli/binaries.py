"""The commands `devbench binaries`: add, fetch, list."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.options import JsonOption, print_json
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.binaries import Binary
    from orchestrator.litert_runtimes import Runtime

_FETCH_S = 900.0

binaries_app = typer.Typer(
    help="The builds of benchmark_model and the LiteRT runtimes on this host.",
    rich_markup_mode=None,
    no_args_is_help=True,
)

NameOption = Annotated[
    str | None, typer.Option("--name", help="What to call it, as in benchmark_model:NAME; from the file if not given.")
]


@binaries_app.command(name="add")
def add(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A build of benchmark_model (a program, or the benchmark app's APK), a libLiteRt.so, or its wheel.",
        ),
    ],
    name: NameOption = None,
) -> None:
    """Add a build: which program, which flags and which ABI are told from its bytes, without running it."""
    from orchestrator.binaries import Binaries
    from orchestrator.litert_runtimes import Runtimes, is_library
    from orchestrator.litert_wheels import add_wheel

    is_wheel = file.suffix == ".whl"
    if not is_wheel and not is_library(file):
        _say(Binaries().add(file, name))
        return
    _refuse_name(name)
    runtimes = Runtimes()
    _say_runtime(
        add_wheel(runtimes, file) if is_wheel else runtimes.add(file, version=None, source=str(file.resolve()))
    )


@binaries_app.command(name="fetch")
def fetch(
    version: Annotated[
        str,
        typer.Argument(
            metavar="VERSION",
            help="tf-nightly, tf-nightly-app, latest, nightly or such as 2.2.0; or runtime: LiteRT for litert_native.",
        ),
    ],
    platform: Annotated[str, typer.Argument(metavar="PLATFORM", help="Such as android-arm64 or linux-x86-64.")],
    name: NameOption = None,
) -> None:
    """Fetch a build that Google publishes, or the runtime. Its hash goes to devbench-binaries.lock and is checked."""
    from orchestrator.binaries import Binaries
    from orchestrator.clock import Deadline
    from orchestrator.litert_runtimes import Runtimes
    from orchestrator.litert_wheels import fetch_runtime
    from orchestrator.published_binaries import fetch as fetch_published
    from orchestrator.published_binaries import published

    if version == "runtime":
        _refuse_name(name)
        _say_runtime(fetch_runtime(Runtimes(), platform, Deadline.after(_FETCH_S)))
        return
    wanted = published(version, platform)
    print(f"fetching {wanted.url}", file=sys.stderr)
    _say(fetch_published(Binaries(), wanted, name=name, deadline=Deadline.after(_FETCH_S)))


@binaries_app.command(name="list")
def list_binaries(as_json: JsonOption = False) -> None:
    """List the builds, the newest first."""
    from orchestrator.binaries import Binaries
    from orchestrator.litert_runtimes import Runtimes

    binaries, runtimes = Binaries(), Runtimes()
    known, kept = binaries.all(), runtimes.all()
    if as_json:
        rows = [binary.as_json() | {"path": str(binaries.path(binary))} for binary in known]
        kept_rows = [runtime.as_json() | {"path": str(runtimes.path(runtime.machine))} for runtime in kept]
        print_json("devbench.binaries", {"folder": str(binaries.folder), "binaries": rows, "runtimes": kept_rows})
        return
    for runtime in kept:
        _say_runtime(runtime)
    if not known and not kept:
        print(f"none in {binaries.folder}; `devbench binaries add FILE` adds one", file=sys.stderr)
        return
    if not known:
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


def _refuse_name(name: str | None) -> None:
    if name is not None:
        raise UsageError("a runtime has no name: there is one for each kind of machine", remedy="leave --name out")


def _say_runtime(runtime: Runtime) -> None:
    release = f"ai-edge-litert {runtime.version}" if runtime.version else "of your own"
    print(f"litert_native runtime for {runtime.machine}  {release}")
    print(f"  {runtime.size} bytes, {runtime.sha256}, from {runtime.source}")
