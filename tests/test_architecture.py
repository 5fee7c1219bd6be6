"""The structure of devbench, checked from data: who may import whom, one home per effect, sizes and names.

A rule that does not hold today is marked as an expected failure with its reason; a permanent exception is a waiver in
the tables below, with its reason beside it. A waiver that is no longer needed fails too.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("orchestrator", "android_harness", "ios_harness", "device_agents")
FOLDERS = {*PACKAGES, "tests"}
IGNORED_FOLDERS = {"build", "dist", "devbench-results"}
"""Made by tools and named in .gitignore."""

LINES_MAX = 400
FUNCTION_LINES_MAX = 60
BAD_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "base_classes", "shared"}

# Who may import whom. A module belongs to the layer of the longest name it starts with, and may import its own layer
# and those before it. `if TYPE_CHECKING:` is exempt: it draws no arrow when the program runs.

LAYERS: dict[str, tuple[str, ...]] = {
    "words": (
        "orchestrator",
        "orchestrator.errors",
        "orchestrator.clock",
        "orchestrator.delegate_tables",
        "orchestrator.delegates",
        "orchestrator.cell_pass",
        "orchestrator.op_profile",
        "orchestrator.trace",
        "orchestrator.overrides",
        "orchestrator.pinned",
        "orchestrator.settings",
        "orchestrator.fleet",
        "orchestrator.plan",
        "orchestrator.trial",
        "orchestrator.load",
        "orchestrator.model",
        "orchestrator.content_hash",
    ),
    "protocols": (
        "orchestrator.platforms",
        "orchestrator.platforms.base",
        "orchestrator.platforms.clusters",
        "orchestrator.platforms.questions",
        "orchestrator.platforms.tracing",
        "orchestrator.runners",
        "orchestrator.runners.base",
        "orchestrator.stage",
        "orchestrator.trace_files",
        "orchestrator.transports",
        "orchestrator.transports.base",
        "orchestrator.transports.posix_shell",
        "orchestrator.transports.remote_commands",
    ),
    "mind": (
        "orchestrator.agent_lines",
        "orchestrator.schedule",
        "orchestrator.grid",
        "orchestrator.tally",
        "orchestrator.cell_words",
        "orchestrator.then_and_now",
        "orchestrator.duel_tally",
        "orchestrator.telemetry",
        "orchestrator.timeline",
        "orchestrator.evidence",
        "orchestrator.evidence_conditions",
        "orchestrator.evidence_delegates",
        "orchestrator.evidence_terms",
        "orchestrator.retention",
        "orchestrator.analysis",
        "orchestrator.evidence_words",
        "orchestrator.runners.litert_lines",
        "orchestrator.runners.litert_native",
        "orchestrator.runners.litert_profile",
        "orchestrator.runners.litert_runner",
        "orchestrator.runners.benchmark_model",
        "orchestrator.runners.benchmark_model_apk",
        "orchestrator.runners.benchmark_model_delegates",
        "orchestrator.runners.benchmark_model_errors",
        "orchestrator.runners.benchmark_model_evidence",
        "orchestrator.runners.benchmark_model_files",
        "orchestrator.runners.benchmark_model_fingerprint",
        "orchestrator.runners.benchmark_model_flags",
        "orchestrator.runners.benchmark_model_output",
        "orchestrator.runners.benchmark_model_profile",
        "orchestrator.runners.benchmark_model_protos",
        "orchestrator.runners.mach_o",
        "orchestrator.platforms.board",
        "orchestrator.platforms.linux",
        "orchestrator.platforms.linux_tracing",
        "orchestrator.transports.ssh_shell",
    ),
    "hands": (
        "orchestrator.transports.local",
        "orchestrator.transports.ssh",
        "orchestrator.transports.ssh_connect",
        "orchestrator.transports.ssh_files",
        "orchestrator.transports.ssh_greeting",
        "orchestrator.transports.ssh_host_keys",
        "orchestrator.transports.ssh_link",
        "orchestrator.transports.ssh_login",
        "orchestrator.transports.ssh_process",
        "orchestrator.transports.ssh_pulse",
        "orchestrator.transports.ssh_route",
        "orchestrator.agent",
        "orchestrator.delegate_files",
        "orchestrator.deploy",
        "orchestrator.device_lock",
        "orchestrator.held_file",
        "orchestrator.night_lock",
        "orchestrator.device_storage",
        "orchestrator.recorder",
        "orchestrator.store",
        "orchestrator.model_files",
        "orchestrator.exchange",
        "orchestrator.bundle",
        "orchestrator.unbundle",
        "orchestrator.starter_files",
        "orchestrator.timeline_files",
        "orchestrator.trial_files",
        "orchestrator.registry",
        "orchestrator.binaries",
        "orchestrator.bisect_items",
        "orchestrator.bisect_log",
        "orchestrator.binary_lock",
        "orchestrator.litert_runtimes",
        "orchestrator.litert_wheels",
        "orchestrator.published_binaries",
        "orchestrator.whole_files",
        "orchestrator.bundled",
    ),
    "conduct": (
        "orchestrator.cool_down",
        "orchestrator.arrange",
        "orchestrator.conductor",
        "orchestrator.contest",
        "orchestrator.bisect_duels",
        "orchestrator.bisect_start",
        "orchestrator.bisection",
        "orchestrator.duel",
        "orchestrator.reproduce",
        "orchestrator.seeing",
        "orchestrator.kept_sides",
        "orchestrator.lineup",
        "orchestrator.campaign",
        "orchestrator.anomaly",
        "orchestrator.cell_passes",
        "orchestrator.collecting",
        "orchestrator.course",
        "orchestrator.observing",
        "orchestrator.prepare",
        "orchestrator.preview",
        "orchestrator.planning",
        "orchestrator.profile_pass",
        "orchestrator.trace_pass",
        "orchestrator.untraced",
        "orchestrator.noise_book",
        "orchestrator.housekeeping",
        "orchestrator.doctor",
        "orchestrator.gating",
        "orchestrator.confirming",
        "orchestrator.night",
    ),
    "reports": ("orchestrator.reports",),
    "cli": ("orchestrator.cli",),
}

VIOLATIONS: dict[tuple[str, str], str] = {}
"""Arrows that point the wrong way today. Each is an expected failure, not a permission."""

HARNESS_LAYERS = ("words", "protocols")
"""What android_harness and ios_harness may import of the orchestrator."""

HARNESS_ALLOWANCES: dict[str, dict[str, str]] = {
    "android_harness.benchmark_app": {
        "device_agents": "the driver's file, to be pushed",
        "orchestrator.binaries": "the cache in which its APK is found, as benchmark_model's builds are",
        "orchestrator.runners.benchmark_model": "the protocol of that cache",
        "orchestrator.runners.benchmark_model_delegates": "the app has the delegates of the tool",
        "orchestrator.runners.benchmark_model_flags": "the app takes the tool's own flags",
    },
    "android_harness.benchmark_app_output": {
        "orchestrator.runners.benchmark_model_output": "what the app logs is what the tool prints",
    },
}
"""What a harness's runner may import beyond that, and why."""

