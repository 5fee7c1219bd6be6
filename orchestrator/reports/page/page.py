"""The page as one HTML file: styles, scripts and data inside, and a policy that lets nothing else in or out."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from orchestrator.reports.page.evidence import Detail, trial_evidence
from orchestrator.reports.page.payload import Data, payload, trials_by_cell
from orchestrator.reports.run_content import RunContent

_ASSETS = Path(__file__).parent / "assets"
_CHUNK_BYTES = 300_000
"""Details of trials are packed together until they are so large: small enough to unpack at a click."""


def page(content: RunContent) -> str:
    """The whole file."""
    style, charts, script = ((_ASSETS / name).read_text("utf-8") for name in ("page.css", "charts.js", "page.js"))
    chunks, place_of = list[str](), dict[str, int]()
    for keys, text in _chunks(content):
        place_of |= dict.fromkeys(keys, len(chunks))
        chunks.append(packed(text))
    front = packed(json_text(payload(content) | {"chunks": place_of}))
    policy = (
        f"default-src 'none'; script-src {_source(charts)} {_source(script)}; style-src {_source(style)}; "
        "img-src data:; connect-src 'none'; base-uri 'none'; form-action 'none'"
    )
    title = html.escape(f"devbench · {content.record.id}")
    parts = [
        "<!doctype html>",
        '<html lang="en">',
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{title}</title>",
        f"<style>{style}</style>",
        "<body>",
        f'<div id="page"><h1>{title}</h1><noscript>{_without_script(content)}</noscript></div>',
        f'<script type="text/plain" id="payload">{front}</script>',
        *(f'<script type="text/plain" class="chunk">{chunk}</script>' for chunk in chunks),
        f"<script>{charts}</script>",
        f"<script>{script}</script>",
        "</body>",
        "</html>",
        "",
    ]
    return "\n".join(parts)


def _source(inline: str) -> str:
    """How a policy names an inline script or style: by its hash."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()}'"


def packed(text: str) -> str:
    """Compressed and in letters that mean nothing to a browser, so that no content can end the element it stands in."""
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def json_text(value: Any) -> str:
    """JSON in ASCII, lone surrogates escaped; null for what is no number, which JavaScript's parser would refuse."""
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), separators=(",", ":"), allow_nan=False)


def _finite(value: Any) -> Any:
    """The same with null for what is no number: imported trials may carry anything."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


def _chunks(content: RunContent) -> Iterator[tuple[list[str], str]]:
    """The details of trials, several cells at a time, as JSON; with the cells each chunk holds."""
    detail = Detail.of(len(content.trials))
    held: list[tuple[str, str]] = []
    for key, trials in trials_by_cell(content.trials).items():
        rows: list[Data] = [trial_evidence(trial, detail, content.folder) for trial in trials]
        held.append((key, f"{json_text(key)}:{json_text(rows)}"))
        if sum(len(text) for _, text in held) > _CHUNK_BYTES:
            yield _together(held)
            held = []
    if held:
        yield _together(held)


def _together(held: list[tuple[str, str]]) -> tuple[list[str], str]:
    return [key for key, _ in held], "{" + ",".join(text for _, text in held) + "}"


def _without_script(content: RunContent) -> str:
    """The answers, for a reader that runs no scripts."""
    lines = [f"{item.model} on {item.device}: {item.text}." for item in content.recommendations[:50]]
    listed = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    return f"<p>This page draws with scripts that it brings along; here are the answers without.</p><ul>{listed}</ul>"
