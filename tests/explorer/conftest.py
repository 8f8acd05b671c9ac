"""The examples' kernels with small tiles, explored once, and a browser that has their pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from explorer.browser import Browser, find_browser
from explorer.kernels import KERNELS

import deuteron
from deuteron.aot.load import load_source
from deuteron.compiler import CompiledKernel
from deuteron.explorer import Page, explore

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@cache
def kernel(name: str, target: str, **options: int) -> CompiledKernel:
    """The kernel of an example, compiled for a target."""
    source = load_source(EXAMPLES / f"{name}.py", *KERNELS[name]).source
    return deuteron.compile(source, target, {"num_warps": 4, **options})


@cache
def explored(name: str, target: str) -> Page:
    return explore(kernel(name, target))


def compiled(path: Path, text: str, name: str, signature: str, target: str, **options: int) -> CompiledKernel:
    """A kernel of a text, which is written to a file."""
    path.write_text(text)
    return deuteron.compile(load_source(path, name, signature).source, target, {"num_warps": 4, **options})


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if find_browser() is None:
        pytest.skip("no Chromium is installed: apt install chromium-headless-shell, or DEUTERON_TEST_BROWSER=...")
    with Browser() as browser:
        yield browser


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Callable]:
    """Open a page in the browser; what goes wrong in it fails the test."""

    def opened(page: Page, **options):
        path = page.save(tmp_path / "page.html")
        shown = browser.open(path.as_uri(), **options)
        shown.wait("document.body.dataset.ready")
        return shown

    browser.problems.clear()
    yield opened
    assert browser.problems == []
