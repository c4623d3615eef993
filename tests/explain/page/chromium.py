"""A real browser: Debian's chromium, without a window."""

import shutil
import subprocess
from pathlib import Path

from tests.support.waiting import LIMIT_SECONDS

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


def chromium() -> str | None:
    """The browser on the PATH; None if there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


def dom_of(file: Path, profile: Path, fragment: str = "") -> str:
    """The elements of a page after its scripts have run; ``profile`` is an empty folder for the browser's own files."""
    return dom_at(file.as_uri() + fragment, profile)


def dom_at(address: str, profile: Path, *flags: str) -> str:
    """The elements of the page at an address, as :func:`dom_of`."""
    return _run(address, profile, "--dump-dom", *flags)


def picture_of(file: Path, profile: Path, to: Path, size: tuple[int, int], fragment: str = "") -> None:
    """Write a picture (PNG) of a page in a window of this size."""
    _run(file.as_uri() + fragment, profile, f"--screenshot={to}", f"--window-size={size[0]},{size[1]}")


def _run(address: str, profile: Path, *flags: str) -> str:
    browser = chromium()
    assert browser is not None
    command = [browser, *FLAGS, f"--user-data-dir={profile}", *flags, address]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
