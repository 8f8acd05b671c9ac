"""Launches in machine code do what those in Python do: random arguments, all that a launch depends on, references."""

from __future__ import annotations

import gc
import random
import sys
import threading
from enum import Enum
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.errors import InternalError, LaunchError
from deuteron.runtime import fast_launch
from deuteron.tools.tensor_descriptor import TensorDescriptor

SCALE = tl.constexpr(3)


@deuteron.jit
def plain(a, b, c=7, d=None):
    pass


@deuteron.jit
def mixed(x, n: tl.int64, f: tl.float32, u: tl.uint8, B: tl.constexpr, C: tl.constexpr = 3):
    pass


@deuteron.jit(do_not_specialize=["n"], do_not_specialize_on_alignment=["x", "m"])
def less(x, n, m, flag: tl.int1 = True, B: tl.constexpr = "text"):
    pass


@deuteron.jit
def helper(x):
    return x


KERNELS = (plain, mixed, less)


class Whole(int):
    """Says that it is equal to everything."""

    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


class Sizes(NamedTuple):
    rows: object
    columns: object


class Mode(Enum):
    FIRST = 1
    SECOND = 2


class Array(np.ndarray):
    pass


class Interface:
    """An array of a library, which may lie anywhere."""

    def __init__(self, address, is_read_only, typestr="<f4"):
        self.address, self.is_read_only, self.typestr = address, is_read_only, typestr

    @property
    def __array_interface__(self):
        return {"data": (self.address, self.is_read_only), "typestr": self.typestr, "shape": (4,), "version": 3}


class Tensor:
    """What torch's tensors have."""

    def __init__(self, address):
        self.dtype, self.address, self.device = "torch.float16", address, None

    def data_ptr(self):
        if self.address < 0:
            raise RuntimeError("there is no memory")
        return self.address


def random_array(rng):
    dtype = rng.choice(["float32", "int8", "float16", "uint64", "bool", "int64", "complex64", ">f4"])
    array = np.zeros(rng.choice([0, 64, 65]), dtype)[rng.randrange(3) :: rng.choice([1, 1, 2, -1])]
    if rng.random() < 0.2:
        array = array.view(Array)
    if rng.random() < 0.2:
        array.flags.writeable = False
    return array


def random_integer(rng):
    small = [0, 1, -1, 2, 16, -16, 17, 127, 128, 300, -300, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32 + 1, 2**40]
    return rng.choice([*small, 2**63 - 1, -(2**63), 2**63, 2**64 - 1, 2**64, -(2**70), rng.randrange(-100, 100)])


NUMPY_SCALARS = (
    np.int8(1),
    np.int16(16),
    np.uint32(7),
    np.int64(2**40),
    np.float16(0.5),
    np.float64(0.1),
    np.bool_(True),
)
SCALARS = (0.5, 1.0, -0.0, float("nan"), float("inf"), 1e39, True, False, None, Whole(1), Whole(16), *NUMPY_SCALARS)
OTHERS = (
    helper,
    tl.float32,
    tl.constexpr(16),
    "text",
    "other",
    object(),
    1j,
    [1, 2],
    {"a": 1},
    Mode.FIRST,
    Mode.SECOND,
    int,
)
PARTS = (1, 16, 0.5, None, True)


def random_argument(rng, others):
    choose = rng.random()
    if choose < 0.3:
        return random_array(rng)
    if choose < 0.55:
        return random_integer(rng)
    if choose < 0.8:
        return rng.choice(SCALARS)
    if choose < 0.84:
        return Interface(rng.choice([4096, 4100]), rng.random() < 0.3)
    if choose < 0.88:
        return Tensor(rng.choice([4096, 4100, -1]))
    if choose < 0.9:
        return TensorDescriptor(np.zeros((32, 32), np.float32)[: rng.choice([8, 16])], [8, 32], [32, 1], [8, 16])
    if choose < 0.94:
        kind = rng.choice([lambda a, b: (a, b), Sizes, lambda a, b: (a, (b, a))])
        return kind(rng.choice(PARTS), rng.choice([*PARTS, random_array(rng)]))
    return rng.choice(others)


def random_grid(rng):
    grids = [(1,), (2, 3), (4, 5, 6), 7, [8, 9], (0,), (2, 0), lambda meta: (len(meta),), lambda meta: meta.get("n", 3)]
    wrong = [
        (),
        (1, 2, 3, 4),
        (-1,),
        (2**31,),
        "grid",
        (1.5,),
        (True, np.int64(3)),
        lambda meta: None,
        lambda meta: 1 / 0,
    ]
    return rng.choice(grids if rng.random() < 0.9 else wrong)


