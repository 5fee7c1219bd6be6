"""Debian's Chromium without a window, driven through its own driver."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.wait import WebDriverWait

DRIVER, BROWSER = shutil.which("chromedriver"), shutil.which("chromium")
MISSING = None if DRIVER and BROWSER else "no chromium with chromium-driver here: `make test-tools` installs them"
_WAIT_S = 60
_FLAGS = (
    "--headless=new",
    "--no-sandbox",  # root, as in a container, has none
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
    "--window-size=1280,900",
)


class Browser:
    """A page, and what it said and asked for while it was open."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, page: Path, fragment: str = "") -> None:
        """The page from its file, once it says that it is ready; what was logged before is forgotten."""
        self.driver.get("about:blank")
        self.drain()
        self.driver.get(page.as_uri() + fragment)
        self.until("return document.documentElement.dataset.ready === 'yes'")

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def until(self, script: str) -> Any:
        """What the script gives, once that is something."""
        return WebDriverWait(self.driver, _WAIT_S, poll_frequency=0.03).until(
            lambda driver: driver.execute_script(script)
        )

    def size(self, width: int, height: int = 900) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def media(self, **features: str) -> None:
        listed = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": listed})

    def drain(self) -> tuple[list[str], list[str]]:
        """What the console said, and the addresses that were asked for, since the last time."""
        said = [str(entry["message"]) for entry in self.driver.get_log("browser")]
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        asked = [
            event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"
        ]
        return said, [address for address in asked if not address.startswith(("about:", "data:"))]

    def printed(self) -> bytes:
        return base64.b64decode(self.driver.print_page())


@contextmanager
def opened_browser() -> Iterator[Browser]:
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER or ""
    for flag in _FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
