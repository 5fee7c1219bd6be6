"""The configuration that Perfetto gets: what a phone does while it runs a model. Pure."""

from __future__ import annotations

_EVENTS = (
    "sched/sched_switch",
    "sched/sched_waking",
    "sched/sched_blocked_reason",
    "sched/sched_process_exit",
    "task/task_newtask",
    "task/task_rename",
    "power/cpu_frequency",
    "power/cpu_frequency_limits",
    "power/cpu_idle",
    "power/suspend_resume",
    "power/gpu_frequency",
    "gpu_mem/gpu_mem_total",
    "thermal/thermal_temperature",
    "thermal/cdev_update",
    "ftrace/print",
)
"""The phone's kernel passes over those it does not know."""
_CATEGORIES = ("nnapi", "power", "thermal")
_BUFFER_KB_MAX = 32_768

_TEXT = """\
duration_ms: {duration_ms}
write_into_file: true
file_write_period_ms: 1000
flush_period_ms: 5000
max_file_size_bytes: {bytes_max}
buffers {{ size_kb: {buffer_kb} fill_policy: RING_BUFFER }}
buffers {{ size_kb: 2048 fill_policy: RING_BUFFER }}
data_sources {{ config {{ name: "linux.ftrace" target_buffer: 0 ftrace_config {{
{events}
{categories}
atrace_apps: "*"
buffer_size_kb: 8192
drain_period_ms: 250
}} }} }}
data_sources {{ config {{ name: "linux.process_stats" target_buffer: 1 process_stats_config {{
scan_all_processes_on_start: true
proc_stats_poll_ms: 1000
}} }} }}
data_sources {{ config {{ name: "linux.sys_stats" target_buffer: 1 sys_stats_config {{
stat_period_ms: 250
stat_counters: STAT_CPU_TIMES
meminfo_period_ms: 1000
meminfo_counters: MEMINFO_MEM_AVAILABLE
}} }} }}
"""


def perfetto_config(*, bytes_max: int, seconds_max: int) -> str:
    """In Perfetto's text form, of fields that Android 10 knows. `*` lets every program's slices in, TFLite's too."""
    return _TEXT.format(
        duration_ms=1000 * seconds_max,
        bytes_max=bytes_max,
        buffer_kb=min(_BUFFER_KB_MAX, max(1024, bytes_max // 1024)),
        events="\n".join(f'ftrace_events: "{event}"' for event in _EVENTS),
        categories="\n".join(f'atrace_categories: "{category}"' for category in _CATEGORIES),
    )
