"""A phone in Python: an adbd behind the real adb server, whose commands run in a private root.

See README.md beside this file for how it is confined, what it can do, and how to use it in a test.
"""

from .faults import Faults
from .phone import VirtualPhone
from .profile import FLAGSHIP, MID, OLD, Battery, Cluster, Heat, Profile, Zone
from .rack import PhoneRack, why_not
from .thermal import Reading

__all__ = [
    "FLAGSHIP",
    "MID",
    "OLD",
    "Battery",
    "Cluster",
    "Faults",
    "Heat",
    "PhoneRack",
    "Profile",
    "Reading",
    "VirtualPhone",
    "Zone",
    "why_not",
]
