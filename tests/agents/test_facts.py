"""`probe`, `sample` and `hash`: facts about a device, absent where they are absent."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from pathlib import Path

import pytest

from tests.agents.agent_host import Record, run

CLUSTERS = {
    range(4): ("0xd05", 1800000, 250),
    range(4, 7): ("0xd41", 2400000, 760),
    range(7, 8): ("0xd44", 2900000, 1024),
}


def _write(root: Path, path: str, content: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)


@pytest.fixture
def phone(tmp_path: Path) -> Path:
    """The /proc and /sys of a phone with little, middle and big cores."""
    cpuinfo, stat = "", "cpu  9 9 9 9 9 9 9 9 0 0\n"
    cpu_dir = "sys/devices/system/cpu"
    for cluster, (cpus, (part, max_khz, capacity)) in enumerate(CLUSTERS.items()):
        for cpu in cpus:
            cpuinfo += f"processor\t: {cpu}\nCPU implementer\t: 0x41\nCPU variant\t: 0x1\nCPU part\t: {part}\n\n"
            if cpu != 6:  # offline
                stat += f"cpu{cpu} 10 1 5 100 2 1 1 0 0 0\n"
                _write(tmp_path, f"{cpu_dir}/cpu{cpu}/cpufreq/scaling_cur_freq", f"{max_khz // 2}\n")
            _write(tmp_path, f"{cpu_dir}/cpu{cpu}/cpufreq/cpuinfo_max_freq", f"{max_khz}\n")
            _write(tmp_path, f"{cpu_dir}/cpu{cpu}/cpufreq/cpuinfo_min_freq", "300000\n")
            _write(tmp_path, f"{cpu_dir}/cpu{cpu}/cpufreq/scaling_governor", "schedutil\n")
            _write(tmp_path, f"{cpu_dir}/cpu{cpu}/cpu_capacity", f"{capacity}\n")
            _write(tmp_path, f"{cpu_dir}/cpu{cpu}/topology/physical_package_id", "0\n")
            _write(tmp_path, f"{cpu_dir}/cpu{cpu}/topology/cluster_id", f"{cluster}\n")
            _write(tmp_path, f"{cpu_dir}/cpu{cpu}/topology/core_id", f"{cpu}\n")
    _write(tmp_path, f"{cpu_dir}/cpu0/cpufreq/scaling_available_governors", "powersave performance schedutil\n")
    for name, content in {"online": "0-5,7\n", "present": "0-7\n", "isolated": "\n"}.items():
        _write(tmp_path, f"{cpu_dir}/{name}", content)
    _write(tmp_path, "proc/cpuinfo", cpuinfo + "Hardware\t: Example SoC\n")
    _write(tmp_path, "proc/stat", stat + "intr 1 2 3\n")
    _write(tmp_path, "proc/meminfo", "MemTotal:  8000000 kB\nMemAvailable: 3000000 kB\nSwapTotal: 2000000 kB\n")
    for zone, (name, temperature) in {2: ("battery", "31000"), 10: ("cpu-big", "47500"), 0: ("modem", "")}.items():
        _write(tmp_path, f"sys/class/thermal/thermal_zone{zone}/type", name + "\n")
        _write(tmp_path, f"sys/class/thermal/thermal_zone{zone}/temp", temperature + "\n")
    supply = "sys/class/power_supply"
    for name, content in {"type": "Battery", "capacity": "80", "current_now": "-300000", "temp": "301"}.items():
        _write(tmp_path, f"{supply}/battery/{name}", content + "\n")
    _write(tmp_path, f"{supply}/usb/type", "USB\n")
    _write(tmp_path, "sys/firmware/devicetree/base/model", "Example Phone 8\0")
    _write(tmp_path, "sys/firmware/devicetree/base/compatible", "example,phone8\0example,soc\0")
    _write(tmp_path, "etc/os-release", 'NAME=Example\nPRETTY_NAME="Example OS 1 \\"beta\\""\n')
    return tmp_path


def _probe(agent: Path, root: Path | None = None) -> Record:
    environment = os.environ | ({"DEVBENCH_SYSROOT": str(root)} if root else {})
    done = subprocess.run([agent, "probe"], env=environment, capture_output=True, check=True)
    record: Record = json.loads(done.stdout)
    return record


def test_probe_describes_this_machine(agent: Path) -> None:
    """The facts agree with what Python knows of this machine, and its name is not among them."""
    facts = _probe(agent)
    assert facts["machine"] == platform.machine()
    assert facts["kernel_release"] == platform.release()
    assert facts["page_size"] == os.sysconf("SC_PAGESIZE")
    assert facts["uid"] == os.getuid()
    assert [cpu["id"] for cpu in facts["cpus"]] == list(range(os.cpu_count() or 0))
    assert facts["mem_total_kb"] == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE") // 1024
    assert not any("hostname" in key or "nodename" in key for key in facts)


def test_every_null_has_its_reason(agent: Path) -> None:
    """What this machine does not show is null, and `absent` says why."""
    facts = _probe(agent)
    missing = {key for key, value in facts.items() if value is None}
    missing |= {key for cpu in facts["cpus"] for key, value in cpu.items() if value is None}
    assert missing <= set(facts["absent"])


def test_probe_tells_big_cores_from_little_ones(agent: Path, phone: Path) -> None:
    """Clusters, parts, frequencies and capacities are told for every CPU that is online."""
    facts = _probe(agent, phone)
    assert [cpu["id"] for cpu in facts["cpus"]] == [0, 1, 2, 3, 4, 5, 7]
    for cpu in facts["cpus"]:
        cluster = next(number for number, cpus in enumerate(CLUSTERS) if cpu["id"] in cpus)
        part, max_khz, capacity = list(CLUSTERS.values())[cluster]
        assert (cpu["part"], cpu["max_khz"], cpu["capacity"]) == (part, max_khz, capacity)
        assert (cpu["cluster_id"], cpu["governor"], cpu["implementer"]) == (cluster, "schedutil", "0x41")


def test_probe_reads_the_rest_of_the_phone(agent: Path, phone: Path) -> None:
    """Model, memory, zones in number order and supplies; a sensor that shows nothing is null with an error."""
    facts = _probe(agent, phone)
    assert facts["cpu_model"] == "Example SoC"
    assert facts["device_tree_model"].rstrip("\0") == "Example Phone 8"
    assert facts["device_tree_compatible"] == ["example,phone8", "example,soc"]
    assert (facts["mem_total_kb"], facts["swap_total_kb"]) == (8000000, 2000000)
    assert facts["governors"] == ["powersave", "performance", "schedutil"]
    assert facts["thermal"] == [
        {"zone": 0, "name": "modem", "temp_mc": None, "error": "ENODATA"},
        {"zone": 2, "name": "battery", "temp_mc": 31000},
        {"zone": 10, "name": "cpu-big", "temp_mc": 47500},
    ]
    supplies = {supply["name"]: supply for supply in facts["power"]}
    assert supplies["battery"]["percent"] == 80 and supplies["usb"]["type"] == "USB"
    assert facts["absent"]["boost"] == "ENOENT" and facts["boost"] is None


def test_sample_shows_the_phone_and_leaves_out_what_it_lacks(agent: Path, phone: Path) -> None:
    """Arrays have one place per CPU, zone and battery of the header; an offline CPU and a mute sensor are null."""
    said = run([agent, "sample"], env=os.environ | {"DEVBENCH_SYSROOT": str(phone)})
    (header,), (sample,) = said.records("H"), said.records("S")
    assert header["cpus"] == list(range(8))
    assert header["zones"] == ["modem", "battery", "cpu-big"] and header["batteries"] == ["battery"]
    assert header["absent"] == {"psi_cpu_us": "ENOENT"}
    assert sample["temp_mc"] == [None, 31000, 47500]
    assert sample["freq_khz"][6:] == [None, 1450000]
    assert sample["busy"][5:] == [18, None, 18] and sample["idle"][0] == 102
    assert sample["battery"] == [{"percent": 80, "current_ua": -300000, "temp_dc": 301}]
    assert sample["mem_available_kb"] == 3000000
    assert "psi_cpu_us" not in sample


def test_sample_repeats_for_its_seconds(agent: Path) -> None:
    """Several samples, then a closing record that says it was done."""
    said = run([agent, "sample", "--sample-ms", "50", "--seconds", "0.3"])
    assert len(said.records("S")) >= 4
    assert said.closing["reason"] == "done"


@pytest.mark.parametrize("length", [0, 1, 55, 56, 63, 64, 65, 1000, 200_000])
def test_hash_is_sha256(agent: Path, tmp_path: Path, length: int) -> None:
    """The hash and the length of a file, at every border of the algorithm's blocks."""
    file = tmp_path / 'a "file" with \\ in it'
    content = bytes(i * 7 % 256 for i in range(length))
    file.write_bytes(content)
    done = subprocess.run([agent, "hash", file], capture_output=True, check=True)
    expected = {"path": str(file), "sha256": hashlib.sha256(content).hexdigest(), "bytes": length}
    assert json.loads(done.stdout) == expected


