"""A bisection as its log's first line has it, so that it can go on from nothing else."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.bisect_duels import Setting
from orchestrator.bisect_items import GivenFiles, MadeByCommand, Source, check_of
from orchestrator.clock import SYSTEM
from orchestrator.errors import UsageError
from orchestrator.kept_sides import side_from_json, side_json
from orchestrator.prepare import device_from_json, device_json
from orchestrator.store import Store


def default_log(store: Store) -> Path:
    """Beside the runs that it will speak of."""
    return store.folder / "bisections" / f"{SYSTEM.now():%Y-%m-%dT%H%M%SZ}-{secrets.token_hex(2)}.jsonl"


def begin_json(setting: Setting) -> dict[str, Any]:
    """Everything that does not change on the way."""
    return {
        "device": device_json(setting.device),
        "base": side_json(setting.base),
        "names": list(setting.names),
        "role": setting.role,
        "source": _source_json(setting.source),
        "blocks": list(setting.blocks),
        "threshold": setting.threshold,
        "metric": setting.metric,
        "budget_s": setting.budget_s,
        "seed": setting.seed,
    }


def setting_from_json(store: Store, content: Mapping[str, Any], *, budget_s: float | None) -> Setting:
    """What was begun; a budget that is said now takes the place of the old one."""
    base = side_from_json(store, content["base"])
    low, high = content["blocks"]
    return Setting(
        device=device_from_json(content["device"]),
        base=base,
        names=tuple(content["names"]),
        role=content["role"],
        source=_source(content["source"], content["role"], base.cell.runner),
        blocks=(low, high),
        threshold=content["threshold"],
        metric=content["metric"],
        budget_s=content["budget_s"] if budget_s is None else budget_s,
        seed=content["seed"],
    )


def _source_json(source: Source) -> dict[str, Any] | None:
    if not isinstance(source, MadeByCommand):
        return None
    return {
        "command": source.command,
        "produces": source.produces,
        "timeout_s": source.timeout_s,
        "folder": str(Path.cwd()),
    }


def _source(content: Mapping[str, Any] | None, role: str, runner: str) -> Source:
    if content is None:
        return GivenFiles()
    if content["folder"] != str(Path.cwd()):
        raise UsageError(
            f"the command was begun with in {content['folder']}, and would make something else here",
            remedy=f"cd {shlex.quote(content['folder'])}, and go on there",
        )
    return MadeByCommand(content["command"], content["produces"], content["timeout_s"], check_of(role, runner))