DEVICE_AGENTS_USERS = {
    "orchestrator.runners.litert_runner": "the runner's file, to be pushed",
    "orchestrator.runners.litert_native": "the runner's binary, to be pushed",
    "orchestrator.deploy": "the agent's binary, to be pushed",
    "orchestrator.doctor": "whether agents are built",
    "orchestrator.cli.devices": "`devbench agent`",
}
"""Who may know the files that run on a device."""


# One home per effect: which module may be imported, and which function called, only where.


@dataclass(frozen=True)
class Effect:
    """Imports of one kind, and the places they are allowed in (a module or a package)."""

    imports: tuple[str, ...]
    homes: tuple[str, ...]
    waivers: dict[str, str]


EFFECTS = {
    "SQL": Effect(("sqlalchemy", "sqlite3", "psycopg"), ("orchestrator.store",), {}),
    "time": Effect(
        ("time", "datetime"),
        ("orchestrator.clock",),
        {"device_agents.litert_runner": "runs on a device, where there is no orchestrator; it measures"},
    ),
    "processes": Effect(
        ("subprocess", "multiprocessing", "pty"),
        ("orchestrator.transports.local", "orchestrator.litert_wheels", "android_harness.adb_server"),
        {"device_agents.build_agents": "runs the compiler at build time"},
    ),
    "TOML": Effect(("tomllib", "tomli"), ("orchestrator.settings",), {}),
    "arguments": Effect(
        ("typer", "click", "argparse"),
        ("orchestrator.cli",),
        {"device_agents.litert_runner": "a program of its own on the device; only the standard library is there"},
    ),
    "terminal": Effect(("rich",), ("orchestrator.reports",), {}),
    "network": Effect(
        ("socket", "ssl", "http", "urllib", "requests", "paramiko"),
        ("orchestrator.published_binaries", "orchestrator.transports", "android_harness"),
        {},
    ),
    "pickles": Effect(("pickle", "marshal", "shelve"), (), {}),
}

