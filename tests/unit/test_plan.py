"""plan.toml and the options that win over it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.errors import SettingsError, UsageError, error_text
from orchestrator.overrides import Overrides, apply_overrides
from orchestrator.plan import (
    Collect,
    Conditions,
    Measure,
    Plan,
    Sweep,
    parse_blocks,
    plan_from_json,
    read_plan,
)

FOLDER = Path("/lab")
LOAD_FORMS = "the forms are idle, cpu:N@P (N threads at P percent), mem:N, app, model:FILE"
DELEGATE_CHOICES = "cpu, xnnpack, gpu, nnapi, hexagon, coreml, external, stable, npu, edgetpu, vx, ethosu, qnn, armnn"


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that messages say `plan.toml`, whatever the folder."""
    monkeypatch.chdir(tmp_path)


def plan(content: str) -> Plan:
    path = Path("plan.toml")
    path.write_text(content, encoding="utf-8")
    return read_plan(path)


def refusal(content: str) -> str:
    """What a person reads when the file is refused."""
    with pytest.raises(SettingsError) as caught:
        plan(content)
    return error_text(caught.value)


class TestReading:
    def test_an_empty_plan_is_the_default_plan(self) -> None:
        """Every key may be left out."""
        assert plan("") == Plan(folder=Path())

    def test_every_key_is_read(self) -> None:
        """Nothing that the file says is lost."""
        content = """
        [sweep]
        models = ["a.tflite", "more/*.tflite"]
        runners = ["litert_runner", "litert_runner:zero-copy"]
        delegates = ["cpu", "xnnpack"]
        threads = [1, 2, 1024]
        affinity = ["any", "big", "0xF0"]
        loads = ["idle", "cpu:2@50", "model:b.tflite"]
        [measure]
        blocks = "10:20"
        precision = "5%"
        warmup_runs = 0
        warmup_min_ms = 1
        runs = 2
        min_ms = 3
        max_ms = 4
        settle_ms = 50
        sample_ms = 0
        trial_timeout = "1m30s"
        budget = "2h"
        seed = 0
        input_seed = 9
        inputs = "in.npz"
        [conditions]
        governor = "performance"
        load_placement = "same-group"
        load_tolerance_points = 5
        other_cpu_percent_max = 0
        canary = "off"
        canary_slack = "20%"
        cool_down_max = "5m"
        [collect]
        profile = true
        trace = true
        """
        assert plan(content) == Plan(
            sweep=Sweep(
                models=("a.tflite", "more/*.tflite"),
                runners=("litert_runner", "litert_runner:zero-copy"),
                delegates=("cpu", "xnnpack"),
                threads=(1, 2, 1024),
                affinity=("any", "big", "0xF0"),
                loads=("idle", "cpu:2@50", "model:b.tflite"),
            ),
            measure=Measure(10, 20, 0.05, 0, 1, 2, 3, 4, 50, 0, 90.0, 7200.0, 0, 9, "in.npz"),
            conditions=Conditions(
                "performance",
                load_placement="same-group",
                load_tolerance_points=5.0,
                other_cpu_percent_max=0.0,
                canary="off",
                canary_slack=0.2,
                cool_down_max_s=300.0,
            ),
            collect=Collect(profile=True, trace=True),
        )

    def test_traces_of_odd_cells_only(self) -> None:
        """With the tracers, the most that a trace may have, and what the cells are held against."""
        content = """
        [collect]
        trace = "anomaly"
        trace_with = ["perfetto", "perf"]
        trace_max_size = "1.5GB"
        baseline = "last"
        """
        assert plan(content).collect == Collect(
            trace="anomaly", trace_with=("perfetto", "perf"), trace_bytes_max=1_500_000_000, baseline="last"
        )
        assert plan("[collect]\ntrace = false\n").collect == Collect()

    def test_auto_leaves_threads_and_loads_to_the_device(self) -> None:
        """None means: what suits each device."""
        sweep = plan('[sweep]\nthreads = "auto"\nloads = "auto"\n').sweep
        assert (sweep.threads, sweep.loads) == (None, None)

    def test_relative_models_start_where_the_plan_is(self, tmp_path: Path) -> None:
        """A plan can be run from anywhere."""
        (tmp_path / "deep").mkdir()
        path = Path("deep/plan.toml")
        path.write_text("", encoding="utf-8")
        assert read_plan(path).folder == Path("deep")

    def test_a_plan_survives_the_store(self) -> None:
        """`--resume` goes on with the very same plan, tuples and Nones included."""
        whole = apply_overrides(
            plan('[sweep]\nmodels = ["a"]\nthreads = [1, 2]\n[measure]\nbudget = "2h"\nseed = 4\n'),
            Overrides(loads="idle,app", trace=True),
            FOLDER,
        )
        assert plan_from_json(json.loads(json.dumps(whole.as_json()))) == whole
        assert plan_from_json(json.loads(json.dumps(Plan().as_json()))) == Plan()

    @pytest.mark.parametrize(("text", "blocks"), [("8:18", (8, 18)), ("10", (10, 10)), (" 3 : 4 ", (3, 4))])
    def test_blocks_are_a_range_or_one_number(self, text: str, blocks: tuple[int, int]) -> None:
        """One number is both ends."""
        assert parse_blocks(text) == blocks

    def test_blocks_may_be_a_bare_number(self) -> None:
        """`blocks = 10` needs no quotes."""
        measure = plan("[measure]\nblocks = 10\n").measure
        assert (measure.blocks_min, measure.blocks_max) == (10, 10)


