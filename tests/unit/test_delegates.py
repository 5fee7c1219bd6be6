"""The delegates: the table, the labels of cells, and the tables of a user's own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.delegates import BASES, BUILT_IN, Delegate, delegate_of, parts_of
from orchestrator.errors import SettingsError, error_text
from orchestrator.plan import Plan, plan_from_json, read_plan
from orchestrator.runners.benchmark_model_delegates import ROWS, Program
from orchestrator.runners.benchmark_model_flags import KNOWN, Fingerprint, unsupported


def plan(tmp_path: Path, content: str) -> Plan:
    path = tmp_path / "plan.toml"
    path.write_text(content)
    return read_plan(path)


class TestTable:
    def test_every_base_can_be_asked_for(self) -> None:
        """Of one program or the other."""
        assert {base for table in ROWS.values() for base in table} == set(BASES)
        assert {row.base for row in BUILT_IN.values()} == set(BASES)

    def test_vendors_delegates_are_external_ones(self) -> None:
        """With their places on boards that have them."""
        presets = [row for row in BUILT_IN.values() if row.name != row.base]
        assert [row.name for row in presets] == ["edgetpu", "vx", "ethosu", "qnn", "armnn"]
        assert all(
            row.base == "external" and all(path.startswith("/usr/lib/") for path in row.paths) for row in presets
        )

    def test_what_is_deprecated_says_so(self) -> None:
        """NNAPI and Hexagon."""
        assert [row.name for row in BUILT_IN.values() if row.deprecated] == ["nnapi", "hexagon"]

    @pytest.mark.parametrize("name", [name for name in BUILT_IN if name not in ("npu",)])
    def test_a_build_that_knows_all_flags_can_be_asked_for_all(self, name: str) -> None:
        """But for what only the other program has."""
        assert unsupported(Fingerprint(Program.INTERPRETER, KNOWN), BUILT_IN[name]) is None

    @pytest.mark.parametrize("base", BASES)
    def test_a_build_without_the_flag_is_known(self, base: str) -> None:
        """By the flag's name, so that the cell is skipped for it."""
        for program in Program:
            reason = unsupported(Fingerprint(program, frozenset({"graph"})), BUILT_IN[base])
            assert reason is not None
            assert "has no flag --" in reason or "cannot be asked for delegate" in reason


class TestLabels:
    def test_a_cache_is_part_of_it(self) -> None:
        """Cold and warm are cells of their own."""
        assert parts_of("gpu+warm") == ("gpu", "warm")
        assert delegate_of("gpu+cold").cache == "cold"
        assert delegate_of("gpu+cold").label == "gpu+cold"

    def test_content_names_a_users_delegate(self) -> None:
        """Another option, another file, another label; another place of the same file not."""
        mine = Delegate("mine", "external", is_own=True, library="/a/lib.so", files={"/a/lib.so": "ab" * 32})
        moved = replace(mine, library="/b/lib.so", files={"/b/lib.so": "ab" * 32}, copies={"/b/lib.so": "/store/x"})
        changed = replace(mine, options={"x": "1"})
        rebuilt = replace(mine, files={"/a/lib.so": "cd" * 32})
        assert mine.label == moved.label
        assert len({mine.label, changed.label, rebuilt.label}) == 3
        assert parts_of(replace(mine, cache="warm").label) == ("mine", "warm")

    @pytest.mark.parametrize("word", ["gpu+hot", "GPU", "", "a b", "gpu@x", "+warm"])
    def test_what_is_no_label_is_refused(self, word: str) -> None:
        """With how to write it."""
        with pytest.raises(ValueError, match="is no delegate: write"):
            parts_of(word)


OWN = '[[delegate]]\nname = "mine"\n'


