# The two commands of the README are `make demo` and `make test`; the rest is for those who work on devbench.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: demo test test-system check format bench agents models page test-tools system-tools bench-tools clean

# Measure the small bundled models on this machine: threads, idle and under load, and the verdict. Exit code 5 says that
# some trials were rejected because something else kept the machine busy; the table says which, and the demo is done.
demo: $(INSTALLED) agents
	$(BIN)/devbench run --fleet devices.toml --blocks 8:8 --report devbench-results/demo.html || [ $$? = 5 ]

# Two at a time, a file each: most tests wait for devices. `.venv/bin/pytest` alone takes one after the other.
test: $(INSTALLED) agents test-tools
	$(BIN)/pytest -n 2 --dist loadfile

# The transport's contract and whole runs against the adbd that phones run, from this machine's Debian mirror, in
# namespaces of its own. Needs root; without it everything is skipped, and says so.
test-system: $(INSTALLED) agents test-tools system-tools
	$(BIN)/pytest tests/system -rs

check: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(INSTALLED)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Figures, as ratios within one run. Nothing here fails on a slow day.
bench: $(INSTALLED) agents test-tools bench-tools
	$(BIN)/python -m tests.bench

# The agents and native runners in C, for three architectures; rebuilt only when their sources changed.
agents: $(INSTALLED)
	$(BIN)/python -m device_agents.build_agents

# The bundled models anew, from the script that describes them. Needs TensorFlow, in an environment of its own.
models:
	$(PYTHON) -m venv $(VENV)-models
	$(VENV)-models/bin/pip install --quiet tensorflow-cpu==2.21.0 ai-edge-litert==2.3.0
	$(VENV)-models/bin/python orchestrator/bundled/make_models.py

# The scripts of the report page, bundled with the parts of ECharts they draw with: what users get needs no node.
PAGE := orchestrator/reports/page/script
page:
	cd $(PAGE) && npm ci --ignore-scripts --no-audit --no-fund --silent && node build.mjs

# The ARM agents run under qemu, the ARM native runner with an aarch64 libc beside it; virtual phones use mksh as phones
# do, boards are real ssh servers on loopback, and reports are looked at in Chromium. Without root, or without apt, the
# tests that need them are skipped and say so (phones fall back to the host's sh).
TEST_PROGRAMS := qemu-aarch64-static mksh sshd dropbear busybox csh fish perf chromedriver \
  /usr/aarch64-linux-gnu/lib/libstdc++.so.6
TEST_PACKAGES := qemu-user-static mksh libc6-arm64-cross libstdc++6-arm64-cross openssh-server openssh-client \
  dropbear-bin busybox csh fish linux-perf chromium chromium-driver fonts-dejavu-core
test-tools:
	@for program in $(TEST_PROGRAMS); do \
	  [ -e $$program ] || PATH="$$PATH:/usr/sbin" command -v $$program >/dev/null 2>&1 || missing="$$missing $$program"; \
	done; \
	if [ -z "$$missing" ]; then :; \
	  elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
	      apt-get install -y -qq --no-install-recommends $(TEST_PACKAGES) >/dev/null; \
	  else echo "not installed, so some tests will be skipped:$$missing"; fi

# The phone of test-system has a cable of its own, made with iproute2.
system-tools:
	@if [ "$$(id -u)" = 0 ] && ! command -v ip >/dev/null 2>&1 && command -v apt-get >/dev/null 2>&1; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq iproute2 >/dev/null; fi

# The load is compared with stress-ng where it can be had.
bench-tools:
	@command -v stress-ng >/dev/null 2>&1 || \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq stress-ng >/dev/null; \
	  else echo "stress-ng is not installed: the load is measured without a comparison"; fi

# The build tools come first, so that the package is built with them and not in an environment of its own.
$(INSTALLED): pyproject.toml device_agents/hatch_hook.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check "hatchling>=1.26" "editables>=0.5" "ziglang==0.17.0"
	$(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation --editable ".[local,dev]"
	@touch $@

clean:
	rm -rf $(VENV) $(VENV)-models device_agents/bin build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .cache
