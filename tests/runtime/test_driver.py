"""`driver.active`: the GPU where there is one, else the CPU, or what was set."""

import sys
from types import SimpleNamespace

import pytest
from backend.cuda.fake_driver import FakeDriver

from deuteron.backend import devices
from deuteron.backend.cuda.launch.libcuda import CudaDriver
from deuteron.errors import UsageError
from deuteron.options import Target
from deuteron.runtime import cuda_device, driver
from deuteron.runtime.driver import Driver


@pytest.fixture
def api(monkeypatch):
    monkeypatch.delenv("DEUTERON_TARGET", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "cupy", None)
    api = FakeDriver(capabilities=(90, 80))
    made = CudaDriver(api)
    for module in (devices, cuda_device):
        monkeypatch.setattr(module, "cuda_driver", lambda: made)
        monkeypatch.setattr(module, "num_devices", lambda: made.num_devices)
    monkeypatch.setattr(cuda_device, "has_gpu", lambda: made.num_devices > 0)
    return api


def test_the_gpu_is_active_where_there_is_one(api):
    assert driver.active.get_current_target() == Target("cuda", 90)
    assert (driver.active.get_current_device(), driver.active.get_current_stream()) == (0, 0)
    assert driver.active.is_active()


def test_the_environment_says_cpu(api, monkeypatch):
    monkeypatch.setenv("DEUTERON_TARGET", "cpu")
    assert driver.active.get_current_target() == Target("cpu", "native", 1)


def test_a_driver_that_was_set(api):
    chosen = Driver()
    driver.set_active(chosen)
    assert driver.active is chosen
    driver.reset_active()
    assert driver.active is driver.default is not chosen


def test_drivers_by_their_kind(api):
    driver.set_active_to_cpu()
    assert driver.active.get_current_target().backend == "cpu"
    assert (driver.set_active_to_gpu(), driver.get_active_gpus()) == ("cuda", ["cuda"])
    assert driver.active.get_current_target() == Target("cuda", 90)
    driver.reset_active()


def test_no_gpu_to_be_active(monkeypatch):
    monkeypatch.setattr(cuda_device, "has_gpu", lambda: False)
    with pytest.raises(RuntimeError, match="no GPU was found"):
        driver.set_active_to_gpu()
    assert driver.get_active_gpus() == []


def test_the_device_interface_without_torch(api):
    interface = driver.active.get_device_interface()
    assert (interface.device_count(), interface.current_device(), interface.is_available()) == (2, 0, True)
    interface.set_device(1)
    assert (api.contexts, driver.active.get_current_device()) == (["primary1"], 1)
    interface.synchronize(0)
    interface.synchronize()
    assert api.contexts == ["primary1"]
    assert api.names().count("cuCtxSynchronize") == 2


def test_the_device_interface_is_torchs_where_it_uses_cuda(api, monkeypatch):
    cuda = SimpleNamespace(is_initialized=lambda: True, current_device=lambda: 0)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    assert driver.active.get_device_interface() is cuda


def test_times_on_the_cpu_as_do_bench_takes_them(monkeypatch):
    monkeypatch.setenv("DEUTERON_TARGET", "cpu")
    monkeypatch.setitem(sys.modules, "torch", None)
    interface, cache = driver.active.get_device_interface(), driver.active.get_empty_cache_for_benchmark()
    begin, end = (interface.Event(enable_timing=True) for _ in range(2))
    with pytest.raises(UsageError, match="call record"):
        begin.elapsed_time(end)
    cache[0] = 1
    begin.record()
    driver.active.clear_cache(cache)
    end.record(interface.current_stream())
    interface.synchronize()
    assert 0 < begin.elapsed_time(end) < 60_000
    assert end.query() and cache[0] == 0 and cache.zero_() is cache


def test_what_a_timing_overwrites_is_a_tensor_where_torch_is_used(monkeypatch):
    monkeypatch.setenv("DEUTERON_TARGET", "cpu")
    made = SimpleNamespace(empty=lambda count, dtype: (count, dtype), int32="int32")
    monkeypatch.setitem(sys.modules, "torch", made)
    assert driver.active.get_empty_cache_for_benchmark() == ((32 << 20) // 4, "int32")


def test_properties_of_a_device(api):
    api.attributes = dict.fromkeys(cuda_device._PROPERTIES.values(), 7) | {"MULTIPROCESSOR_COUNT": 132}
    found = driver.active.utils.get_device_properties(0)
    assert found["multiprocessor_count"] == 132
    assert set(found) >= {"max_shared_mem", "max_num_regs", "warpSize"}
