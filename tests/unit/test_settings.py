"""The strict reader of the TOML files that users write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.errors import SettingsError, error_text
from orchestrator.settings import Table, duration_s, fraction, nearest, read_toml, size_bytes, suggestion


def table(content: str, folder: Path) -> Table:
    """The root table of a file with this content, called x.toml in messages."""
    path = folder / "x.toml"
    path.write_text(content, encoding="utf-8")
    found = read_toml(path)
    found.path = Path("x.toml")
    return found


def message(act: Callable[[], object]) -> str:
    """What a person reads when the act is refused."""
    with pytest.raises(SettingsError) as caught:
        act()
    return error_text(caught.value)


class TestReadingTheFile:
    def test_a_missing_file_says_how_to_get_one(self, tmp_path: Path) -> None:
        """`devbench init` is the way out of having no file."""
        path = tmp_path / "devices.toml"
        assert message(lambda: read_toml(path)) == (
            f"error: {path}: no such file\n  try:   `devbench init` writes a devices.toml and a plan.toml to start from"
        )

    def test_ill_formed_toml_names_the_line(self, tmp_path: Path) -> None:
        """The parser's own words, which carry line and column."""
        path = tmp_path / "plan.toml"
        path.write_text('[sweep]\nthreads = [1, 2\nloads = "auto"\n', encoding="utf-8")
        assert message(lambda: read_toml(path)) == (
            f"error: {path}: not TOML: Unclosed array (at line 3, column 1)\n  try:   mend the line named above"
        )

    def test_a_key_given_twice_is_ill_formed(self, tmp_path: Path) -> None:
        """TOML forbids it; no value silently wins."""
        path = tmp_path / "plan.toml"
        path.write_text("a = 1\na = 2\n", encoding="utf-8")
        assert "not TOML: Cannot overwrite a value (at line 2, column 6)" in message(lambda: read_toml(path))

    def test_bytes_that_are_not_utf8_are_placed(self, tmp_path: Path) -> None:
        """The first bad byte is named."""
        path = tmp_path / "plan.toml"
        path.write_bytes(b'name = "caf\xe9"\n')
        assert message(lambda: read_toml(path)) == (
            f"error: {path}: not UTF-8 text (byte 11)\n  try:   save the file as UTF-8; TOML allows nothing else"
        )

    def test_a_folder_is_refused_with_the_systems_reason(self, tmp_path: Path) -> None:
        """Whatever the system says about the path is passed on."""
        with pytest.raises(SettingsError, match="Is a directory"):
            read_toml(tmp_path)

    def test_an_empty_file_is_an_empty_table(self, tmp_path: Path) -> None:
        """Whether something is required is the caller's question."""
        table("", tmp_path).finish()


WRONG_TYPES = {
    "a bool for a number": ("a = true", lambda t: t.optional_number("a", 0, 9), "True is not a number", "a number"),
    "a bool for a whole number": (
        "a = true", lambda t: t.optional_integer("a", 0, 9), "True is not a whole number", "a whole number",
    ),
    "a string for a whole number": (
        'a = "4"', lambda t: t.optional_integer("a", 0, 9), "'4' is not a whole number", "a whole number",
    ),
    "a fraction for a whole number": (
        "a = 4.0", lambda t: t.optional_integer("a", 0, 9), "4.0 is not a whole number", "a whole number",
    ),
    "a string for a number": ('a = "4"', lambda t: t.optional_number("a", 0, 9), "'4' is not a number", "a number"),
    "a number for a string": ("a = 4", lambda t: t.text("a"), "4 is not a string", "a string"),
    "a number for a boolean": ("a = 1", lambda t: t.boolean("a", False), "1 is not true or false", "true or false"),
    "a string for a list": (
        'a = "x"', lambda t: t.texts("a"), "'x' is not a list of strings", "a list of strings",
    ),
    "a number for a table": ("a = 1", lambda t: t.table("a"), "1 is not a table [a]", "a table [a]"),
    "a number for tables": (
        "a = 1", lambda t: t.tables("a"), "1 is not a list of tables [[a]]", "a list of tables [[a]]",
    ),
}  # fmt: skip


