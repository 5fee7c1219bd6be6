"""Commands about the runs that are kept: runs (list, tag, note, close, delete), prune."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli.options import (
    DEFAULT_STORE,
    JsonOption,
    StoreOption,
    let_readers_leave,
    opened_store,
    print_json,
)
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.store.removal import Swept

_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+-]{0,63}")
_TAKEN = re.compile(r"last|last-good|\d{4}-\d{2}(-\d{2}.*)?")
_LISTED = 20

LimitOption = Annotated[int, typer.Option("--limit", min=0, help="So many at most; 0 is all.")]
RunTagOption = Annotated[str | None, typer.Option("--tag", help="Only runs with this tag.")]
SinceOption = Annotated[str | None, typer.Option("--since", help="Only runs since: 30d, 12w, or 2026-11-18.")]
KindOption = Annotated[str | None, typer.Option("--kind", help="run, calibration, duel or imported.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
RunArgument = Annotated[str, typer.Argument(help="A run: its id or the start of it, `last`, a tag or a date.")]

runs_app = typer.Typer(help="The runs that are kept.", rich_markup_mode=None, invoke_without_command=True)


@runs_app.callback()
def runs(
    context: typer.Context,
    limit: LimitOption = _LISTED,
    tag: RunTagOption = None,
    since: SinceOption = None,
    kind: KindOption = None,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """List the runs that are kept, the newest first; tag, note, close or delete them."""
    if context.invoked_subcommand is None:
        list_runs(limit, tag, since, kind, store, as_json)
        return
    stated = [name for name in context.params if _is_stated(context, name)]
    if stated:
        raise UsageError(
            f"`devbench runs {context.invoked_subcommand}` takes its options behind its name",
            remedy=f"write devbench runs {context.invoked_subcommand} … --{stated[0].removeprefix('as_')} …",
        )


def _is_stated(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


@runs_app.command(name="list")
def list_runs(
    limit: LimitOption = _LISTED,
    tag: RunTagOption = None,
    since: SinceOption = None,
    kind: KindOption = None,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """The newest first: when, how long, what was measured, how it ended, and what was said of it."""
    from orchestrator.store.ledger import KINDS, Wanted, run_ids, run_lines

    let_readers_leave()
    if kind is not None and kind not in KINDS:
        from orchestrator.settings import suggestion

        raise UsageError(f'--kind: "{kind}" is unknown', remedy=suggestion(kind, KINDS))
    wanted = Wanted(limit=limit or None, tag=tag, since=since and moment_of(since, "--since"), kind=kind)
    with opened_store(store, create=False) as opened:
        lines, total = run_lines(opened, wanted), len(run_ids(opened))
    if as_json:
        print_json("devbench.runs", {"total": total, "runs": [line.as_json() for line in lines]})
        return
    from orchestrator.reports.runs_table import show_runs
    from orchestrator.reports.terminal import console_for

    show_runs(console_for(sys.stdout), lines, total)


def moment_of(text: str, option: str) -> str:
    """The time that `30d` ago was, or a date, as the store writes it."""
    from orchestrator.clock import SYSTEM, ago, seconds_of
    from orchestrator.retention import span_s

    if seconds_of(text) is not None:
        return text
    try:
        return ago(SYSTEM, span_s(text))
    except ValueError as error:
        raise UsageError(f'{option}: "{text}" is no time', remedy="write it like 30d, 12w or 2026-11-18") from error


@runs_app.command(name="tag")
def tag_run(
    run: RunArgument,
    tags: Annotated[list[str], typer.Argument(help="Words; `good` makes it a baseline, and a tag keeps it for good.")],
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Give a run tags: it can be named by them, and is never pruned. Several runs may carry one."""
    from orchestrator.store import Annals

    for tag in tags:
        check_tag(tag)
    with opened_store(store, create=False) as opened:
        found = opened.find_run(run)
        for tag in tags:
            Annals(opened).tag(found.id, tag)
    print(f"{found.id}: tagged {', '.join(tags)}")


