"""What generated launchers and compile workers do with sources and compiled kernels."""

import copy
import pickle
import threading

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron import knobs
from deuteron.compat.backends import BACKENDS, make_backend
from deuteron.compiler import ASTSource, CompiledKernel
from deuteron.errors import UsageError
from deuteron.options import Target
from deuteron.runtime import driver


@deuteron.jit
def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, 2 * tl.load(x_ptr + i, mask=i < n), mask=i < n)


SIGNATURE = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}
ATTRS = {(0,): [["tt.divisibility", 16]]}
TARGET = Target("cpu", "", 32)  # as torch writes it


def compiled(fn=double):
    return deuteron.compile(ASTSource(fn, SIGNATURE, {"BLOCK": 16}, ATTRS), target=TARGET, options={"num_warps": 2})


@pytest.mark.parametrize("arch", ["", 0, "native"])
def test_a_target_of_the_cpu_as_triton_programs_write_it(arch):
    kernel = deuteron.compile(ASTSource(double, SIGNATURE, {"BLOCK": 16}, ATTRS), target=Target("cpu", arch, 0))
    assert str(kernel.metadata.target) == "cpu:native"


def generated():
    """A kernel of a module that only this process has, as a compile worker leaves it for its parent."""
    fn = deuteron.jit(double.fn)
    fn._hash_lock = threading.RLock()
    return fn


def launch(kernel, enter=None, exit=None):
    x, out = np.arange(40, dtype=np.float32), np.full(40, -1, np.float32)
    kernel._init_handles()
    metadata = kernel.launch_metadata((3, 1, 1), 0, x, out, 40, 16)
    args = (x.ctypes.data, out.ctypes.data, 40, 16)
    kernel.run(3, 1, 1, 0, kernel.function, kernel.packed_metadata, metadata, enter, exit, *args)
    assert (out == 2 * x).all()


def test_a_launch_with_all_arguments():
    kernel = compiled()
    launch(kernel)
    assert kernel.run is kernel.run and kernel.function and kernel.module
    assert kernel.src.fn is double and kernel.src.constants == {(3,): 16}
    assert kernel.metadata.cluster_dims == (1, 1, 1) and kernel.metadata.target == Target("cpu", "native", 1)


def test_hooks_of_a_launch():
    told = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(knobs.runtime, "launch_enter_hook", told.append)
        launch(compiled(), told.append, told.append)
    assert [metadata.get()["name"] for metadata in told] == ["double", "double"]


def test_a_compiled_kernel_survives_pickling_after_a_launch():
    kernel = compiled()
    launch(kernel)
    copied = pickle.loads(pickle.dumps(kernel))
    assert isinstance(copied, CompiledKernel) and copied.hash == kernel.hash and copied.src.fn is double
    launch(copied)


def test_what_a_compile_worker_sends():
    """The worker takes the Python function away, and sends the attributes of a kernel, with None for some of them."""
    fn = generated()
    kernel = compiled(fn)
    name = fn.repr(fn)
    fn.fn = fn.__globals__ = fn.used_global_vals = fn._hash_lock = None
    state = pickle.loads(pickle.dumps({**vars(kernel), "module": None, "function": None, "run": None}))
    received = CompiledKernel.__new__(CompiledKernel)
    vars(received).update(state)
    launch(received)
    its = received.src.fn
    assert its.arg_names == double.arg_names and [p.num for p in its.params if p.is_constexpr] == [3]
    assert its.src == double.src and its.repr(its) == name == "double"
    with pytest.raises(UsageError, match="pickled without its Python function"):
        compiled(its)
    its.fn = double.fn
    its.__globals__ = double.fn.__globals__
    assert compiled(its).hash == kernel.hash


def test_what_is_taken_away_twice_is_put_back():
    """As torch 2.11 does, in the worker and again where it sends the worker's answer on."""
    fn, names = generated(), ("fn", "__globals__", "used_global_vals", "repr")
    taken = []
    for _ in range(2):
        taken.append([getattr(fn, name) for name in names])
        for name in names:
            setattr(fn, name, None)
    assert taken[1] == [None] * len(names)
    for values in reversed(taken):
        for name, value in zip(names, values, strict=True):
            setattr(fn, name, value)
    assert fn.__globals__ is double.fn.__globals__ and compiled(fn).hash == compiled(generated()).hash


def test_kernels_are_pickled_by_name_and_copied():
    assert pickle.loads(pickle.dumps(double)) is double
    fn = generated()
    copied = copy.deepcopy(fn)
    assert copied.fn is double.fn and compiled(copied).hash == compiled(fn).hash
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(fn)


def test_the_namespace_of_a_kernel():
    assert double.__globals__ is globals()
    with pytest.raises(UsageError, match="module that defines it"):
        double.__globals__ = {}


def test_backends():
    assert set(BACKENDS) == {"cpu", "nvidia"} and BACKENDS["cpu"].driver.is_active()
    assert isinstance(driver.active, BACKENDS["cpu"].driver)
    backend = make_backend(TARGET)
    assert isinstance(backend, BACKENDS["cpu"].compiler) and backend.target == Target("cpu", "native", 1)
    assert backend.hash() and backend.parse_attr("D") == [["tt.divisibility", 16]]
    options = backend.parse_options({"num_warps": 8, "num_consumer_groups": 3, "kpack": 2})
    assert options.num_warps == 8 and "num_stages" in vars(options)
    assert make_backend(Target("cuda", 90)).parse_options({}).num_warps == 4
    with pytest.raises(UsageError, match="does not compile for 'hip'"):
        make_backend(Target("hip", "gfx942"))


def test_a_program_may_put_its_own_function_in_front_of_a_kernels(monkeypatch):
    seen, made = [], CompiledKernel.__init__

    def watched(self, src, metadata_group, hash):
        seen.append((src.name, [name for name in metadata_group if name.endswith(".json")]))
        made(self, src, metadata_group, hash)

    monkeypatch.setattr(CompiledKernel, "__init__", watched)
    assert compiled().asm["ttir"] and seen == [("double", [])]


def test_no_kernel_is_made_of_files():
    with pytest.raises(UsageError, match="not of the files of a cache"):
        CompiledKernel(None, {"add.json": "add.json", "add.cubin": "add.cubin"}, "key")