class Case:
    """Arguments of a launch, some by keyword, some wrong."""

    def __init__(self, rng, kernel, pool):
        names = list(kernel.arg_names)
        self.kernel, self.grid = kernel, random_grid(rng)
        values = {name: rng.choice(pool[name]) for name in names}
        if rng.random() < 0.1:
            values[rng.choice(names)] = random_argument(rng, OTHERS)
        count = rng.randrange(len(names) + 1)
        self.args = [values[name] for name in names[:count]]
        self.keywords = {name: values[name] for name in rng.sample(names[count:], len(names) - count)}
        if rng.random() < 0.3:
            self.keywords.pop(rng.choice(names), None)
        if rng.random() < 0.3:
            self.keywords["num_warps"] = rng.choice([4, 8, 8.5])
        if rng.random() < 0.2:
            self.keywords["num_stages"] = rng.choice([2, 3])
        if rng.random() < 0.03:
            self.keywords[rng.choice([names[0], "unknown"])] = 1
        if rng.random() < 0.02:
            self.args += [1] * len(names)

    def outcome(self, launch, log):
        """What was launched, or the error."""
        before = len(log)
        try:
            returned = launch(*self.args, **self.keywords)
        except Exception as error:
            return type(error), str(error), log[before:]
        return returned, log[before:]


def pool_for(rng, kernel):
    """Few values for each parameter, mostly such as it takes, so that launches are alike."""
    return {param.name: [pooled(rng, specialise) for _ in range(2)] for param, specialise in parameters_of(kernel)}


def parameters_of(kernel):
    return zip(kernel.params, kernel.specialisers, strict=True)


def pooled(rng, specialise):
    for _ in range(20):
        value = random_argument(rng, OTHERS)
        try:
            specialise(value)
        except Exception:
            continue
        return value
    return 5


@pytest.mark.parametrize("number", range(4))
def test_random_launches_are_as_in_python(rng, log, slow, number):
    """And each that launches something is fast the second time."""
    rng = random.Random(int(rng.integers(1 << 32)) + number)
    for _ in range(8):
        kernel = rng.choice(KERNELS)
        pool = pool_for(rng, kernel)
        for _ in range(40):
            case = Case(rng, kernel, pool)
            first = case.outcome(kernel[case.grid], log)
            before = len(slow)
            second = case.outcome(kernel[case.grid], log)
            is_fast = len(slow) == before
            in_python = case.outcome(partial(kernel.run, grid=case.grid, warmup=False), log)
            assert first == second == in_python, (case.args, case.keywords)
            assert is_fast or not first[-1], (case.args, case.keywords)


def test_a_launch_like_one_before_is_fast(log, slow):
    x = np.zeros(64, np.float32)
    for _ in range(4):
        plain[(2,)](x, 5, c=x)
    assert len(slow) == 1
    assert len(log) == 4 and len(set(log)) == 1


def test_what_was_taken_before_the_first_launch_is_fast(log, slow):
    x, taken = np.zeros(64, np.float32), plain[(2,)]
    for _ in range(4):
        taken(x, 5, c=x)
    assert len(slow) == 1
    assert len(log) == 4 and len(set(log)) == 1


@pytest.mark.parametrize(
    "value", [1, 16, 2**40, -5, 2**63, 0.5, None, True, np.float32(2), (1, 2), Sizes(1, 0.5), "text"]
)
def test_every_kind_of_constexpr_is_fast_the_second_time(log, slow, value):
    x = np.zeros(64, np.float32)
    for _ in range(3):
        mixed[(1,)](x, 5, 0.5, 7, B=value, C=[1, value])
    assert len(slow) == 1


def test_equal_constants_are_other_constants(log):
    x = np.zeros(64, np.float32)
    kernels = {mixed[(1,)](x, 5, 0.5, 7, B=value).name: value for _ in range(3) for value in (1,)}
    found = [[mixed[(1,)](x, 5, 0.5, 7, B=value).launch for value in (1, True, 1.0, "1", (1,))] for _ in range(3)]
    assert found[0] == found[1] == found[2]
    assert len(set(found[0])) == 5 and kernels


def test_a_list_that_is_changed_is_another_constant(log):
    x, sizes = np.zeros(64, np.float32), [1, 2]
    first = [mixed[(1,)](x, 5, 0.5, 7, B=sizes) for _ in range(3)]
    sizes.append(3)
    assert mixed[(1,)](x, 5, 0.5, 7, B=sizes) is not first[2]


