"""The host's iOS part. It registers nothing yet, so `platform = "ios"` is refused by name."""