PRINTERS = ("orchestrator.cli", "orchestrator.reports")
PRINT_WAIVERS = {
    "orchestrator.bundled.make_models": "a script of the maintainers; nothing imports it",
    "device_agents.build_agents": "a script of the build; prints what it made",
    "device_agents.litert_runner": "its standard output is the protocol",
}
PROCESS_CALLS = {"system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp", "execv", "execve", "execvp"}

LENGTH_WAIVERS = {
    "device_agents.litert_runner": "one self-contained file, because it is pushed to a device and run there",
}
TOO_LONG: dict[str, str] = {}
"""Modules past the limit today: expected failures."""

HEAVY = (
    "numpy",
    "sqlalchemy",
    "rich",
    "ai_edge_litert",
    "scipy",
    "tensorflow",
    "paramiko",
    "adbutils",
    "google.protobuf",
)


# Reading the source


@cache
def modules() -> dict[str, Path]:
    """Every module of the product by its dotted name."""
    found: dict[str, Path] = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(modules()[module].read_text(encoding="utf-8"))


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def nodes_at_run_time(module: str) -> Iterator[ast.AST]:
    """Every node that can run: what stands under `if TYPE_CHECKING:` is left out."""
    waiting: list[ast.AST] = [tree(module)]
    while waiting:
        node = waiting.pop()
        yield node
        children = node.orelse if isinstance(node, ast.If) and _is_type_checking(node) else ast.iter_child_nodes(node)
        waiting.extend(children)


