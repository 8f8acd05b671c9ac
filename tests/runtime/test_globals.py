"""What kernels use of the world outside: it is part of their key, and must not change once they are compiled."""

import sys
from types import ModuleType

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.compiler import ASTSource
from deuteron.errors import CompilationError, UsageError

SCALE = tl.constexpr(2)
OFFSETS = (tl.constexpr(1), tl.constexpr(10))
DTYPE = tl.float32
PLAIN = 7
PAIR = [10, 20]
config = ModuleType("config")
config.SHIFT = 3


class Settings:
    BIAS = tl.constexpr(100)


@deuteron.jit
def scaled(x):
    return x * SCALE


@deuteron.jit
def doubled(x):
    return x * 2


@deuteron.jit
def with_global(out_ptr):
    tl.store(out_ptr, SCALE)


@deuteron.jit
def with_called_global(out_ptr):
    tl.store(out_ptr, scaled(1))


@deuteron.jit
def with_tuple(out_ptr):
    tl.store(out_ptr, OFFSETS[1])


@deuteron.jit
def with_dtype(out_ptr):
    tl.store(out_ptr, tl.zeros([], DTYPE).to(tl.int32) + DTYPE.primitive_bitwidth)


@deuteron.jit
def with_module(out_ptr):
    tl.store(out_ptr, config.SHIFT)


@deuteron.jit
def with_class(out_ptr):
    tl.store(out_ptr, Settings.BIAS)


@deuteron.jit
def with_given_function(out_ptr, F: tl.constexpr):
    tl.store(out_ptr, F(1))


HERE = sys.modules[__name__]
CASES = {
    "a global": (with_global, HERE, "SCALE", tl.constexpr(5), "SCALE"),
    "what a constexpr holds": (with_global, SCALE, "value", 5, "SCALE"),
    "a global of a called function": (with_called_global, HERE, "SCALE", tl.constexpr(5), "SCALE"),
    "a called function": (with_called_global, HERE, "scaled", doubled, "scaled"),
    "a tuple": (with_tuple, HERE, "OFFSETS", (tl.constexpr(1), tl.constexpr(11)), "OFFSETS"),
    "a dtype": (with_dtype, HERE, "DTYPE", tl.float16, "DTYPE"),
    "a number in a module": (with_module, config, "SHIFT", 4, "config.SHIFT"),
    "an attribute of a class": (with_class, Settings, "BIAS", tl.constexpr(7), "Settings.BIAS"),
    "a global of a given function": (with_given_function, HERE, "SCALE", tl.constexpr(5), "SCALE"),
}


TABLE = {"width": 3}
LENGTHS = np.arange(4)


class Limits:
    def __init__(self):
        self.most = 8

    def twice(self):
        return 2 * self.most


limits = Limits()


def inner():
    return 5


def outer():
    return inner()


@deuteron.constexpr_function
def from_table():
    return TABLE["width"]


@deuteron.constexpr_function
def from_array():
    return int(LENGTHS[1])


@deuteron.constexpr_function
def from_object():
    return limits.twice()


@deuteron.constexpr_function
def from_functions():
    return outer()


@deuteron.jit
def with_called(out_ptr, WHICH: tl.constexpr):
    if WHICH == "table":
        tl.store(out_ptr, from_table())
    elif WHICH == "array":
        tl.store(out_ptr, from_array())
    elif WHICH == "object":
        tl.store(out_ptr, from_object())
    elif WHICH == "functions":
        tl.store(out_ptr, from_functions())
    elif WHICH == "list":
        tl.store(out_ptr, HELD[0])
    else:
        other = Settings
        tl.store(out_ptr, other.BIAS)


HELD = tl.constexpr([1, 2])
CHANGES = {
    "table": (lambda patch: patch.setitem(TABLE, "width", 4), r"TABLE\['width'\]"),
    "array": (lambda patch: np.put(LENGTHS, 1, 7), r"LENGTHS\[\.\.\.\]"),
    "object": (lambda patch: patch.setattr(limits, "most", 9), r"limits\.most"),
    "method": (lambda patch: patch.setattr(Limits, "twice", lambda self: 0), r"limits\.twice"),
    "functions": (lambda patch: patch.setattr(HERE, "inner", lambda: 6), "inner"),
    "list": (lambda patch: HELD.value.reverse(), r"HELD\[[01]\]"),
    "class": (lambda patch: patch.setattr(Settings, "BIAS", tl.constexpr(7)), r"Settings\.BIAS"),
}


def fresh(kernel):
    """The kernel as if it had just been defined."""
    return deuteron.jit(kernel.fn)


def arguments(kernel):
    return {"F": scaled} if "F" in kernel.arg_names else {}


@pytest.fixture(params=["interpreter", "cpu", "cuda:80"])
def executor(request, monkeypatch):
    monkeypatch.setenv("DEUTERON_INTERPRET", "1" if request.param == "interpreter" else "0")
    monkeypatch.setenv("DEUTERON_EMULATE", "1" if request.param == "cuda:80" else "0")
    monkeypatch.setenv("DEUTERON_TARGET", "cpu" if request.param != "cuda:80" else "cuda:80")


