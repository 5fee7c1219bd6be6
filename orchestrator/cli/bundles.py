"""Commands that carry runs to other people: bundle, unbundle."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.keeping import RunArgument, YesOption, confirm
from orchestrator.cli.options import DEFAULT_STORE, JsonOption, StoreOption, opened_store, print_json
from orchestrator.errors import UsageError

_ASKED_FROM = 1_000_000_000


def bundle(
    run: RunArgument = "last",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file; devbench-RUN.zip if none.")] = None,
    without: Annotated[list[str] | None, typer.Option("--without", help="Leave out logs or traces.")] = None,
    with_baseline: Annotated[
        bool, typer.Option("--with-baseline/--without-baseline", help="Add the run that the gate judged it against.")
    ] = True,
    anonymous: Annotated[
        bool, typer.Option("--anonymous", help="Without addresses, serial numbers and paths of this host.")
    ] = False,
    yes: YesOption = False,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Write one file with all that it takes to look at a run and to reproduce it elsewhere."""
    from orchestrator.bundle import gathered, write_bundle
    from orchestrator.reports.runs_table import size_text
    from orchestrator.store.rows import safe_name

    parts = _parts(without or [])
    with opened_store(store, create=False) as opened:
        record = opened.find_run(run)
        target = output or Path(f"devbench-{safe_name(record.id)}.zip")
        with gathered(opened, record, without=parts, anonymous=anonymous, with_baseline=with_baseline) as content:
            sizes = ", ".join(f"{name} {size_text(size)}" for name, size in content.sizes().items())
            print(f"{' and '.join(content.runs)}: {size_text(content.size)} ({sizes})", file=sys.stderr)
            for digest in content.lost:
                print(f"the store no longer has {digest[:12]}: it cannot be reproduced from this", file=sys.stderr)
            if content.size >= _ASKED_FROM:
                confirm(f"write {size_text(content.size)}, packed, to {target}", yes=yes)
            size = write_bundle(content, target)
    if as_json:
        found = {"file": str(target), "bytes": size, "runs": list(content.runs), "lost": list(content.lost)}
        print_json("devbench.bundled", found | {"sizes": content.sizes(), "members": len(content.members)})
    else:
        print(f"{target} ({size_text(size)})")


def _parts(words: list[str]) -> list[str]:
    from orchestrator.bundle import PARTS
    from orchestrator.settings import suggestion

    wanted = [part for word in words for part in word.split(",")]
    for part in wanted:
        if part not in PARTS:
            raise UsageError(f'--without: "{part}" cannot be left out', remedy=suggestion(part, PARTS))
    return wanted


def unbundle(
    file: Annotated[Path, typer.Argument(help="A file that `devbench bundle` wrote.")],
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Take the runs of a bundle into the store, every hash checked; what is there already stays as it is."""
    from orchestrator.unbundle import unbundle as taken

    with opened_store(store, create=True) as opened:
        found = taken(file, opened)
    if as_json:
        print_json("devbench.unbundled", found.as_json())
        return
    for run_id in found.added:
        print(f"{run_id}: added")
    for run_id in found.present:
        print(f"{run_id}: is here already")
    for digest in found.lost:
        print(f"{digest[:12]} was lost before it was bundled, so that nothing can be run with it", file=sys.stderr)
