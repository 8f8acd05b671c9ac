"""What releases of ptxas are known to get wrong is said of the kernels that it concerns."""

from __future__ import annotations

import numpy as np
import pytest
from backend.cuda.launching import compile_for

import deuteron
import deuteron.language as tl
from deuteron.backend.cuda.assembler import ptxas
from deuteron.backend.cuda.assembler.ptxas import assemble, known_defects
from deuteron.errors import AssemblerError, OutOfResources, UsageError

OF_REGISTERS = (
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r1,%r2,%r3,%r4}, {%r5,%r6,%r7,%r8}, %rd1, p, 1, 1, 0;"
)
OF_SHARED = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r1,%r2,%r3,%r4}, %rd2, %rd1, p, 1, 1, 0, 0;"


@pytest.mark.parametrize("version, warns", [("13.0", True), ("12.9", True), ("13.3", False), ("13.5", False)])
def test_warns_of_wgmma_of_registers(version, warns):
    found = known_defects(OF_REGISTERS, version)
    assert bool(found) == warns
    assert all(version in message and "13.3" in message for message in found)
    assert known_defects(OF_SHARED, version) == ()


def test_what_is_known_is_among_the_messages(monkeypatch: pytest.MonkeyPatch):
    ptx = ".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry kernel() { ret; }\n"
    assert assemble(ptx, "sm_90a").messages == ()
    monkeypatch.setattr("deuteron.backend.cuda.assembler.ptxas.ptxas_version", lambda: "13.0")
    assert "13.3" in assemble(f"{ptx}// {OF_REGISTERS}\n", "sm_90a").messages[0]


def test_what_ptxas_does_not_accept_is_an_error_of_its_own():
    """Autotuners of other programs go on with another configuration after it (Triton's name is PTXASError)."""
    with pytest.raises(AssemblerError, match="ptxas does not accept the PTX for sm_90a"):
        assemble(".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry kernel() { nonsense; }\n", "sm_90a")


@deuteron.jit
def square(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    places = i[:, None] * N + i[None, :]
    tile = tl.load(x + places)
    tl.store(out + places, tl.dot(tile, tile))


def test_fewer_registers_than_an_instruction_takes():
    """What an option leaves too few of is no defect: autotuners go on with another configuration."""
    x, out = np.zeros((64, 64), np.float16), np.zeros((64, 64), np.float32)
    with pytest.raises(
        OutOfResources,
        match="registers per thread: the kernel needs .*, the target has 32. Give a larger `maxnreg`, or fewer",
    ):
        _ = compile_for("cuda:90", square, x, out, N=64, num_warps=4, maxnreg=32).asm["cubin"]


def test_where_ptxas_is_ended_that_is_no_defect_of_the_kernel_s_code(tmp_path, monkeypatch):
    """As by a system that has no memory left: 11 MB of PTX took ptxas 18 GB."""
    (program := tmp_path / "ptxas").write_text("#!/bin/sh\nkill -9 $$\n")
    program.chmod(0o755)
    monkeypatch.setattr(ptxas, "find_ptxas", lambda: program)
    with pytest.raises(UsageError, match=r"signal 9, at 2 lines of PTX for sm_90a\. .*smaller tiles or more warps"):
        assemble(".version 8.3\n.target sm_90a\n", "sm_90a")


def test_its_version_is_asked_once_and_anew_when_it_is_another(tmp_path, monkeypatch):
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(tmp_path / "cache"))
    program, log = tmp_path / "ptxas", tmp_path / "log"
    for release in ("12.9", "13.3"):
        program.write_text(
            f"#!/bin/sh\necho asked >> \"{log}\"\necho 'Cuda compilation tools, release {release}, V1'\n"
        )
        program.chmod(0o755)
        for _ in range(3):
            ptxas._version_of.cache_clear()  # as in another process
            assert ptxas._version_of(program) == release
    ptxas._version_of.cache_clear()
    assert log.read_text() == "asked\n" * 2
