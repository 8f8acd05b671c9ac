"""A few registers less, where more blocks fit then: when it is tried, and when it is kept."""

import re

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for

import deuteron
import deuteron.language as tl
from deuteron.backend.cuda.assembler import fit_registers
from deuteron.backend.cuda.assembler.fit_registers import assemble_to_fit, memory_bound_limits
from deuteron.backend.cuda.assembler.live_registers import live_registers
from deuteron.backend.cuda.assembler.ptxas import Cubin, Resources
from deuteron.backend.cuda.target import architecture
from deuteron.errors import AssemblerError, OutOfResources

HOPPER = architecture(90)
LIMITS = [
    # threads, registers, shared bytes -> limits
    (512, 34, 0, [32]),
    (512, 65, 0, [64]),
    (512, 64, 0, [40]),  # half as many blocks again, since all threads of one wait at once
    (256, 64, 0, []),  # the next but one would need 40
    (256, 44, 0, []),  # six blocks instead of five are not enough for four registers
    (256, 42, 0, [32, 40]),  # but for two, where eight spill
    (256, 35, 0, [32]),
    (512, 34, 70 * 1024, []),  # shared memory limits it as well
    (1024, 33, 0, [32]),
]
PTX = ".version 8.3\n.target sm_90a\n.visible .entry k()\n.reqntid 512\n{\n\tret;\n}\n"


@pytest.mark.parametrize(("threads", "registers", "shared", "limits"), LIMITS)
def test_limits(threads, registers, shared, limits):
    assert memory_bound_limits(HOPPER.machine, threads, registers, shared) == limits


def test_what_computes_keeps_its_registers(monkeypatch):
    """Of 40 registers a fifth would go: not where there are hundreds of instructions for a load."""
    for count, expected in ((300, 1), (100, 2)):
        texts: list[str] = []
        monkeypatch.setattr(
            fit_registers, "assemble", lambda ptx, *_, t=texts: t.append(ptx) or Cubin(b"", Resources(40), ())
        )
        body = "\tld.global.b32 \t%r1, [%rd1];\n" + "\tadd.s32 \t%r1, %r1, 1;\n" * count
        assemble_to_fit(PTX.replace("512", "256").replace("\tret;", body + "\tret;"), HOPPER, 0, True)
        assert len(texts) == expected


@pytest.mark.parametrize(("threads", "registers", "told"), [(512, 63, 40), (512, 100, 64), (256, 63, None)])
def test_many_threads_give_more_registers_for_half_as_many_blocks_again(monkeypatch, threads, registers, told):
    texts: list[str] = []
    monkeypatch.setattr(
        fit_registers, "assemble", lambda ptx, *_: texts.append(ptx) or Cubin(b"", Resources(registers), ())
    )
    assemble_to_fit(PTX.replace("512", str(threads)), HOPPER, 0, True)
    assert [f".maxnreg {told}\n" in text for text in texts[1:]] == ([] if told is None else [True])


class Assembler:
    """In the place of ptxas: uses 34 registers, or what it is given and spills."""

    def __init__(self, spilled: int):
        self.texts: list[str] = []
        self.spilled = spilled

    def __call__(self, ptx: str, name: str, fp_fusion: bool, process: object = None) -> Cubin:
        self.texts.append(ptx)
        fitted = len(self.texts) > 1
        return Cubin(b"", Resources(32 if fitted else 34, spill_stores=self.spilled if fitted else 0), ())


def test_one_that_says_how_many_blocks_are_enough_keeps_its_registers(monkeypatch):
    monkeypatch.setattr(fit_registers, "assemble", assembler := Assembler(0))
    said = PTX.replace(".reqntid 512\n", ".reqntid 512\n.minnctapersm 1\n")
    assert assemble_to_fit(said, HOPPER, 0, True).resources.registers == 34
    assert len(assembler.texts) == 1


@pytest.mark.parametrize(("spilled", "registers"), [(0, 32), (8, 34)])
def test_kept_unless_it_spills(monkeypatch, spilled, registers):
    monkeypatch.setattr(fit_registers, "assemble", assembler := Assembler(spilled))
    assert assemble_to_fit(PTX, HOPPER, 0, True).resources.registers == registers
    assert len(assembler.texts) == 2 and ".reqntid 512\n.maxnreg 32\n{" in assembler.texts[1]