def test_hash_names_what_it_cannot_read(agent: Path, tmp_path: Path) -> None:
    """One file that is missing does not hide the others, and the exit status says so."""
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_bytes(b"good")
    done = subprocess.run([agent, "hash", bad, good, tmp_path], capture_output=True, check=False)
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [record.get("error") for record in records] == ["ENOENT", None, "EISDIR"]
    assert done.returncode == 1


def test_names_that_are_no_text_stay_valid_json(agent: Path, tmp_path: Path) -> None:
    """Bytes that are not UTF-8 become \\u00XX; control characters are escaped."""
    name = os.fsencode(tmp_path) + b"/\xff\x01\n\xc3\xa9"
    Path(os.fsdecode(name)).write_bytes(b"x")
    done = subprocess.run([os.fsencode(agent), b"hash", name], capture_output=True, check=True)
    assert json.loads(done.stdout.decode("utf-8"))["path"].endswith("/\u00ff\u0001\n\u00e9")


def test_a_canary_sings(agent: Path) -> None:
    """The shortest and the middle time of a fixed piece of work, on a CPU of our choice."""
    allowed = min(os.sched_getaffinity(0))
    done = subprocess.run([agent, "canary", "--affinity", f"{1 << allowed:x}"], capture_output=True, check=True)
    said = json.loads(done.stdout)
    assert 0 < said["unit_ns"] <= said["median_ns"]
    assert said["units"] >= 16


def test_a_canary_that_cannot_be_pinned_says_so(agent: Path) -> None:
    """A CPU that does not exist is refused by the kernel, and the agent does not run elsewhere instead."""
    done = subprocess.run([agent, "canary", "--affinity", "8" + "0" * 60], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (71, "")
    assert "cannot pin to 8000" in done.stderr and "EINVAL" in done.stderr
