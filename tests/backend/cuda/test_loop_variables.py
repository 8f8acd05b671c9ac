"""Addresses that loops advance: of two texts that LLVM makes, the one with room for tiles in registers."""

from concurrent.futures import ThreadPoolExecutor
from functools import cache

import pytest

import deuteron
import deuteron.language as tl
from deuteron.backend.cuda.assembler import loop_variables
from deuteron.backend.cuda.assembler.live_registers import live_registers
from deuteron.backend.cuda.assembler.loop_variables import MANY, advanced_registers, emit_ptx_to_fit
from deuteron.backend.cuda.target import architecture
from deuteron.backend.llvm import nvptx
from deuteron.backend.llvm.nvptx import emit_ptx
from deuteron.compiler import ASTSource
from deuteron.machine.gpu import USUAL_REGISTERS

H100 = architecture("90")


@deuteron.jit
def states(k, w, h, ends, B: tl.constexpr):
    """A recurrence over the chunks of a sequence: copies of rows, each of which has an address in every iteration."""
    head, begin = tl.program_id(0).to(tl.int64), tl.load(ends)
    length = tl.load(ends + 1) - begin
    w, k = (p + begin * B * 4 + head * B for p in (w, k))
    rows, columns = tl.arange(0, B), tl.arange(0, B)
    state = tl.zeros([B, B], dtype=tl.float32)
    for t in range(tl.cdiv(length, B)):
        at = t * B + rows
        kept = (at < length)[:, None]
        place = at[:, None] * (4 * B) + columns[None, :]
        tl.store(h + (t * 4 + head) * B * B + rows[:, None] * B + columns[None, :], state.to(tl.float16))
        new = tl.dot(tl.load(w + place, mask=kept, other=0.0), state.to(tl.float16))
        state += tl.dot(tl.trans(tl.load(k + place, mask=kept, other=0.0)), new.to(tl.float16))


@cache
def llir_of(num_warps: int) -> str:
    signature = {"k": "*fp16", "w": "*fp16", "h": "*fp16", "ends": "*i64"}
    aligned = {(index,): [["tt.divisibility", 16]] for index in range(4)}
    source = ASTSource(states, signature, {"B": 64}, aligned)
    return deuteron.compile(source, target="cuda:90", options={"num_warps": num_warps}).asm["llir"]


def emitted(num_warps: int, strength_reduction: bool = True) -> str:
    return emit_ptx(llir_of(num_warps), H100.name, H100.ptx_version, strength_reduction)


def test_addresses_that_fill_registers_are_computed_where_they_are_needed():
    advanced, ptx = emitted(2), emit_ptx_to_fit(llir_of(2), H100)
    assert advanced_registers(advanced) >= 48 and advanced_registers(ptx) < MANY
    assert live_registers(ptx) <= live_registers(advanced) - 32
    assert ptx.count("cp.async.cg") == advanced.count("cp.async.cg") > 0


def test_a_few_are_advanced_as_llvm_has_it():
    assert emit_ptx_to_fit(llir_of(16), H100) == emitted(16) != emitted(16, strength_reduction=False)


@pytest.mark.parametrize(("less", "emissions"), [(1, [False]), (-1, [False, True])])
def test_a_long_text_that_fills_the_registers_is_emitted_without_first(monkeypatch, less, emissions):
    plain, made = emitted(2, strength_reduction=False), []

    def recorded(*args, strength_reduction=True):
        made.append(strength_reduction)
        return emit_ptx(*args, strength_reduction)

    monkeypatch.setattr(nvptx, "emit_ptx", recorded)
    monkeypatch.setattr(nvptx, "LONG", 0)
    monkeypatch.setattr(loop_variables, "CROWDED", (live_registers(plain) - less) / USUAL_REGISTERS)
    assert emit_ptx_to_fit(llir_of(2), H100) == plain
    assert made == emissions


def test_strength_reduction_is_left_out_of_one_emission_only():
    before = emitted(2)
    without = emitted(2, strength_reduction=False)
    assert emitted(2) == before != without


def test_threads_do_not_take_strength_reduction_from_one_another():
    alone = {choice: emitted(16, choice) for choice in (True, False)}
    wanted = [bool(number % 2) for number in range(24)]
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda choice: emitted(16, choice), wanted))
    assert made == [alone[choice] for choice in wanted]