@pytest.mark.parametrize("case", CASES)
def test_what_has_changed_since_a_kernel_was_compiled_is_an_error(executor, monkeypatch, case):
    kernel, owner, key, value, name = CASES[case]
    kernel, out, given = fresh(kernel), np.zeros(1, np.int32), arguments(kernel)
    kernel[(1,)](out, **given)
    monkeypatch.setattr(owner, key, value)
    with pytest.raises(UsageError, match=rf"'{name}', which kernel '{kernel.__name__}' uses, has changed"):
        kernel[(1,)](out, **given)
    monkeypatch.undo()


@pytest.mark.parametrize("launches", [1, 4])
@pytest.mark.parametrize("case", CHANGES)
def test_what_has_changed_within_a_value_is_an_error(executor, monkeypatch, case, launches):
    """It is the same object, also for a launch without Python."""
    change, name = CHANGES[case]
    kernel, out, which = fresh(with_called), np.zeros(1, np.int32), "object" if case == "method" else case
    for _ in range(launches):
        kernel[(1,)](out, which)
    change(monkeypatch)
    with pytest.raises(UsageError, match=rf"'{name}', which kernel 'with_called' uses, has changed"):
        kernel[(1,)](out, which)
    monkeypatch.undo()
    LENGTHS[:], HELD.value[:] = range(4), (1, 2)
    kernel[(1,)](out, which)


class Machine:
    """Finds out what it is asked for, and counts its kernels."""

    num_cores = None

    def cores(self):
        if self.num_cores is None:
            self.num_cores = 6
        return self.num_cores


class CountingFunction(deuteron.JITFunction):
    num_launches = 0

    def run(self, *args, **kwargs):
        self.num_launches += 1
        return super().run(*args, **kwargs)


machine = Machine()
counted = CountingFunction(doubled.fn)


@deuteron.constexpr_function
def number_of_cores():
    return machine.cores()


@deuteron.jit
def with_machine(out_ptr, N: tl.constexpr):
    tl.store(out_ptr, counted(number_of_cores()) + N)


def test_what_an_object_finds_out_when_it_is_asked_is_no_change(executor):
    kernel, out = fresh(with_machine), np.zeros(1, np.int32)
    for number in (1, 2, 1, 2):
        kernel[(1,)](out, number)
        assert out[0] == 12 + number
        counted.num_launches += 1


@pytest.mark.parametrize("case", CASES)
def test_it_is_part_of_the_key(monkeypatch, case):
    kernel, owner, key, value, _ = CASES[case]
    signature = {name: "constexpr" if name == "F" else "*i32" for name in kernel.arg_names}

    def hash_now():
        return ASTSource(fresh(kernel), signature, arguments(kernel)).hash()

    before = hash_now()
    assert hash_now() == before
    monkeypatch.setattr(owner, key, value)
    assert hash_now() != before


@deuteron.jit
def with_plain_global(out_ptr):
    tl.store(out_ptr, PLAIN + PAIR[1])


def test_plain_globals_where_the_environment_allows_them(executor, monkeypatch):
    kernel, out = fresh(with_plain_global), np.zeros(1, np.int32)
    with pytest.raises(CompilationError, match="'PLAIN' is a global variable"):
        kernel[(1,)](out)
    monkeypatch.setenv("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS", "1")
    kernel[(1,)](out)
    assert out[0] == 27
    monkeypatch.setattr(HERE, "PLAIN", 8)
    with pytest.raises(UsageError, match="'PLAIN', which kernel 'with_plain_global' uses, has changed"):
        kernel[(1,)](out)
    fresh(with_plain_global)[(1,)](out)
    assert out[0] == 28


def test_a_global_array_is_refused_all_the_same(monkeypatch):
    monkeypatch.setenv("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS", "1")
    monkeypatch.setattr(HERE, "PLAIN", np.zeros(4, np.int32))
    with pytest.raises(CompilationError, match="Pass it as an argument, and load from it"):
        fresh(with_plain_global)[(1,)](np.zeros(1, np.int32))


def test_the_error_shows_both_values_and_the_way_out(monkeypatch):
    kernel, out = fresh(with_global), np.zeros(1, np.int32)
    kernel[(1,)](out)
    monkeypatch.setattr(HERE, "SCALE", tl.constexpr(5))
    with pytest.raises(UsageError, match=r"it was constexpr\[2\], and is constexpr\[5\]. Pass it as a tl"):
        kernel[(1,)](out)
    monkeypatch.delattr(HERE, "SCALE")
    with pytest.raises(UsageError, match="and is nothing"):
        kernel[(1,)](out)


