"""Fixtures that several folders of tests share: one adb server and one rack of virtual phones for all, and boards."""

from tests.devices.fixtures import adb_server, benchmark_apk, benchmark_model, board, phone, rack

__all__ = ["adb_server", "benchmark_apk", "benchmark_model", "board", "phone", "rack"]