class TestTypes:
    @pytest.mark.parametrize(("content", "ask", "problem", "kind"), WRONG_TYPES.values(), ids=WRONG_TYPES)
    def test_a_value_of_the_wrong_type_is_refused(
        self, content: str, ask: Callable[[Table], object], problem: str, kind: str, tmp_path: Path
    ) -> None:
        """The message shows the value and names the type; nothing is converted silently."""
        read = table(content, tmp_path)
        assert message(lambda: ask(read)) == f"error: x.toml: a: {problem}\n  try:   write a as {kind}"

    def test_a_list_with_something_else_in_it_is_refused(self, tmp_path: Path) -> None:
        """One bad item spoils the list."""
        read = table('a = ["x", 1]', tmp_path)
        assert message(lambda: read.texts("a")) == (
            'error: x.toml: a: [\'x\', 1] is not a list of strings\n  try:   write a = ["…", "…"]'
        )

    def test_an_empty_string_in_a_list_is_refused(self, tmp_path: Path) -> None:
        """An empty name names nothing."""
        with pytest.raises(SettingsError, match="is not a list of strings"):
            table('a = [""]', tmp_path).texts("a")

    def test_a_list_of_plain_values_is_no_list_of_tables(self, tmp_path: Path) -> None:
        """`device = ["x"]` is a frequent slip for [[device]]."""
        read = table('a = ["x"]', tmp_path)
        assert message(lambda: read.tables("a")) == (
            "error: x.toml: a: ['x'] is not a list of tables\n  try:   write each as [[a]]"
        )

    def test_an_empty_string_is_refused(self, tmp_path: Path) -> None:
        """Empty is neither a value nor absence."""
        read = table('a = ""', tmp_path)
        assert message(lambda: read.optional_text("a")) == (
            "error: x.toml: a: is empty\n  try:   give a a value or leave it out"
        )


class TestRanges:
    def test_a_number_out_of_range_names_the_range(self, tmp_path: Path) -> None:
        """Both ends are shown."""
        read = table("a = 151", tmp_path)
        assert message(lambda: read.optional_number("a", 0, 150)) == (
            "error: x.toml: a: 151 is out of range\n  try:   use a number from 0 to 150"
        )

    def test_a_whole_number_out_of_range_names_the_range(self, tmp_path: Path) -> None:
        """Both ends are shown."""
        read = table("a = 0", tmp_path)
        assert message(lambda: read.optional_integer("a", 1, 65535)) == (
            "error: x.toml: a: 0 is out of range\n  try:   use a whole number from 1 to 65535"
        )

    @pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
    def test_what_is_no_finite_number_is_out_of_range(self, value: str, tmp_path: Path) -> None:
        """TOML can spell these; no limit may be one."""
        with pytest.raises(SettingsError, match="out of range"):
            table(f"a = {value}", tmp_path).optional_number("a", 0, 100)

    @pytest.mark.parametrize("value", [0, 150])
    def test_both_ends_are_allowed(self, value: int, tmp_path: Path) -> None:
        """A range includes its ends."""
        assert table(f"a = {value}", tmp_path).number("a", 0, 150, 7.0) == float(value)

    def test_the_default_stands_in_for_an_absent_key(self, tmp_path: Path) -> None:
        """Absent is not zero."""
        read = table("", tmp_path)
        assert (read.number("a", 0, 9, 7.0), read.integer("b", 0, 9, 3), read.boolean("c", True)) == (7.0, 3, True)
        assert (read.optional_number("d", 0, 9), read.optional_integer("e", 0, 9), read.optional_text("f")) == (
            None,
            None,
            None,
        )


class TestKeys:
    def test_an_unknown_key_suggests_the_nearest(self, tmp_path: Path) -> None:
        """A slip of the finger is recognised, and all keys are listed."""
        read = table("warmup_run = 5", tmp_path)
        read.integer("warmup_runs", 0, 9, 1)
        read.integer("runs", 0, 9, 1)
        assert message(read.finish) == (
            "error: x.toml: warmup_run: is not a key here\n"
            '  try:   did you mean "warmup_runs"? The choices are: runs, warmup_runs'
        )

    def test_an_unknown_key_unlike_any_other_lists_the_keys(self, tmp_path: Path) -> None:
        """No far-fetched guess."""
        read = table("zzz = 5", tmp_path)
        read.integer("runs", 0, 9, 1)
        assert message(read.finish) == "error: x.toml: zzz: is not a key here\n  try:   the choices are: runs"

    def test_a_missing_key_says_where_to_add_it(self, tmp_path: Path) -> None:
        """The table is named as it stands in the file."""
        read = table("[a]\n", tmp_path)
        assert message(lambda: read.table("a").text("name")) == (
            "error: x.toml: [a] name: is missing\n  try:   add name = … to [a]"
        )
        assert message(lambda: read.text("top")) == (
            "error: x.toml: top: is missing\n  try:   add top = … to the top of the file"
        )

    def test_a_wrong_choice_suggests_the_nearest(self, tmp_path: Path) -> None:
        """The choices are listed beside the guess."""
        read = table('a = "locla"', tmp_path)
        assert message(lambda: read.choice("a", ("adb", "local"))) == (
            'error: x.toml: a: "locla" is unknown\n  try:   did you mean "local"? The choices are: adb, local'
        )

    def test_an_entry_of_a_list_of_tables_is_named_by_its_name_or_its_number(self, tmp_path: Path) -> None:
        """A fleet has many [[device]]; the message says which."""
        first, second = table('[[device]]\nname = "pixel8"\n[[device]]\n', tmp_path).tables("device")
        assert (first.name, second.name) == ('[[device]] "pixel8"', "[[device]] number 2")

    def test_a_table_inside_an_entry_keeps_the_name_of_the_entry(self, tmp_path: Path) -> None:
        """With twenty devices in a file, `[limits]` alone finds nothing."""
        (entry,) = table('[[device]]\nname = "pixel8"\nlimits = { hot = 1 }\n', tmp_path).tables("device")
        limits = entry.table("limits")
        assert message(limits.finish).startswith('error: x.toml: [[device]] "pixel8" limits hot: is not a key here')


