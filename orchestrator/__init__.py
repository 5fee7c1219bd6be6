"""The host side of devbench that knows no platform: plan, schedule, conduct, judge, report."""

__version__ = "0.1.0"
