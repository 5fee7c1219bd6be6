"""The host's Android part: adb transport, probe, conditions. Registers nothing yet, so `transport = "adb"` is refused by name."""
