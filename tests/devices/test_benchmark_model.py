"""The stand-in benchmark_model: the real one's output, and latencies that are known."""

from __future__ import annotations

import json
import os
import re
import shlex
import struct
import subprocess
from pathlib import Path

import pytest

import device_agents
from orchestrator.runners.benchmark_model_profile import read_profile
from orchestrator.runners.benchmark_model_protos import read_runtime

from .adb_server import AdbServer
from .fixtures import StartPhone
from .virtual_phone import FLAGSHIP, VirtualPhone

RECORDINGS = Path(__file__).parent.parent / "data" / "benchmark_model"
RECORDED = {case["case"]: case for case in json.loads((RECORDINGS / "index.json").read_text())}
# What the stand-in can do too; the other recordings are of models and delegates that it lacks.
CASES = {name: RECORDED[name] for name in (RECORDINGS / "imitated.txt").read_text().split()}
MODEL_BYTES = 229_714
TMP = "/data/local/tmp"

_MEASURED = re.compile(
    r"(?<=^INFO: )(?:count=|Initialized session|Inference timings|Memory footprint delta|Overall peak).*", re.MULTILINE
)
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]\d+)?")


def shape(text: str) -> str:
    """The text with measured numbers, and only those, replaced."""
    return _MEASURED.sub(
        lambda line: _NUMBER.sub("#", line.group().replace("p5=", "p_=").replace("p95=", "p__=")), text
    )


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A folder with the files that the recordings name."""
    (tmp_path / "models" / "bad").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    model = b"\x1c\0\0\0TFL3" + bytes(MODEL_BYTES - 8)
    (tmp_path / "models" / "face_detection_short_range.tflite").write_bytes(model)
    (tmp_path / "models" / "bad" / "text.tflite").write_text("not a model\n")
    return tmp_path


class TestShape:
    @pytest.mark.parametrize("name", CASES)
    def test_it_prints_what_the_real_one_prints(self, name: str, world: Path, benchmark_model: Path) -> None:
        """Both streams are byte for byte those of the recording but for the measured numbers; so is the exit code."""
        words = shlex.split(CASES[name]["command"])
        assert words[0] == "benchmark_model"
        environment = {**os.environ, "BM_TIME_SCALE": "0", "BM_SEED": "1"}
        done = subprocess.run(
            [benchmark_model, *words[1:]], cwd=world, env=environment, capture_output=True, text=True, check=False
        )
        assert shape(done.stdout) == shape((RECORDINGS / f"{name}.stdout").read_text())
        assert done.stderr == (RECORDINGS / f"{name}.stderr").read_text()
        assert done.returncode == int(CASES[name]["exit"])

    def test_the_result_file_has_the_same_fields(self, world: Path, benchmark_model: Path) -> None:
        """The proto has the recording's fields in its order; the latency is that of the text."""
        words = shlex.split(CASES["result_file"]["command"])[1:]
        environment = {**os.environ, "BM_TIME_SCALE": "0"}
        done = subprocess.run([benchmark_model, *words], cwd=world, env=environment, capture_output=True, check=True)
        made = (world / "out" / "result_file.result.pb").read_bytes()
        real = (RECORDINGS / "result_file.result.pb").read_bytes()
        keys = [number << 3 | 5 for number in range(1, 11)]
        assert [made[place] for place in range(2, 52, 5)] == [real[place] for place in range(2, 52, 5)] == keys
        assert made[52] == real[52] == 0x1A
        average_ms = struct.unpack_from("<f", made, 3)[0]
        assert f"Inference (avg): {average_ms * 1000:.2f}"[:-3] in done.stdout.decode()


class Bench:
    """Runs the stand-in on a phone."""

    def __init__(self, server: AdbServer, phone: VirtualPhone, program: Path, model: Path) -> None:
        self._server = server
        self._phone = phone
        for source, target in ((program, "benchmark_model"), (model, "model.tflite")):
            pushed = server.run("-s", phone.address, "push", str(source), f"{TMP}/{target}")
            assert pushed.returncode == 0, pushed.stderr

    def median_us(self, flags: str, *, mask: str = "ff", before: str | None = None) -> int:
        prefix = before or f"taskset {mask}"
        run = f"{prefix} {TMP}/benchmark_model --graph={TMP}/model.tflite --min_secs=0 --num_runs=200 {flags}"
        said = self._server.run("-s", self._phone.address, "shell", run).stdout.decode()
        return int(re.findall(r"median=(\d+)", said)[1])