MESSAGES = {
    "unknown table": (
        "[swep]\n",
        "swep: is not a key here",
        'did you mean "sweep"? The choices are: collect, conditions, delegate, measure, reference, sweep',
    ),
    "unknown key": (
        "[measure]\nwarmup = 3\n",
        "[measure] warmup: is not a key here",
        'did you mean "warmup_runs"? The choices are: blocks, budget, input_seed, inputs, max_ms, min_ms, precision, '
        "runs, sample_ms, seed, settle_ms, sustain, trial_timeout, warmup_min_ms, warmup_runs",
    ),
    "key of another table": (
        "[sweep]\nblocks = 3\n",
        "[sweep] blocks: is not a key here",
        "the choices are: affinity, delegates, loads, models, runners, threads",
    ),
    "table as a value": ("sweep = 3\n", "sweep: 3 is not a table [sweep]", "write sweep as a table [sweep]"),
    "zero threads": ("[sweep]\nthreads = [0]\n", "[sweep] threads: 0 threads", "use 1 to 1024"),
    "too many threads": ("[sweep]\nthreads = [1025]\n", "[sweep] threads: 1025 threads", "use 1 to 1024"),
    "threads as a number": (
        "[sweep]\nthreads = 4\n",
        "[sweep] threads: 4 is not a list of whole numbers",
        'write threads = [1, 2, 4] or "auto"',
    ),
    "threads as a wrong word": (
        '[sweep]\nthreads = "all"\n',
        "[sweep] threads: 'all' is not a list of whole numbers",
        'write threads = [1, 2, 4] or "auto"',
    ),
    "a bool among threads": (
        "[sweep]\nthreads = [true]\n",
        "[sweep] threads: [True] is not a list of whole numbers",
        'write threads = [1, 2, 4] or "auto"',
    ),
    "a string among threads": (
        '[sweep]\nthreads = ["2"]\n',
        "[sweep] threads: ['2'] is not a list of whole numbers",
        'write threads = [1, 2, 4] or "auto"',
    ),
    "no delegates": (
        "[sweep]\ndelegates = []\n",
        "[sweep] delegates: is an empty list",
        "name at least one, or leave delegates out",
    ),
    "no loads": ("[sweep]\nloads = []\n", "[sweep] loads: is an empty list", "name at least one, or leave loads out"),
    "unknown delegate": (
        '[sweep]\ndelegates = ["xnpack"]\n',
        '[sweep] delegates: "xnpack" is no delegate',
        f'did you mean "xnnpack"? The choices are: {DELEGATE_CHOICES}',
    ),
    "bad load": ('[sweep]\nloads = ["cpu"]\n', '[sweep] loads: "cpu" is no load', LOAD_FORMS),
    "load out of range": (
        '[sweep]\nloads = ["cpu:2@500"]\n',
        '[sweep] loads: load "cpu:2@500" asks for 500 %',
        "use 1 to 100 percent of one CPU a thread",
    ),
    "bad affinity": (
        '[sweep]\naffinity = ["large"]\n',
        '[sweep] affinity: "large" is no affinity',
        "use any, big, mid, little or a hexadecimal CPU mask such as f0",
    ),
    "affinity to no CPU": (
        '[sweep]\naffinity = ["0x0"]\n',
        '[sweep] affinity: "0x0" is no affinity',
        "use any, big, mid, little or a hexadecimal CPU mask such as f0",
    ),
    "bad runner": (
        '[sweep]\nrunners = ["./run me"]\n',
        '[sweep] runners: "./run me" is no runner name',
        "write it like litert_runner or litert_runner:zero-copy",
    ),
    "blocks of the wrong type": (
        "[measure]\nblocks = [8, 18]\n",
        "[measure] blocks: [8, 18] is not a number of blocks",
        'write blocks = "8:18" or blocks = 10',
    ),
    "bad precision": (
        '[measure]\nprecision = "200%"\n',
        '[measure] precision: "200%" is no share between 0 and 100 %',
        "write it like 2%",
    ),
    "bad duration": (
        '[measure]\nbudget = "20"\n',
        '[measure] budget: "20" is no duration',
        "write it like 90s, 20m or 1h30m",
    ),
    "max below min": (
        "[measure]\nmin_ms = 500\nmax_ms = 400\n",
        "[measure] max_ms: 400 is below min_ms = 500",
        "raise max_ms",
    ),
    "zero runs": (
        "[measure]\nruns = 0\n",
        "[measure] runs: 0 is out of range",
        "use a whole number from 1 to 200000",
    ),
    "negative seed": (
        "[measure]\nseed = -1\n",
        "[measure] seed: -1 is out of range",
        "use a whole number from 0 to 9223372036854775807",
    ),
    "bad placement": (
        '[conditions]\nload_placement = "same"\n',
        '[conditions] load_placement: "same" is unknown',
        'did you mean "same-group"? The choices are: other-group, same-group',
    ),
    "tolerance zero": (
        "[conditions]\nload_tolerance_points = 0\n",
        "[conditions] load_tolerance_points: 0 is out of range",
        "use a number from 0.1 to 100",
    ),
    "trace neither": (
        '[collect]\ntrace = "some"\n',
        "[collect] trace: 'some' is neither true, false nor anomaly",
        'write trace = true or "anomaly"',
    ),
    "trace number": (
        "[collect]\ntrace = 2\n",
        "[collect] trace: 2 is neither true, false nor anomaly",
        'write trace = true or "anomaly"',
    ),
    "trace size": (
        '[collect]\ntrace_max_size = "5GB"\n',
        '[collect] trace_max_size: "5GB" is no size for a trace',
        "use 1MB to 4GB",
    ),
    "tracer": (
        '[collect]\ntrace_with = ["Perf etto"]\n',
        '[collect] trace_with: "Perf etto" is no name of a tracer',
        "write it like perfetto or perf",
    ),
    "baseline of every": (
        '[collect]\ntrace = true\nbaseline = "last"\n',
        "[collect] baseline: tells which cells are odd",
        'write trace = "anomaly" with it',
    ),
    "odd without latencies": (
        '[collect]\nlatency = false\ntrace = "anomaly"\n',
        "[collect] latency: is false, and only latencies show what is odd",
        "write trace = true",
    ),
    "profile no boolean": (
        '[collect]\nprofile = "yes"\n',
        "[collect] profile: 'yes' is not true or false",
        "write profile as true or false",
    ),
}