@pytest.mark.parametrize(("fits", "tried"), [(32, [32]), (40, [32, 40]), (64, [32, 40])])
def test_fewer_blocks_more_are_tried_where_many_spill(monkeypatch, fits, tried):
    """Of 42 registers, where a thread needs so many."""
    limits: list[int] = []

    def assembled(ptx: str, *_: object) -> Cubin:
        limit = re.search(r"\.maxnreg (\d+)", ptx)
        limits.extend([int(limit[1])] if limit else [])
        registers = limits[-1] if limits else 42
        return Cubin(b"", Resources(registers, spill_stores=64 if registers < fits and limits else 0), ())

    monkeypatch.setattr(fit_registers, "assemble", assembled)
    kept = assemble_to_fit(PTX.replace("512", "256"), HOPPER, 0, True).resources.registers
    assert limits == tried and kept == (fits if fits in tried else 42)


@pytest.mark.parametrize(("stacks", "registers"), [((8, 0), 40), ((8, 8), 32), ((0, 8), 34), ((0, 0), 32)])
def test_a_function_has_no_stack(monkeypatch, stacks, registers):
    """ptxas takes 32 with a stack, and is told 40; or 34 without one, and is told 32."""
    told = []

    def assemble(ptx: str, *_: object) -> Cubin:
        limit = re.search(r"\.maxnreg (\d+)", ptx)
        told.append(int(limit[1]) if limit else 34 if stacks[0] == 0 else 32)
        return Cubin(b"", Resources(told[-1], stack_bytes=stacks[len(told) - 1]), ())

    monkeypatch.setattr(fit_registers, "assemble", assemble)
    ptx = PTX.replace("{", "{\n\tcall.uni (retval0), reduce, (param0);", 1)
    assert assemble_to_fit(ptx, HOPPER, 0, True).resources.registers == registers


@pytest.mark.parametrize(("spilled", "registers"), [(0, 32), (32, 32), (40, 36)])
def test_a_few_registers_are_spilled_for_twice_the_blocks(monkeypatch, spilled, registers):
    cubins = [Cubin(b"", Resources(36), ()), Cubin(b"", Resources(32, spill_loads=spilled), ())]
    monkeypatch.setattr(fit_registers, "assemble", lambda *_: cubins.pop(0))
    ptx = PTX.replace("512", "1024")
    assert assemble_to_fit(ptx, HOPPER, 0, True).resources.registers == registers


@pytest.mark.parametrize(
    ("registers", "spilled", "then", "texts"),
    [
        (40, 16, 0, 2),
        (40, 16, 24, 3),
        (128, 16, 0, 1),  # all that 512 threads can have
    ],
)
def test_what_spills_with_registers_left_is_told_how_many_it_takes(monkeypatch, registers, spilled, then, texts):
    found = []

    def assembler(ptx: str, name: str, fp_fusion: bool, process: object = None) -> Cubin:
        found.append(ptx)
        spills = [spilled, then, 0][len(found) - 1]
        return Cubin(b"", Resources(registers, spill_stores=spills), ())

    monkeypatch.setattr(fit_registers, "assemble", assembler)
    assert assemble_to_fit(PTX, HOPPER, 0, True).resources.spill_bytes == (0 if texts > 1 else spilled)
    assert len(found) == texts
    assert texts == 1 or f".maxnreg {registers}\n" in found[1]
    assert texts < 3 or ".maxnreg 64\n" in found[2]  # two CTAs instead of three


def with_values(count: int) -> str:
    """A kernel that loads so many values of 32 bits before it stores them."""
    loads = "".join(f"\tld.global.b32 %r{n}, [%rd1+{4 * n}];\n" for n in range(count))
    stores = "".join(f"\tst.global.b32 [%rd1+{4 * n}], %r{n};\n" for n in range(count))
    values = f"\t.reg .b32 %r<{count}>;\n\t.reg .b64 %rd<2>;\n\tmov.b64 %rd1, 0;\n{loads}{stores}"
    return PTX.replace("\tret;", f"{values}\tret;")


