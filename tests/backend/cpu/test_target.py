"""What a CPU has, as LLVM's code for it shows."""

from __future__ import annotations

import platform

import pytest

from deuteron.backend.cpu.target import MOST_SECOND_CACHE, cpu_target
from deuteron.backend.llvm.targets import resolve_cpu
from deuteron.machine.cpu import USUAL_CACHE, USUAL_SECOND_CACHE

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="names CPUs of x86-64")


@pytest.mark.parametrize(
    ("arch", "bits", "registers", "converts_half", "rounds"),
    [
        ("x86-64", 128, 16, False, False),
        ("x86-64-v2", 128, 16, False, True),
        ("x86-64-v3", 256, 16, True, True),
        ("x86-64-v4", 512, 32, True, True),
        ("znver3", 256, 16, True, True),
    ],
)
def test_registers_and_instructions(arch, bits, registers, converts_half, rounds):
    target = cpu_target(*resolve_cpu(arch))
    assert (target.vector_bits, target.vector_registers) == (bits, registers)
    assert (target.converts_half, target.rounds) == (converts_half, rounds)


def test_vector_width_counts_elements():
    target = cpu_target(*resolve_cpu("x86-64-v3"))
    assert [target.vector_width(bits) for bits in (64, 32, 16, 8)] == [4, 8, 16, 32]


def test_no_more_of_a_cache_counts_than_is_usual():
    """A virtual machine is told of a cache that it shares with others."""
    assert cpu_target(*resolve_cpu("x86-64-v3")).cache_bytes == USUAL_CACHE
    assert 0 < cpu_target(*resolve_cpu("native")).cache_bytes <= USUAL_CACHE
    assert cpu_target(*resolve_cpu("x86-64-v3")).second_cache_bytes == USUAL_SECOND_CACHE
    assert 0 < cpu_target(*resolve_cpu("native")).second_cache_bytes <= MOST_SECOND_CACHE


@pytest.mark.parametrize(
    ("arch", "are_fast"), [("x86-64-v4", False), ("znver4", False), ("sapphirerapids", True), ("x86-64-v3", False)]
)
def test_processors_that_gather_fast(arch, are_fast):
    assert cpu_target(*resolve_cpu(arch)).gathers_fast == are_fast
