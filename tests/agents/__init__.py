"""The device agent, tested as the real binary that goes to a device."""