def _absolute(module: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    is_package = modules()[module].name == "__init__.py"
    parts = module.split(".")
    base = parts[: len(parts) - node.level + is_package]
    return ".".join([*base, *([node.module] if node.module else [])])


@cache
def imports(module: str) -> frozenset[str]:
    """What the module imports at run time, functions included; our own modules by their full name."""
    found: set[str] = set()
    for node in nodes_at_run_time(module):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            source = _absolute(module, node)
            for alias in node.names:
                inner = f"{source}.{alias.name}"
                found.add(inner if inner in modules() else source)
    return frozenset(found)


def _is_within(module: str, place: str) -> bool:
    return module == place or module.startswith(f"{place}.")


def layer(module: str) -> str | None:
    """The layer of the longest name that the module is or lies in; `orchestrator` itself holds nothing but itself."""
    best, found = "", None
    for name, members in LAYERS.items():
        for member in members:
            is_home = module == member or (member not in PACKAGE_ROOTS and _is_within(module, member))
            if is_home and len(member) > len(best):
                best, found = member, name
    return found


PACKAGE_ROOTS = {"orchestrator", "orchestrator.platforms", "orchestrator.runners", "orchestrator.transports"}
"""Packages whose members are placed one by one, so that a new member must be given a layer."""

ORDER = list(LAYERS)


def wrong_arrows(module: str) -> set[str]:
    """What the module imports of a later layer."""
    own = ORDER.index(layer(module) or ORDER[-1])
    ours = {found for found in imports(module) if _is_within(found, "orchestrator")}
    return {found for found in ours if ORDER.index(layer(found) or ORDER[-1]) > own}


ORCHESTRATOR = [module for module in modules() if _is_within(module, "orchestrator")]


class TestLayers:
    @pytest.mark.parametrize("module", ORCHESTRATOR)
    def test_every_module_has_a_layer(self, module: str) -> None:
        """A new module is given its place in LAYERS before it is written."""
        assert layer(module) is not None

    def test_every_place_is_taken(self) -> None:
        """A name in LAYERS that no module has is a leftover."""
        assert [name for members in LAYERS.values() for name in members if name not in modules()] == []

    @pytest.mark.parametrize("module", ORCHESTRATOR)
    def test_imports_point_one_way(self, module: str) -> None:
        """words ← protocols ← mind ← hands ← conduct ← reports ← cli."""
        known = {target for source, target in VIOLATIONS if source == module}
        assert wrong_arrows(module) - known == set()

    @pytest.mark.parametrize(
        ("source", "target"),
        [
            pytest.param(*arrow, marks=pytest.mark.xfail(strict=True, reason=reason), id=" -> ".join(arrow))
            for arrow, reason in VIOLATIONS.items()
        ],
    )
    def test_known_wrong_arrows_are_gone(self, source: str, target: str) -> None:
        """When one is, it leaves the table."""
        assert target not in wrong_arrows(source)

    def test_no_module_imports_itself_by_a_detour(self) -> None:
        """Also within a layer there are no circles."""
        waiting = {module: imports(module) & modules().keys() - {module} for module in ORCHESTRATOR}
        while free := [module for module, needs in waiting.items() if not needs & waiting.keys()]:
            for module in free:
                del waiting[module]
        assert sorted(waiting) == []

    @pytest.mark.parametrize("module", [name for name in modules() if name.split(".")[0].endswith("_harness")])
    def test_a_harness_imports_words_and_protocols_only(self, module: str) -> None:
        """What is about one platform knows nothing of campaigns, stores or reports; nor of the other harness."""
        ours = {found for found in imports(module) if found.split(".")[0] in PACKAGES}
        own = module.split(".")[0]
        allowed = {found for found in ours if layer(found) in HARNESS_LAYERS or _is_within(found, own)}
        assert ours - allowed == set(HARNESS_ALLOWANCES.get(module, {}))

    @pytest.mark.parametrize("module", [name for name in modules() if _is_within(name, "device_agents")])
    def test_what_runs_on_a_device_imports_nothing_of_the_host(self, module: str) -> None:
        """It is pushed to where there is no orchestrator."""
        foreign = {found for found in imports(module) if found.split(".")[0] in set(PACKAGES) - {"device_agents"}}
        assert foreign == set()

    def test_only_these_know_the_files_that_run_on_a_device(self) -> None:
        """And each of them needs to."""
        users = {
            module for module in ORCHESTRATOR if any(_is_within(found, "device_agents") for found in imports(module))
        }
        assert users == set(DEVICE_AGENTS_USERS)

    @pytest.mark.parametrize("module", ORCHESTRATOR)
    def test_the_orchestrator_imports_no_harness(self, module: str) -> None:
        """It finds them by entry point, as it finds a third party's."""
        assert {found for found in imports(module) if found.split(".")[0].endswith("_harness")} == set()


class TestEffects:
    @pytest.mark.parametrize("effect", EFFECTS.values(), ids=EFFECTS)
    def test_an_effect_has_one_home(self, effect: Effect) -> None:
        """Nobody else imports what it takes; a waiver is needed as long as it stands."""
        users = {
            module
            for module in modules()
            if any(_is_within(found, name) for found in imports(module) for name in effect.imports)
        }
        at_home = {module for module in users if any(_is_within(module, home) for home in effect.homes)}
        assert users - at_home == set(effect.waivers)

    @pytest.mark.parametrize("module", sorted(modules()))
    def test_only_cli_and_reports_talk_to_the_user(self, module: str) -> None:
        """print() elsewhere would mix into results."""
        prints = any(
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("print", "input")
            for node in nodes_at_run_time(module)
        )
        may = any(_is_within(module, place) for place in PRINTERS) or module in PRINT_WAIVERS
        assert not prints or may

    @pytest.mark.parametrize("module", sorted(modules()))
    def test_no_process_is_started_past_subprocess(self, module: str) -> None:
        """os.system and its like take a shell string."""
        calls = {
            node.attr
            for node in nodes_at_run_time(module)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os"
        }
        assert calls & PROCESS_CALLS == set()

    @pytest.mark.parametrize("module", sorted(modules()))
    def test_no_command_goes_through_a_shell(self, module: str) -> None:
        """Commands are argument lists."""
        shells = [
            node.lineno
            for node in nodes_at_run_time(module)
            if isinstance(node, ast.Call)
            for keyword in node.keywords
            if keyword.arg == "shell" and not (isinstance(keyword.value, ast.Constant) and not keyword.value.value)
        ]
        assert shells == []

    def test_the_command_line_loads_nothing_heavy(self) -> None:
        """`devbench --help` answers at once: what is heavy is imported by the command that needs it."""
        code = f"import sys, orchestrator.cli; print(*[name for name in {HEAVY!r} if name in sys.modules])"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout.split() == []


def too_long() -> list[object]:
    return [
        pytest.param(module, marks=pytest.mark.xfail(strict=True, reason=TOO_LONG[module]))
        if module in TOO_LONG
        else module
        for module in sorted(modules())
        if module not in LENGTH_WAIVERS
    ]


class TestSizes:
    @pytest.mark.parametrize("module", too_long())
    def test_a_module_is_short_enough_to_read(self, module: str) -> None:
        """Past 400 lines it is two modules."""
        assert len(modules()[module].read_text(encoding="utf-8").splitlines()) <= LINES_MAX

    @pytest.mark.parametrize("module", sorted(LENGTH_WAIVERS))
    def test_a_waiver_of_length_is_needed(self, module: str) -> None:
        """Otherwise it goes."""
        assert len(modules()[module].read_text(encoding="utf-8").splitlines()) > LINES_MAX

    @pytest.mark.parametrize("module", sorted(modules()))
    def test_functions_are_short_enough_to_read(self, module: str) -> None:
        """Past 60 lines it is two functions."""
        long = {
            node.name: length
            for node in ast.walk(tree(module))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and (length := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES_MAX
        }
        assert long == {}


class TestNames:
    @pytest.mark.parametrize("module", sorted(modules()))
    def test_every_module_says_what_it_is_for(self, module: str) -> None:
        """Its first line is its single responsibility."""
        assert (ast.get_docstring(tree(module)) or "").strip()

    def test_no_module_is_a_drawer(self) -> None:
        """A module called utils has no responsibility."""
        assert [name for name in modules() if set(name.split(".")) & BAD_NAMES] == []

    def test_the_top_level_has_these_rooms_and_no_others(self) -> None:
        """One question finds the room; a new folder needs a new question."""
        found = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")}
        assert found - IGNORED_FOLDERS - {"__pycache__"} == FOLDERS

    @pytest.mark.parametrize("module", sorted(modules()))
    def test_a_waiver_carries_its_reason(self, module: str) -> None:
        """`# noqa` and `# type: ignore` name the rule, and why."""
        lines = modules()[module].read_text(encoding="utf-8").splitlines()
        bare = [
            number
            for number, line in enumerate(lines, 1)
            for mark in ("# noqa", "# type: ignore")
            if mark in line and len(line.partition(mark)[2].split()) < 4
        ]
        assert bare == []


class TestTheCheckItself:
    def test_imports_inside_functions_are_seen(self) -> None:
        """The command line imports late; that is still importing."""
        assert "orchestrator.campaign" in imports("orchestrator.cli.measure")

    def test_a_name_taken_from_a_package_is_its_module(self) -> None:
        """`from orchestrator import registry` is an import of registry."""
        assert "orchestrator.registry" in imports("orchestrator.conductor")

    def test_imports_for_types_only_are_exempt(self) -> None:
        """They draw no arrow when the program runs."""
        assert "orchestrator.store" not in imports("orchestrator.reports.terminal")
