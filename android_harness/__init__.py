"""The host's Android part. It registers nothing yet, so `transport = "adb"` is refused by name."""