@pytest.fixture
def quick(phone: StartPhone) -> VirtualPhone:
    """A phone on which simulated time takes a twentieth."""
    one = phone(FLAGSHIP)
    one.set_benchmark(time_scale=0.05, seed=7)
    return one


@pytest.fixture
def bench(adb_server: AdbServer, quick: VirtualPhone, benchmark_model: Path, world: Path) -> Bench:
    return Bench(adb_server, quick, benchmark_model, world / "models" / "face_detection_short_range.tflite")


WORK_US = 250 + 1.4 * MODEL_BYTES / 1024


def expected_us(*speeds: float) -> float:
    """The stated model for these cores."""
    return WORK_US * (0.12 / max(speeds) + 0.88 / sum(speeds))


class TestTruth:
    def test_threads_and_cores_are_as_stated(self, bench: Bench) -> None:
        """Latency follows the cores in the process's own mask and the number of threads."""
        little, mid, big = (cluster.capacity / 1024 for cluster in FLAGSHIP.clusters)
        assert bench.median_us("--num_threads=1") == pytest.approx(expected_us(big), rel=0.02)
        assert bench.median_us("--num_threads=1", mask="0f") == pytest.approx(expected_us(little), rel=0.02)
        assert bench.median_us("--num_threads=4") == pytest.approx(expected_us(big, mid, mid, mid), rel=0.02)

    def test_the_agents_mask_is_seen(self, adb_server: AdbServer, quick: VirtualPhone, bench: Bench) -> None:
        """Under the agent's --affinity the stand-in has the cores of that cluster."""
        binary = device_agents.agent_binary("x86_64")
        assert adb_server.run("-s", quick.address, "push", str(binary), f"{TMP}/agent").returncode == 0
        little = FLAGSHIP.clusters[0].capacity / 1024
        agent = f"{TMP}/agent run --detached --affinity 0f --"
        assert bench.median_us("--num_threads=1", before=agent) == pytest.approx(expected_us(little), rel=0.03)

    def test_delegates_are_as_stated(self, quick: VirtualPhone, bench: Bench) -> None:
        """Plain kernels are slower by 9.5; a build with providers has a GPU."""
        assert bench.median_us("--use_xnnpack=false") == pytest.approx(9.5 * WORK_US, rel=0.02)
        quick.set_benchmark(time_scale=0.05, seed=7, providers=1)
        assert bench.median_us("--use_gpu=true") == pytest.approx(0.45 * WORK_US, rel=0.02)

    def test_an_injected_slowdown_is_seen(self, quick: VirtualPhone, bench: Bench) -> None:
        """A slow-down of 7 percent is 7 percent."""
        quick.set_benchmark(time_scale=0.05, seed=7, slowdown=1.07)
        assert bench.median_us("--num_threads=1") == pytest.approx(1.07 * WORK_US, rel=0.01)

    def test_heat_and_load_slow_it_down(self, quick: VirtualPhone, bench: Bench) -> None:
        """A load of every core halves the speed; a lower clock limit shows in full."""
        quick.set_state("load", "100")
        assert bench.median_us("--num_threads=1") == pytest.approx(2 * WORK_US, rel=0.02)
        quick.set_state("load", "0")
        policy = quick.path("/sys/devices/system/cpu/cpufreq/policy7/scaling_max_freq")
        quick.set_load({})
        policy.chmod(0o644)
        policy.write_text(f"{FLAGSHIP.clusters[2].khz_max // 2}\n")
        assert bench.median_us("--num_threads=1", mask="80") == pytest.approx(2 * WORK_US, rel=0.02)

    def test_it_heats_the_phone(self, quick: VirtualPhone, bench: Bench) -> None:
        """While it runs, the cores it uses are busy in the eyes of the phone's body."""
        quick.set_benchmark(time_scale=1.0)
        before = quick.condition().die_c
        bench.median_us("--num_threads=4")
        assert quick.condition().die_c > before