class TestSuggestions:
    def test_nearest_finds_a_slip_and_nothing_far_away(self) -> None:
        """A guess is made only when it is likely right."""
        assert nearest("xnpack", ("cpu", "xnnpack")) == "xnnpack"
        assert nearest("quantum", ("cpu", "xnnpack")) is None

    def test_suggestion_of_nothing_near_lists_the_choices(self) -> None:
        """Never a dead end."""
        assert suggestion("quantum", ("cpu", "gpu")) == "the choices are: cpu, gpu"


class TestDurations:
    @pytest.mark.parametrize(
        ("text", "seconds"),
        [
            ("90s", 90),
            ("20m", 1200),
            ("20 min", 1200),
            ("1h30m", 5400),
            ("250ms", 0.25),
            ("1.5h", 5400),
            ("2d", 172800),
        ],
    )
    def test_durations_are_read_with_their_units(self, text: str, seconds: float) -> None:
        """Every documented form."""
        assert duration_s(text) == pytest.approx(seconds)

    @pytest.mark.parametrize("text", ["", " ", "90", "soon", "1h30", "-5s", "0s", "5 weeks", "s", "1h junk"])
    def test_anything_else_is_refused_with_the_forms(self, text: str) -> None:
        """A bare number has no unit, so nobody knows what it means."""
        with pytest.raises(ValueError, match="is no duration: write it like 90s, 20m or 1h30m"):
            duration_s(text)

    def test_the_table_puts_file_and_key_before_it(self, tmp_path: Path) -> None:
        """The forms become the remedy."""
        read = table('budget = "soon"', tmp_path)
        assert message(lambda: read.duration_s("budget")) == (
            'error: x.toml: budget: "soon" is no duration\n  try:   write it like 90s, 20m or 1h30m'
        )


class TestFractions:
    @pytest.mark.parametrize(("text", "share"), [("2%", 0.02), ("0.02", 0.02), (" 2.5 % ", 0.025), ("99.9%", 0.999)])
    def test_shares_are_read_as_percent_or_fraction(self, text: str, share: float) -> None:
        """Both ways people write it."""
        assert fraction(text) == pytest.approx(share)

    @pytest.mark.parametrize("text", ["0%", "100%", "1", "2", "-2%", "two", "", "2%%", "nan", "1e-3"])
    def test_anything_else_is_refused_with_the_form(self, text: str) -> None:
        """`2` is refused rather than read as 200 %."""
        with pytest.raises(ValueError, match="is no share between 0 and 100 %: write it like 2%"):
            fraction(text)


@pytest.mark.parametrize(
    ("text", "size"), [("64MB", 64_000_000), ("1.5 GB", 1_500_000_000), ("512KiB", 524_288), (" 2MiB ", 2_097_152)]
)
def test_sizes_are_read_with_their_units(text: str, size: int) -> None:
    """Thousands, or powers of two where that is said."""
    assert size_bytes(text) == size


@pytest.mark.parametrize("text", ["64", "MB", "64mb", "-1MB", "1TB", "", "1 MB 2"])
def test_a_size_without_a_unit_is_none(text: str) -> None:
    """It says how to write one."""
    with pytest.raises(ValueError, match="is no size: write it like 64MB"):
        size_bytes(text)