class TestUsersOwn:
    def test_every_key(self, tmp_path: Path) -> None:
        """And the plan that is stored gives it back."""
        content = """
        [sweep]
        delegates = ["mine", "mine+warm", "quick-gpu", "cpu"]
        [[delegate]]
        name = "mine"
        base = "qnn"
        platforms = ["android"]
        library = "libQnnTFLiteDelegate.so"
        libraries = ["libQnnHtp.so"]
        options = { backend_type = "gpu", level = 3, fast = true }
        env = { QNN_LOG = "1" }
        flags = { max_delegated_partitions = "2" }
        evidence = ["QNN context created"]
        failures = ["QNN.*failed"]
        [[delegate]]
        name = "quick-gpu"
        base = "gpu"
        backend = "gl"
        precision = "fp32"
        """
        found = plan(tmp_path, content)
        mine = found.delegate("mine+warm")
        assert (mine.base, mine.cache, mine.is_own, mine.platforms) == ("external", "warm", True, ("android",))
        assert mine.option_text == "backend_type:gpu;level:3;fast:true"
        assert mine.env == {"ADSP_LIBRARY_PATH": "{folder}", "QNN_LOG": "1"}
        assert found.delegate("quick-gpu").settings == {"backend": "gl", "precision": "fp32"}
        assert plan_from_json(found.as_json()).own_delegates == found.own_delegates

    def test_options_may_be_one_text(self, tmp_path: Path) -> None:
        """Pairs with = between ;."""
        found = plan(tmp_path, f'{OWN}path = "/l.so"\noptions = "a=1; b=two"\n')
        assert found.delegate("mine").option_text == "a:1;b:two"

    @pytest.mark.parametrize(
        ("content", "fact", "remedy"),
        [
            (OWN, "library: is missing", "add library ="),
            (f'{OWN}path = "lib.so"\n', 'path: "lib.so" is not absolute', "name the library's place"),
            (f'{OWN}path = "/l.so"\nlibrary = "l.so"\n', "path: stands beside library", "keep one"),
            (
                f'{OWN}path = "/l.so"\noptions = {{ device = "usb:0" }}\n',
                "options: device = 'usb:0' would never",
                "use keys",
            ),
            (f'{OWN}path = "/l.so"\noptions = "fast"\n', 'options: "fast" is not key=value', "write options = {"),
            (f'{OWN}path = "/l.so"\noptions = 3\n', "options: 3 is not a table", "write options = {"),
            (f'{OWN}path = "/l.so"\nenv = {{ "A B" = "1" }}\n', 'env: "A B" is not a name', "mend the name"),
            (f'{OWN}path = "/l.so"\nenv = "A=1"\n', "env: 'A=1' is not a table of texts", "write env = {"),
            (f'{OWN}path = "/l.so"\nflags = {{ "--x" = "1" }}\n', 'flags: "--x" is not a flag', "mend the name"),
            (f'{OWN}path = "/l.so"\nevidence = ["("]\n', 'evidence: "(" is no pattern', "write a regular expression"),
            (f'{OWN}base = "gpu"\nbackend = "vulkan"\n', 'backend: "vulkan" is unknown', "the choices are: cl, gl"),
            (f'{OWN}base = "cpu"\nbackend = "cl"\n', "backend: is no setting of base cpu", "remove it"),
            (f'{OWN}base = "gpu"\nlibrary = "x.so"\n', "library: base gpu loads no single library", "use libraries"),
            (f'{OWN}base = "gpu"\noptions = {{ a = "1" }}\n', "options: base gpu takes none", "remove it"),
            (f'{OWN}base = "cpuu"\n', 'base: "cpuu" is unknown', 'did you mean "cpu"?'),
            (f'{OWN}path = "/l.so"\nplatforms = ["beos"]\n', 'platforms: "beos" is no platform', "the choices are"),
            (f'{OWN}path = "/l.so"\nlibary = "l.so"\n', "libary: is not a key here", 'did you mean "library"?'),
            ('[[delegate]]\nname = "Mine"\npath = "/l.so"\n', 'name: "Mine" is no name', "use small letters"),
            ('[[delegate]]\nname = "gpu"\n', 'name: "gpu" is built in', "give your delegate another name"),
            (f'{OWN}path = "/l.so"\n{OWN}path = "/l.so"\n', 'name: "mine" is defined twice', "give your delegate"),
        ],
    )
    def test_what_is_wrong_is_refused_in_these_words(
        self, tmp_path: Path, content: str, fact: str, remedy: str
    ) -> None:
        """Each names the table and the key, and what to do."""
        with pytest.raises(SettingsError) as caught:
            plan(tmp_path, content)
        text = error_text(caught.value)
        assert text.startswith(f"error: {tmp_path}/plan.toml: [[delegate]] ")
        assert fact in text
        assert f"try:   {remedy}" in text

    def test_a_sweep_may_name_only_what_there_is(self, tmp_path: Path) -> None:
        """The user's own among them."""
        with pytest.raises(SettingsError) as caught:
            plan(tmp_path, f'[sweep]\ndelegates = ["min"]\n{OWN}path = "/l.so"\n')
        assert '"min" is no delegate' in error_text(caught.value)
        assert "mine" in error_text(caught.value)


class TestRequired:
    @pytest.mark.parametrize(
        ("word", "share"), [("any", 0.0), ("full", 1.0), ("100%", 1.0), ("80%", 0.8), ("0.5", 0.5)]
    )
    def test_the_share_that_must_be_delegated(self, tmp_path: Path, word: str, share: float) -> None:
        """In words, or as a share."""
        assert plan(tmp_path, f'[conditions]\nrequire = "{word}"\n').conditions.delegated_share_min == share

    @pytest.mark.parametrize("word", ["most", "120%", "-1"])
    def test_what_is_no_share_is_refused(self, tmp_path: Path, word: str) -> None:
        """With how to write it."""
        with pytest.raises(SettingsError, match="is no share of the nodes"):
            plan(tmp_path, f'[conditions]\nrequire = "{word}"\n')