@pytest.mark.parametrize(("count", "live"), [(1, 3), (100, 102)])
def test_values_live_from_their_first_to_their_last_place(count, live):
    assert live_registers(with_values(count)) == live


def test_values_that_follow_one_another_share_registers():
    moves = "".join(f"\tmov.b32 %r{n + 1}, %r{n};\n" for n in range(100))
    assert live_registers(PTX.replace("\tret;", f"\t.reg .b32 %r<102>;\n{moves}\tret;")) == 2


@pytest.mark.parametrize(
    ("count", "threads", "limits"),
    [(100, 512, [None, "32"]), (500, 512, ["128"]), (500, 640, ["96"]), (500, 384, ["168"]), (900, 160, ["255"])],
)
def test_what_has_far_more_values_than_registers_is_given_all_at_once(monkeypatch, count, threads, limits):
    """As many as a block can be launched with: 102 of 640 threads were refused by an H100, since warps get units."""
    monkeypatch.setattr(fit_registers, "assemble", assembler := Assembler(0))
    assemble_to_fit(with_values(count).replace(".reqntid 512", f".reqntid {threads}"), HOPPER, 0, True)
    found = [re.search(r"^\.maxnreg (\d+)$", text, re.MULTILINE) for text in assembler.texts]
    assert [match and match[1] for match in found] == limits


@pytest.mark.parametrize("line", [".maxnreg 40\n", "\tmma.sync.aligned\n", "\twgmma.mma_async.sync\n"])
def test_what_stays(monkeypatch, line):
    monkeypatch.setattr(fit_registers, "assemble", assembler := Assembler(0))
    assemble_to_fit(PTX.replace("{\n", f"{line}{{\n") if "maxnreg" in line else PTX + line, HOPPER, 0, True)
    assert len(assembler.texts) == 1


@pytest.mark.parametrize(
    ("registers", "spilled", "said", "kept"),
    [
        (134, 0, (), 122),  # twice the blocks
        (134, 8, (), 134),
        (134, 0, ("(C7510) wgmma serialised",), 134),
        (138, 0, (), 122),
        (190, 0, (), 190),  # more than three tenths
        (90, 0, (), 122),  # three blocks for two
        (72, 0, (), 72),  # four for three
    ],
)
def test_dots_give_up_registers_for_half_as_many_blocks_again(monkeypatch, registers, spilled, said, kept):
    cubins = [Cubin(b"", Resources(registers), ()), Cubin(b"", Resources(122, spill_stores=spilled), said)]
    monkeypatch.setattr(fit_registers, "assemble", lambda *_: cubins.pop(0))
    ptx = PTX.replace("512", "256").replace("\tret;", "\tmma.sync.aligned\n\tret;")
    assert assemble_to_fit(ptx, HOPPER, 0, True).resources.registers == kept


@pytest.mark.parametrize(
    "error", [OutOfResources(90, 80, "registers per thread"), AssemblerError("(C7600) Register allocation failed")]
)
def test_dots_that_need_more_keep_what_they_had(monkeypatch, error):
    def assemble(ptx: str, *_: object) -> Cubin:
        if ".maxnreg" in ptx:
            raise error
        return Cubin(b"", Resources(90), ())

    monkeypatch.setattr(fit_registers, "assemble", assemble)
    ptx = PTX.replace("512", "256").replace("\tret;", "\twgmma.mma_async.sync\n\tret;")
    assert assemble_to_fit(ptx, HOPPER, 0, True).resources.registers == 90


@deuteron.jit
def layer_norm(x, weight, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=0.0)
    centred = tl.where(i < n, row - tl.sum(row) / n, 0.0)
    y = centred / tl.sqrt(tl.sum(centred * centred) / n) * tl.load(weight + i, mask=i < n)
    tl.store(out + tl.program_id(0) * n + i, y, mask=i < n)


def test_a_kernel_that_memory_bounds_fills_a_multiprocessor():
    x = aligned(np.zeros(4096, np.float32))
    kernel = compile_for("cuda:90", layer_norm, x, x, x, 4096, BLOCK=4096, num_warps=16)
    assert kernel.metadata.resources["registers"] <= 32 and not kernel.metadata.resources["spill_bytes"]