@pytest.mark.parametrize(("content", "fact", "remedy"), MESSAGES.values(), ids=MESSAGES)
def test_a_wrong_plan_is_refused_in_these_words(content: str, fact: str, remedy: str) -> None:
    """Each message names file, table and key, and what to do."""
    assert refusal(content) == f"error: plan.toml: {fact}\n  try:   {remedy}"


BLOCKS_REASON = "plan.py parse_blocks: its message begins with `blocks`, which key and option have said already"


@pytest.mark.parametrize("text", ["0", "18:8", "8:", "8:10001", "many"])
def test_bad_blocks_are_refused_and_named_once(text: str) -> None:
    """In the file and on the command line alike."""
    rest = f'"{text}" is no number of blocks\n  try:   write MIN:MAX or one number, at least 1 and at most 10000'
    assert refusal(f'[measure]\nblocks = "{text}"\n') == f"error: plan.toml: [measure] blocks: {rest}"
    with pytest.raises(UsageError) as caught:
        overridden(Overrides(blocks=text))
    assert error_text(caught.value) == f"error: --blocks: {rest}"


@pytest.mark.parametrize("text", ["0", "18:8", "8:", "8:10001", "many", "", "-1"])
def test_what_is_no_range_of_blocks_is_refused(text: str) -> None:
    """The accepted forms and the limits are part of the message."""
    with pytest.raises(ValueError, match="write MIN:MAX or one number, at least 1 and at most 10000"):
        parse_blocks(text)


