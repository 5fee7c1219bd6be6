"""Builds the programs for devices with the package: a wheel carries them, an editable install has them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class AgentBuildHook(BuildHookInterface):  # type: ignore[type-arg]  # generic in name only: hatchling itself omits it
    """Builds into ``device_agents/bin``; a wheel then includes the binaries, which git ignores."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it collects files; `version` is ``standard`` or ``editable``."""
        if self.target_name != "wheel":
            return
        builder = _build_agents_module(Path(self.root))
        try:
            built: dict[str, Path] = builder.build_all(Path(self.root) / "device_agents" / "bin")
        except builder.AgentBuildError as error:
            self.app.abort(str(error))
        if version == "editable":
            return
        for path in built.values():
            for file in (path, path.with_name(path.name + ".stamp")):
                build_data["force_include"][str(file)] = f"device_agents/bin/{file.name}"


def get_build_hook() -> type[BuildHookInterface]:  # type: ignore[type-arg]  # as above
    """The hook hatchling shall use; without this it would find the imported interface as well."""
    return AgentBuildHook


def _build_agents_module(root: Path) -> ModuleType:
    """`build_agents`, loaded by path: in an isolated build the package itself is not importable."""
    name = "devbench_build_agents"
    spec = importlib.util.spec_from_file_location(name, root / "device_agents" / "build_agents.py")
    assert spec is not None and spec.loader is not None, "build_agents.py lies beside this file"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