# References.


def launch_some(kernel=plain, count=3):
    x = np.zeros(64, np.float32)
    return [kernel[(1,)](x, 5) for _ in range(count)][-1]


class Stop(BaseException):
    pass


class Raises:
    dtype = device = None

    def __init__(self, error):
        self.error = error

    def data_ptr(self):
        raise self.error


def test_references_are_given_back(log):
    x, big, fixed = np.zeros(64, np.float32), 2**50 + 1, np.zeros(8)
    fixed.flags.writeable = False
    grid, sizes, named, text = (5, 1 << 20), (x, 7), Sizes(big, 0.25), "".join(["a", "b"])
    tensor, wrong, raising = Tensor(4096), object(), Raises(ValueError("x"))
    function, warps = lambda meta: grid, 8
    broken = lambda meta: 1 / 0  # noqa: E731
    watched = [x, big, fixed, grid, sizes, named, text, tensor, wrong, raising, function, broken]

    def launch_all():
        for launched in (grid, function, broken, (1, 2, 3, 4), big):
            for args in (
                (x, big),
                (sizes, named),
                (tensor, 5),
                (wrong, 5),
                (raising, big),
                (x, big, fixed),
                (x,) * 9,
                (),
            ):
                try:
                    plain[launched](*args)
                    plain[launched](*args, num_warps=warps)
                    less[launched](x, big, 5, B=text)
                except (LaunchError, ZeroDivisionError, TypeError, ValueError):
                    pass

    for _ in range(3):
        launch_all()
    gc.collect()
    before = [sys.getrefcount(value) for value in watched]
    for _ in range(50):
        log.clear()
        launch_all()
    log.clear()
    gc.collect()
    assert [sys.getrefcount(value) for value in watched] == before


def test_an_interrupt_is_no_error_of_the_launch(log):
    tensor = Tensor(4096)
    for _ in range(3):
        plain[(1,)](tensor, 5)
    tensor.data_ptr = lambda: 1 / 0
    with pytest.raises(ZeroDivisionError):
        plain[(1,)](tensor, 5)

    def stop():
        raise Stop

    tensor.data_ptr = stop
    count = len(log)
    with pytest.raises(Stop):
        plain[(1,)](tensor, 5)
    assert len(log) == count


def test_a_kernel_and_its_entries_can_be_collected(log, recorder):
    @deuteron.jit
    def short_lived(a, b):
        pass

    launch_some(short_lived)
    ended = threading.Event()
    short_lived.marker = type("Marker", (), {"__del__": lambda self: ended.set()})()
    at = short_lived[(1,)]
    del short_lived
    gc.collect()
    assert not ended.is_set()
    at(np.zeros(64, np.float32), 5)
    del at
    log.clear()
    recorder.compiled.clear()
    gc.collect()
    assert ended.is_set()


def test_many_threads(log):
    arrays = [np.zeros(64, dtype) for dtype in (np.float32, np.int8, np.float64, np.int32)]
    expected = [plain[(1,)](array, 5) for array in arrays]
    wrong, stop = [], threading.Event()

    def launch(number):
        rng = random.Random(number)
        for _ in range(2000):
            which = rng.randrange(4)
            if plain[(1,)](arrays[which], rng.choice([5, 7, 9])) is not expected[which]:
                wrong.append(which)

    def disturb():
        while not stop.is_set():
            plain.fast.forget()
            stop.wait(0.001)

    threads = [threading.Thread(target=launch, args=(number,)) for number in range(6)]
    disturber = threading.Thread(target=disturb)
    for thread in (*threads, disturber):
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    disturber.join()
    assert not wrong
    assert len(log) == 4 + 6 * 2000


def test_where_the_code_cannot_be_loaded_launches_are_in_python(log, slow, monkeypatch):
    def fail(*args):
        raise InternalError("no such symbol")

    monkeypatch.setattr("deuteron.backend.launcher.loaded.load_launcher", fail)
    fast_launch.the_launcher.forget()
    x = np.zeros(64, np.float32)
    with pytest.warns(RuntimeWarning, match="launches go through Python: no such symbol"):
        plain[(1,)](x, 5)
    plain[(1,)](x, 5)
    plain.prepare(x, 5, grid=(1,)).launch(x, 5, 7, None)
    assert len(slow) == 2 and len(log) == 3
    fast_launch.the_launcher.forget()
