"""How to reach a device: five verbs."""