def test_an_empty_list_of_threads_is_refused() -> None:
    """An empty list asks for nothing; it must not quietly mean everything that suits."""
    assert refusal("[sweep]\nthreads = []\n") == (
        "error: plan.toml: [sweep] threads: is an empty list\n  try:   name at least one, or leave threads out"
    )


def test_an_empty_list_of_models_is_refused() -> None:
    """Whoever empties the list does not expect the bundled models to be measured."""
    assert refusal("[sweep]\nmodels = []\n") == (
        "error: plan.toml: [sweep] models: is an empty list\n  try:   name at least one, or leave models out"
    )


FILE = Plan(
    sweep=Sweep(
        models=("file.tflite",),
        runners=("other",),
        delegates=("cpu",),
        threads=(8,),
        affinity=("big",),
        loads=("app",),
    ),
    measure=Measure(blocks_min=3, blocks_max=4, precision=0.1, budget_s=60.0, seed=5, runs=7),
    conditions=Conditions(governor="performance"),
    folder=Path("/plans"),
)


def overridden(said: Overrides) -> Plan:
    return apply_overrides(FILE, said, FOLDER)


class TestOverrides:
    def test_nothing_said_changes_nothing(self) -> None:
        """The file stands."""
        assert overridden(Overrides()) == FILE

    def test_every_option_wins_over_the_file(self) -> None:
        """And what has no option stays as the file has it."""
        said = Overrides(
            models=("a.tflite", "/abs/b.tflite"),
            runner="litert_runner:zero-copy",
            delegates="xnnpack, cpu",
            threads="1,2",
            affinity="any,f0",
            loads="idle,cpu:2@50",
            blocks="8:18",
            precision="1%",
            budget="20m",
            seed=0,
        )
        assert overridden(said) == Plan(
            sweep=Sweep(
                models=("/lab/a.tflite", "/abs/b.tflite"),
                runners=("litert_runner:zero-copy",),
                delegates=("xnnpack", "cpu"),
                threads=(1, 2),
                affinity=("any", "f0"),
                loads=("idle", "cpu:2@50"),
            ),
            measure=Measure(blocks_min=8, blocks_max=18, precision=0.01, budget_s=1200.0, seed=0, runs=7),
            conditions=Conditions(governor="performance"),
            folder=Path("/plans"),
        )

    def test_auto_on_the_command_line_wins_too(self) -> None:
        """Back from the file's lists to what suits each device."""
        sweep = overridden(Overrides(threads="auto", loads="auto")).sweep
        assert (sweep.threads, sweep.loads) == (None, None)

    def test_the_model_of_a_load_starts_at_the_command_lines_folder(self) -> None:
        """As every other path on the command line."""
        assert overridden(Overrides(loads="model:b.tflite,idle")).sweep.loads == ("model:/lab/b.tflite", "idle")

    def test_a_value_said_twice_counts_once(self) -> None:
        """The grid holds a cell once."""
        assert overridden(Overrides(threads="2,1,2")).sweep.threads == (2, 1)

    def test_commands_that_make_one_kind_of_pass_make_no_other(self) -> None:
        """Whatever else the plan collects, a baseline for odd cells included."""
        whole = Plan(collect=Collect(profile=True, trace="anomaly", baseline="last", trace_with=("perf",)))
        profile = apply_overrides(whole, Overrides(profile=True, only="profile"), FOLDER).collect
        trace = apply_overrides(whole, Overrides(trace=True, only="trace"), FOLDER).collect
        assert (profile.profile, profile.trace, profile.latency) == (True, False, False)
        assert (trace.profile, trace.trace, trace.latency, trace.baseline) == (False, True, False, None)
        assert trace.trace_with == ("perf",)

    def test_profile_and_trace_can_only_be_added(self) -> None:
        """A flag on the command line has no word for taking them away."""
        assert overridden(Overrides(profile=True)).collect == Collect(profile=True, trace=False)


