"""A hook that looks at the stages of a compile, and changes what they make."""

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron import knobs
from deuteron.errors import UsageError


@deuteron.jit
def add(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) + 1.0)


def launch():
    x, out = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    kernel = add[(1,)](x, out, BLOCK=16)
    return out - x, kernel


class Hook:
    """Replaces stages; `key` says what it does."""

    def __init__(self, key, **functions):
        self.key, self.functions, self.called, self.given = key, functions, [], None

    def __call__(self, backend=None, stages=None, options=None, language=None, capability=None):
        if stages is None:
            return self.key, str(hash(self.key))
        self.given = backend, list(stages), options, capability
        for name, change in self.functions.items():
            stages[name] = self.wrapped(backend, name, stages[name], change)
        return None

    def wrapped(self, backend, name, run, change):
        def look(src, metadata):
            self.called.append((name, metadata["name"]))
            return change(backend, run, src, metadata)

        return look


@pytest.fixture
def use(monkeypatch, tmp_path):
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(tmp_path))
    add.device_caches.clear()
    yield lambda hook: monkeypatch.setattr(knobs.runtime, "add_stages_inspection_hook", hook)
    add.device_caches.clear()


def test_stages_are_looked_at(use):
    texts = []

    def look(backend, run, src, metadata):
        made = run(src, metadata)
        texts.append(str(made))
        return made

    hook = Hook(
        "look", ttir=look, llir=lambda backend, run, src, metadata: backend.make_llir(src, metadata, None, None)
    )
    use(hook)
    assert (launch()[0] == 1).all()
    assert hook.called == [("ttir", "add"), ("llir", "add")] and "tt.load" in texts[0]
    assert hook.given[1] == ["ttir", "llir", "asm", "obj"] and hook.given[3] is None


def test_what_is_changed_is_compiled_and_kept_under_its_key(use):
    def change(backend, run, src, metadata):
        return str(run(src, metadata)).replace("1.000000e+00", "5.000000e+00")

    for _ in range(3):
        assert (launch()[0] == 1).all()
    use(Hook("five", ttir=change))
    assert (launch()[0] == 5).all()
    use(None)
    found, plain = launch()
    assert (found == 1).all()
    use(Hook("five", ttir=change))
    add.device_caches.clear()
    found, five = launch()
    assert (found == 5).all() and five.hash != plain.hash and five.is_cached
    use(Hook("six", ttir=change))
    assert launch()[1].hash not in (five.hash, plain.hash)


def fail(backend, run, src, metadata):
    raise ZeroDivisionError("oh")


@pytest.mark.parametrize(
    "hook, message",
    [
        (Hook("a", ttir=lambda backend, run, src, metadata: src), "'ttir' did not call the one that was there"),
        (Hook("b", llir=fail), "'llir' failed with ZeroDivisionError: oh"),
        (lambda backend, stages, options: None, "called without arguments it returns a text"),
    ],
)
def test_hooks_that_are_wrong(use, hook, message):
    use(hook)
    with pytest.raises(UsageError, match=message):
        launch()


def test_stages_are_not_added(use):
    hook = Hook("c")
    use(lambda *args: args[1].update(other=print) if args else hook())
    with pytest.raises(UsageError, match="not add or remove any \\(other\\): there are ttir, llir, asm, obj"):
        launch()
