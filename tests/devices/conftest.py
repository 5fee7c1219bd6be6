"""The fixtures of the virtual phone for its own tests."""

from .fixtures import adb_server, benchmark_model, phone, rack

__all__ = ["adb_server", "benchmark_model", "phone", "rack"]