OPTION_MESSAGES = {
    "threads zero": (Overrides(threads="1,0"), "--threads: 0 threads", "use 1 to 1024"),
    "threads no number": (Overrides(threads="1,two"), '--threads: "two" is no thread count', "write --threads 1,2,4"),
    "threads negative": (Overrides(threads="-1"), '--threads: "-1" is no thread count', "write --threads 1,2,4"),
    "threads nothing": (
        Overrides(threads=" , "),
        "--threads: nothing in the list",
        "give --threads at least one value",
    ),
    "delegate": (
        Overrides(delegates="gpuu"),
        '--delegate: "gpuu" is no delegate',
        f'did you mean "gpu"? The choices are: {DELEGATE_CHOICES}',
    ),
    "affinity": (
        Overrides(affinity="0"),
        '--affinity: "0" is no affinity',
        "use any, big, mid, little or a hexadecimal CPU mask such as f0",
    ),
    "load": (Overrides(loads="idle,busy"), '--load: "busy" is no load', LOAD_FORMS),
    "load threads": (Overrides(loads="mem:99"), '--load: load "mem:99" asks for 99 threads', "use 1 to 64"),
    "runner": (
        Overrides(runner="a b"),
        '--runner: "a b" is no runner name',
        "write it like litert_runner or litert_runner:zero-copy",
    ),
    "precision": (
        Overrides(precision="2"),
        '--precision: "2" is no share between 0 and 100 %',
        "write it like 2%",
    ),
    "budget": (Overrides(budget="soon"), '--budget: "soon" is no duration', "write it like 90s, 20m or 1h30m"),
}


@pytest.mark.parametrize(("said", "fact", "remedy"), OPTION_MESSAGES.values(), ids=OPTION_MESSAGES)
def test_a_wrong_option_is_refused_by_its_name(said: Overrides, fact: str, remedy: str) -> None:
    """The message names the option, not a key of a file the user never wrote."""
    with pytest.raises(UsageError) as caught:
        overridden(said)
    assert not isinstance(caught.value, SettingsError)
    assert error_text(caught.value) == f"error: {fact}\n  try:   {remedy}"


def test_a_digit_that_is_no_number_gets_the_same_words() -> None:
    """Superscripts come with text pasted from a document."""
    with pytest.raises(UsageError) as caught:
        overridden(Overrides(threads="²"))
    assert error_text(caught.value) == 'error: --threads: "²" is no thread count\n  try:   write --threads 1,2,4'


@pytest.mark.parametrize(
    "said", [Overrides(threads=""), Overrides(budget=""), Overrides(blocks=""), Overrides(loads="")]
)
def test_an_empty_option_is_not_the_same_as_none(said: Overrides) -> None:
    """`--budget "$BUDGET"` with the variable unset must not run without a budget."""
    with pytest.raises(UsageError):
        overridden(said)


@pytest.mark.parametrize("text", ["1s", "25h", "soon", ""])
def test_a_sustained_time_must_be_one(text: str, tmp_path: Path) -> None:
    """Two seconds to a day, in the file and on the command line."""
    path = tmp_path / "plan.toml"
    path.write_text(f'[measure]\nsustain = "{text}"\n', encoding="utf-8")
    with pytest.raises(SettingsError, match="sustain"):
        read_plan(path)
    with pytest.raises(UsageError, match="--sustain"):
        apply_overrides(Plan(), Overrides(sustain=text), tmp_path)


def test_a_sustained_plan_survives_the_store(tmp_path: Path) -> None:
    """Arms and sessions too: that is how a calibration is resumed."""
    plan = apply_overrides(Plan(), Overrides(sustain="10m"), tmp_path)
    assert plan.measure.sustain_s == 600
    measure = replace(plan.measure, arms=("a", "b"), sessions=3)
    stored = json.loads(json.dumps(replace(plan, measure=measure).as_json()))
    assert plan_from_json(stored).measure == measure
