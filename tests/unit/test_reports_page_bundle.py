"""The scripts that are shipped: built from the sources beside them, with their licences, and for nobody's network."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "orchestrator" / "reports" / "page"
ASSETS, SCRIPT = PAGE / "assets", PAGE / "script"


@pytest.mark.skipif(shutil.which("npm") is None, reason="no node and npm here, and users need none")
def test_what_is_shipped_is_what_the_sources_give(tmp_path: Path) -> None:
    """`make page` was run after the last change of a source."""
    folder, built = tmp_path / "script", tmp_path / "built"
    shutil.copytree(SCRIPT, folder, ignore=shutil.ignore_patterns("node_modules"))
    fetch = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent", "--prefer-offline"]
    fetched = subprocess.run(fetch, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    if fetched.returncode:
        pytest.skip(f"the packages cannot be had from this registry: {fetched.stderr[-200:]}")
    subprocess.run(["node", "build.mjs", str(built)], cwd=folder, check=True, timeout=120)
    for path in built.iterdir():
        assert path.read_bytes() == (ASSETS / path.name).read_bytes(), (
            f"{path.name} is not what its sources give: make page"
        )


def test_the_lock_names_no_host() -> None:
    """Packages come from whichever registry npm is set up for, and their hashes are checked."""
    lock = json.loads((SCRIPT / "package-lock.json").read_text(encoding="utf-8"))
    packages = [package for name, package in lock["packages"].items() if name]
    assert all("resolved" not in package and package["integrity"].startswith("sha512-") for package in packages)


def test_the_scripts_know_no_address_and_make_no_markup() -> None:
    """Names of XML name spaces aside; our own sources build elements, never markup."""
    for name in ("charts.js", "page.js"):
        found = set(re.findall(r"https?://[^\"'`\s)]+", (ASSETS / name).read_text(encoding="utf-8")))
        assert {address for address in found if not address.startswith("http://www.w3.org/")} == set()
    for source in (SCRIPT / "src").rglob("*.js"):
        text = source.read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", text), (
            source.name
        )


def test_the_licences_are_beside_them() -> None:
    """Of every package that is in the bundle."""
    text = (ASSETS / "charts.LICENSE.txt").read_text(encoding="utf-8")
    for package in ("echarts 6.1.0: LICENSE", "echarts 6.1.0: NOTICE", "zrender", "tslib"):
        assert f"==== {package}" in text
    assert "Apache License" in text and "BSD 3-Clause" in text
