"""Tests against Debian's adbd, the daemon that phones run: `make test-system`, as root."""