def test_an_equal_value_is_no_change(executor, monkeypatch):
    kernel, out = fresh(with_called_global), np.zeros(1, np.int32)
    kernel[(1,)](out)
    monkeypatch.setattr(HERE, "SCALE", tl.constexpr(2))
    monkeypatch.setattr(HERE, "scaled", fresh(scaled))
    kernel[(1,)](out)
    assert out[0] == 2


def test_what_changes_after_a_compile_that_failed_is_seen(executor, monkeypatch):
    kernel, out = fresh(with_global), np.zeros(1, np.int32)
    monkeypatch.setattr(HERE, "SCALE", 5)
    with pytest.raises(deuteron.errors.CompilationError, match="'SCALE' is a global variable"):
        kernel[(1,)](out)
    monkeypatch.setattr(HERE, "SCALE", tl.constexpr(7))
    kernel[(1,)](out)
    assert out[0] == 7


def test_variables_of_an_enclosing_function_count_and_local_ones_do_not(executor, monkeypatch):
    factor = tl.constexpr(3)

    @deuteron.jit
    def kernel(out_ptr):
        SCALE = 4
        tl.store(out_ptr, factor * SCALE)

    out = np.zeros(1, np.int32)
    kernel[(1,)](out)
    monkeypatch.setattr(HERE, "SCALE", tl.constexpr(5))
    kernel[(1,)](out)
    assert out[0] == 12
    factor = tl.constexpr(4)
    with pytest.raises(UsageError, match="'factor', which"):
        kernel[(1,)](out)


@deuteron.jit
def comprehension_kernel(out, n):
    shifted = n + 1
    parts = [shifted * each for each in range(3)]
    tl.store(out, parts[1] + parts[2])


def test_variables_of_a_comprehension_are_its_own(monkeypatch):
    """Whatever the globals of their names are, `each` and `shifted`: with Python 3.11 a comprehension is a function."""
    out = np.zeros(1, np.int32)
    for each in range(2):
        monkeypatch.setitem(globals(), "each", each)
        monkeypatch.setitem(globals(), "shifted", tl.constexpr(each))
        comprehension_kernel[(1,)](out, 4)
        assert out[0] == 15


@deuteron.jit
def early_kernel(out, n):
    tl.store(out, early)  # noqa: F821
    early = n + 1
    tl.store(out, sum([early * each for each in range(3)]))


def test_a_variable_that_a_comprehension_reads_is_not_the_global_of_its_name(monkeypatch):
    monkeypatch.setitem(globals(), "early", tl.constexpr(7))
    with pytest.raises(CompilationError, match="'early' is used before it is assigned"):
        early_kernel[(1,)](np.zeros(1, np.int32), 4)


@deuteron.aggregate
class Shift:
    x: tl.tensor

    @deuteron.jit
    def shifted(self):
        return self.x + 1


@deuteron.jit
def shift_kernel(out):
    tl.store(out, Shift(3).shifted())


def test_a_class_that_was_defined_anew(monkeypatch):
    monkeypatch.setenv("DEUTERON_INTERPRET", "1")
    out = np.zeros(1, np.int32)
    shift_kernel[(1,)](out)
    assert out[0] == 4

    @deuteron.aggregate
    class Shift:
        x: tl.tensor

        @deuteron.jit
        def shifted(self):
            return self.x + 2

    monkeypatch.setitem(globals(), "Shift", Shift)
    with pytest.raises(UsageError, match="'Shift', which kernel 'shift_kernel' uses, has changed"):
        shift_kernel[(1,)](out)


@deuteron.jit
def stepped(x, step: tl.constexpr = 3, *, bias: tl.constexpr = 10):
    return x + step + bias


@deuteron.jit
def with_defaults(out_ptr, n=1):
    tl.store(out_ptr, stepped(n))


DEFAULTS = {  # of which function, which, and what with_defaults stores with them
    "positional": (stepped, "__defaults__", (4,), 15),
    "by name": (stepped, "__kwdefaults__", {"bias": 20}, 24),
    "of the kernel": (with_defaults, "__defaults__", (2,), 15),
}


@pytest.mark.parametrize("launches", [1, 4])
@pytest.mark.parametrize("case", DEFAULTS)
def test_other_defaults_after_a_compile_are_an_error(executor, monkeypatch, case, launches):
    function, key, value, _ = DEFAULTS[case]
    kernel, out = fresh(with_defaults), np.zeros(1, np.int32)
    for _ in range(launches):
        kernel[(1,)](out)
    assert out[0] == 14
    monkeypatch.setattr(function.fn, key, value)
    with pytest.raises(UsageError, match=f"'{function.__name__}.{key}', which kernel 'with_defaults' uses, has chan"):
        kernel[(1,)](out)


@pytest.mark.parametrize("case", DEFAULTS)
def test_other_defaults_before_a_compile_count(executor, monkeypatch, case):
    function, key, value, expected = DEFAULTS[case]
    kernel, out = fresh(with_defaults), np.zeros(1, np.int32)
    monkeypatch.setattr(function.fn, key, value)
    kernel[(1,)](out)
    assert out[0] == expected