@runs_app.command(name="untag")
def untag_run(
    run: RunArgument,
    tags: Annotated[list[str], typer.Argument(help="The tags to take away.")],
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Take tags from a run."""
    from orchestrator.store import Annals

    with opened_store(store, create=False) as opened:
        found = opened.find_run(run)
        annals = Annals(opened)
        carried = [tag for tag, ids in annals.tagged().items() if found.id in ids]
        for tag in tags:
            if tag not in carried:
                remedy = f"it carries: {', '.join(carried) or 'no tag'}"
                raise UsageError(f'run {found.id} does not carry the tag "{tag}"', remedy=remedy)
        for tag in tags:
            annals.untag(found.id, tag)
    print(f"{found.id}: no longer tagged {', '.join(tags)}")


def check_tag(tag: str) -> None:
    """Refuse what could not be told from a run or a date, or not be typed."""
    if not _TAG.fullmatch(tag):
        raise UsageError(
            f"{tag!r} can be no tag", remedy="use up to 64 letters, digits and . _ / + -, a letter or digit first"
        )
    if _TAKEN.fullmatch(tag):
        raise UsageError(f'"{tag}" can be no tag: it means something else', remedy="choose a word")


@runs_app.command(name="note")
def note_run(
    run: RunArgument,
    text: Annotated[str, typer.Argument(help="What to remember about it.")],
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Add a note to a run; a run with a note is never pruned."""
    from orchestrator.store import Annals

    if not text.strip() or "\x00" in text:
        raise UsageError("a note needs words", remedy='write them in quotes: devbench runs note last "fan was off"')
    with opened_store(store, create=False) as opened:
        found = opened.find_run(run)
        Annals(opened).note(found.id, text.strip())
    print(f"{found.id}: noted")


@runs_app.command(name="close")
def close_run(
    run: RunArgument,
    because: Annotated[str, typer.Option("--because", help="Why: mended, accepted, a fault of the lab.")] = "",
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Close the open regression of a run: it is mended or accepted, and nothing need be kept for it."""
    from orchestrator.housekeeping import close_regression

    with opened_store(store, create=False) as opened:
        found = opened.find_run(run)
        close_regression(opened, found.id, because)
    print(f"{found.id}: closed" + (f" ({because})" if because else ""))


@runs_app.command(name="delete")
def delete_runs(
    runs: Annotated[list[str], typer.Argument(help="Runs, each by its id, the start of it, a tag or a date.")],
    yes: YesOption = False,
    force: Annotated[bool, typer.Option("--force", help="Also what is tagged or an open regression needs.")] = False,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Delete runs with their trials and artifacts, and the models and runners that no other run needs."""
    from orchestrator.housekeeping import check_deletion, remove
    from orchestrator.reports.runs_table import weight_text
    from orchestrator.store.removal import weigh

    with opened_store(store, create=False) as opened:
        ids = list(dict.fromkeys(opened.find_run(run).id for run in runs))
        check_deletion(opened, ids, force=force)
        weight = weigh(opened, ids)
        for run_id in ids:
            print(run_id, file=sys.stderr)
        confirm(f"delete {weight_text(weight)}", yes=yes)
        swept = remove(opened, ids)
    if as_json:
        content = {"removed": ids, "weight": weight.as_json(), "swept": swept.as_json()}
        print_json("devbench.delete", content)
        return
    print(f"deleted {weight_text(weight)}")
    _say_swept(swept)


def confirm(question: str, *, yes: bool) -> None:
    """Ask on a terminal; elsewhere nobody answers, so that --yes is needed."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"this would {question}", remedy="say --yes to do it")
    print(f"{question}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UsageError("nothing was done", remedy="answer y, or say --yes")


def _say_swept(swept: Swept) -> None:
    from orchestrator.reports.runs_table import size_text

    if swept.is_alone:
        print(f"{size_text(swept.freed_bytes)} are free again")
    else:
        print("files stay as long as another devbench uses the store; the next prune removes them", file=sys.stderr)


def prune(
    keep: Annotated[str | None, typer.Option("--keep", help="Runs younger than this stay: 90d, 12w, 6m, 1y.")] = None,
    keep_last: Annotated[int | None, typer.Option("--keep-last", min=1, help="The newest so many runs stay.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go; touch nothing.")] = False,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Remove old runs, but nothing that a tag, a note, an open regression, a baseline or a calibration needs."""
    from orchestrator.clock import SYSTEM
    from orchestrator.housekeeping import plan_pruning, remove
    from orchestrator.reports.runs_table import show_pruning

    let_readers_leave()
    policy = retention_policy(keep, keep_last)
    with opened_store(store, create=False) as opened:
        pruning = plan_pruning(opened, policy, SYSTEM)
        swept = None if dry_run else remove(opened, pruning.decision.going)
    if as_json:
        content: dict[str, Any] = {"dry_run": dry_run, **pruning.as_json(), "swept": swept and swept.as_json()}
        print_json("devbench.prune", content)
        return
    show_pruning(pruning, is_done=not dry_run)
    if swept:
        _say_swept(swept)


def retention_policy(keep: str | None, keep_last: int | None) -> Any:
    from orchestrator.retention import Policy, span_s

    if keep is None and keep_last is None:
        raise UsageError("prune needs to know what to keep", remedy="say --keep 90d, or --keep-last 30, or both")
    try:
        return Policy(None if keep is None else span_s(keep), keep_last)
    except ValueError as error:
        problem, _, remedy = str(error).partition(": ")
        raise UsageError(f"--keep: {problem}", remedy=remedy) from error
