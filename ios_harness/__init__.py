"""The host's iOS part: Mac gateway and jailbroken devices. Registers nothing yet, so `platform = "ios"` is refused by name."""