PROFILED_CASES = {
    name: case["command"]
    for name, case in RECORDED.items()
    if re.fullmatch(r"prof_(stdout|csv|oldcsv).*_xnn_(true|false)|prof_mode_json_bad", name)
}
_FIGURE = re.compile(r" *\d+(?:\.\d+)?(?:e-\d+)?(?=[%,\t\n ]|$)")
_BLOCK = re.compile(r"^(?:INFO: )?(?:Profiling Info|Operator-wise).*", re.MULTILINE)


def table_shape(text: str) -> str:
    """A profile with its figures replaced; and without the order of what takes so little that figures decide it."""
    lines = [line for line in text.split("\n") if not line.startswith("Timings (microseconds): ")]
    return "\n".join(_FIGURE.sub("#", line) for line in lines)


def ordered_parts(text: str) -> list[list[str]]:
    """The tables of a profile, each as a set of rows: equal costs have no order."""
    return [sorted(part.split("\n")) for part in table_shape(text).split("=" * 30)]


class TestProfiles:
    @pytest.mark.parametrize("name", PROFILED_CASES)
    def test_it_prints_the_profile_that_the_real_one_prints(
        self, name: str, world: Path, benchmark_model: Path
    ) -> None:
        """On standard output and in files: every row, column and blank line, but for the figures."""
        words = shlex.split(PROFILED_CASES[name])[1:]
        environment = {**os.environ, "BM_TIME_SCALE": "0", "BM_SEED": "1"}
        done = subprocess.run([benchmark_model, *words], cwd=world, env=environment, capture_output=True, check=False)
        printed, real = done.stdout.decode(), (RECORDINGS / f"{name}.stdout").read_text()
        plain = [_BLOCK.split(text, maxsplit=1)[0] for text in (printed, real)]
        assert shape(plain[0]) == shape(plain[1])
        assert done.stderr.decode() == (RECORDINGS / f"{name}.stderr").read_text()
        tables = [text[len(start) :] for text, start in zip((printed, real), plain, strict=True)]
        assert _tables(ordered_parts(tables[0])) == _tables(ordered_parts(tables[1]))
        for file in RECORDINGS.glob(f"{name}.outfile.*"):
            made = (world / "out" / file.name).read_text()
            assert _tables(ordered_parts(made)) == _tables(ordered_parts(file.read_text()))

    def test_the_proto_has_the_same_operators(self, world: Path, benchmark_model: Path) -> None:
        """In their order, with their names, as the product's own reader sees them."""
        made = self._written("prof_proto_file_xnn_default", world, benchmark_model, "--op_profiling_output_mode=proto")
        real = (RECORDINGS / "prof_proto_file_xnn_default.outfile.pb").read_bytes()
        mine, other = (read_profile([], [], {"profile": content}) for content in (made, real))
        assert mine is not None and other is not None
        assert [(op.name, op.type) for op in mine.ops] == [(op.name, op.type) for op in other.ops]
        assert [op.name for op in mine.init] == [op.name for op in other.init]

    @pytest.mark.parametrize("name", ["runtime_info", "runtime_info_xnn_false"])
    def test_the_runtime_info_says_the_same(self, name: str, world: Path, benchmark_model: Path) -> None:
        """How many nodes there are, and which delegate took them."""
        made = self._written(name, world, benchmark_model)
        assert read_runtime(made) == read_runtime((RECORDINGS / f"{name}.outfile.pb").read_bytes())

    def _written(self, name: str, world: Path, benchmark_model: Path, *more: str) -> bytes:
        environment = {**os.environ, "BM_TIME_SCALE": "0", "BM_SEED": "1"}
        words = [word for word in shlex.split(RECORDED[name]["command"])[1:] if word not in more]
        subprocess.run([benchmark_model, *words, *more], cwd=world, env=environment, capture_output=True, check=True)
        return (world / "out" / f"{name}.outfile.pb").read_bytes()


def _tables(parts: list[list[str]]) -> list[list[str]]:
    """Without the table of the ten dearest, whose rows hang on figures; it has as many rows as the real one's."""
    return [
        [f"{len(part)} rows"] if any("Top by Computation Time" in line for line in parts[place - 1]) else part
        for place, part in enumerate(parts)
    ]
