"""Devices that the tests bring along: a virtual phone behind the real adb, and what runs on it."""
