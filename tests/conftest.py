"""What all tests share: a cache of their own, and random data that can be drawn again.

A test that asks for `by_pointers` gets kernels whose loads stay loads of pointers on sm_90, as where TMA cannot copy;
one that asks for `way` runs for both. What kernels for the CPU write behind their scratch memory fails the test.
Every test has a seed, which pytest prints where it fails: that of the generator `rng`, and of the moments when
asynchronous copies and products happen on the emulator. Where a commit is checked out and nothing is changed, the seeds
are those of the commit: all who test it test the same, and the next commit is tested with others. Else they are fresh.

    DEUTERON_TEST_SEED=1234 python -m pytest tests/run/test_dot.py

Where many cases of a test cost much and say little more than some, and where they differ in the GPU alone, `make test`
runs some of them, chosen for each commit anew: see `tests/lots.py`. A test that is named runs with all of its cases.
"""

from __future__ import annotations

import compileall
import ctypes
import functools
import gc
import os
import secrets
import signal
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from lots import draw_lot, left_out

import deuteron
from deuteron.backend.cpu.launch.thread_pool import thread_pool

# A shell that starts the tests in the background has this signal ignored, by what they start as well.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says how busy the machine is.
hypothesis.settings.register_profile("deuteron", deadline=None)
hypothesis.settings.load_profile("deuteron")


@functools.cache
def tested_commit() -> str | None:
    """The commit that is checked out, as it is."""
    commands = ["status", "--porcelain"], ["rev-parse", "HEAD"]
    try:
        status, commit = (
            subprocess.run(["git", *command], cwd=Path(__file__).parent, check=True, capture_output=True, text=True)
            for command in commands
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return None if status.stdout else commit.stdout


def seed_of(name: str) -> int:
    commit = tested_commit()
    return zlib.crc32(f"{commit} {name}".encode()) if commit else secrets.randbits(32)


@pytest.hookimpl(tryfirst=True)  # before that of hypothesis
def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        # Where Python writes no bytecode, each of hundreds of processes would compile Deuteron for half of its time.
        compileall.compile_dir(Path(deuteron.__file__).parent, quiet=2)
        draw_lot(tested_commit())
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = os.environ.get("DEUTERON_TEST_SEED") or seed_of("hypothesis")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """The bytecode of tests is kept even where Python writes none: each process would compile 900 files, for 14 s."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, False
    try:
        return (yield)
    finally:
        sys.dont_write_bytecode = before


@pytest.hookimpl(tryfirst=True)  # pytest's own hook leaves out what is marked
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in left_out(items, config.args):
        item.add_marker("long")


def pytest_collection_finish() -> None:
    """What there is by now stays: the collector need not look at thousands of tests again and again."""
    _freeze()
    gc.set_threshold(5_000, 10, 10)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None):
    """Nor at what a module has left, such as its kernels: each collection would look at those of all modules before."""
    result = yield
    if nextitem is None or nextitem.path != item.path:
        _freeze()
    return result


def _freeze() -> None:
    gc.collect()
    gc.freeze()


# What fixtures of a whole module compile is verified after each pass.
os.environ["DEUTERON_VERIFY_EACH"] = "1"
VERIFIED = 3  # of so many tests one


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory):
    """Compiled kernels go to a folder of this process, so that no test meets those of another version."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEUTERON_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def guarded_scratch():
    """A kernel for the CPU that writes behind its scratch memory fails its test, not another one that uses the heap."""
    guarded = GuardedScratch()
    before = thread_pool().set_scratch(guarded.address)
    yield
    thread_pool().set_scratch(before)
    guarded.check()


class GuardedScratch:
    """Scratch memory for each thread, of the size that is asked for, with bytes behind it that nobody may write."""

    guard = b"\xab" * 65536
    alignment = 64

    def __init__(self) -> None:
        self._of_thread: dict[int, tuple[ctypes.Array, int, int]] = {}
        self._overran = False
        self._function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)(self._at_least)
        self.address = ctypes.cast(self._function, ctypes.c_void_p).value

    def _at_least(self, key: int, size: int) -> int | None:
        """What is raised here, by a signal handler too, ctypes drops, and then returns anything."""
        try:
            return self._guarded(size)
        except BaseException as error:
            print(f"no scratch memory: {error!r}")
            return None

    def _guarded(self, size: int) -> int:
        thread = threading.get_ident()
        if thread in self._of_thread:
            self._look_behind(*self._of_thread[thread][1:])
        if thread not in self._of_thread or self._of_thread[thread][2] != size:
            memory = ctypes.create_string_buffer(size + len(self.guard) + self.alignment)
            address = -(-ctypes.addressof(memory) // self.alignment) * self.alignment
            ctypes.memmove(address + size, self.guard, len(self.guard))
            self._of_thread[thread] = memory, address, size
        return self._of_thread[thread][1]

    def _look_behind(self, address: int, size: int) -> None:
        self._overran |= ctypes.string_at(address + size, len(self.guard)) != self.guard

    def check(self) -> None:
        for _, address, size in self._of_thread.values():
            self._look_behind(address, size)
        assert not self._overran, "scratch memory overran"


@pytest.fixture
def by_pointers(monkeypatch: pytest.MonkeyPatch):
    """No load is made one through a descriptor."""
    monkeypatch.setenv("DEUTERON_DISABLE_PASSES", "infer-descriptors", prepend=",")


@pytest.fixture
def unsplit(monkeypatch: pytest.MonkeyPatch):
    """Loops stay as they are written, whatever masks them."""
    monkeypatch.setenv("DEUTERON_DISABLE_PASSES", "split-loops", prepend=",")


@pytest.fixture(params=["TMA", "pointers"])
def way(request: pytest.FixtureRequest) -> str:
    """Tiles are copied by TMA, or by threads that go by pointers."""
    if request.param == "pointers":
        request.getfixturevalue("by_pointers")
    return request.param


@pytest.fixture
def lasting_environment(request: pytest.FixtureRequest):
    """A test whose variables outlast it fails, not another one that reads them. torch sets some itself."""
    before = _variables()
    yield
    after = _variables()
    os.environ.update(before)
    for name in after.keys() - before.keys():
        del os.environ[name]
    if not request.node.get_closest_marker("torch"):
        assert after == before, "the environment is not what it was before"


def _variables() -> dict[str, str]:
    """Those that Deuteron reads."""
    return {name: os.environ[name] for name in os.environ if name.startswith(("DEUTERON_", "TRITON_"))}


@pytest.fixture(autouse=True)
def seed(request: pytest.FixtureRequest, lasting_environment: None, monkeypatch: pytest.MonkeyPatch) -> int:
    seed = int(os.environ.get("DEUTERON_TEST_SEED") or seed_of(request.node.nodeid))
    print(f"DEUTERON_TEST_SEED={seed}")
    monkeypatch.setenv("DEUTERON_EMULATOR_SEED", str(seed))
    # To verify after each pass, and not after each stage, takes a tenth of the time; programs of `tests/fuzz` all do.
    monkeypatch.setenv("DEUTERON_VERIFY_EACH", str(int(seed % VERIFIED == 0)))
    return seed


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)
