"""The fixtures of the virtual phone for the contract and for what adb adds to it."""

from ..devices.fixtures import adb_server, phone, rack

__all__ = ["adb_server", "phone", "rack"]
