"""What a kernel for a CPU needs the processor to have, so that a program finds out before it runs into it.

    required_features("x86-64-v3")     (Feature("avx", 1, 0, 2, 28, 0x6), Feature("avx2", 7, 0, 1, 5, 0x6), ...)

LLVM has no call that lists what a CPU name implies, but it inlines a function into another only if the other has all of
its features. So for every feature a function that has it is offered to one that is compiled for the CPU (12 ms in all).
Only what LLVM's code generation uses by itself is asked for; tiles of AMX, which it does not, of kernels that use them,
and of the system as well. On AArch64 nothing is checked.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from deuteron.backend.llvm.compile import optimise
from deuteron.backend.llvm.targets import architecture_of, machine, resolve_cpu

AVX, AVX512, APX, TILES = 0x6, 0xE6, 0x80000, 0x60000  # what the system must save of the registers: bits of XCR0
EAX, EBX, ECX, EDX = range(4)


class Feature(NamedTuple):
    """A feature by LLVM's name: the bit of CPUID that says it (Intel SDM vol. 2A), and the state it needs saved."""

    name: str
    leaf: int
    subleaf: int
    reg: int
    bit: int
    state: int = 0


X86_FEATURES = (
    Feature("sse3", 1, 0, ECX, 0),
    Feature("ssse3", 1, 0, ECX, 9),
    Feature("fma", 1, 0, ECX, 12, AVX),
    Feature("sse4.1", 1, 0, ECX, 19),
    Feature("sse4.2", 1, 0, ECX, 20),
    Feature("movbe", 1, 0, ECX, 22),
    Feature("popcnt", 1, 0, ECX, 23),
    Feature("avx", 1, 0, ECX, 28, AVX),
    Feature("f16c", 1, 0, ECX, 29, AVX),
    Feature("bmi", 7, 0, EBX, 3),
    Feature("avx2", 7, 0, EBX, 5, AVX),
    Feature("bmi2", 7, 0, EBX, 8),
    Feature("avx512f", 7, 0, EBX, 16, AVX512),
    Feature("avx512dq", 7, 0, EBX, 17, AVX512),
    Feature("avx512ifma", 7, 0, EBX, 21, AVX512),
    Feature("avx512cd", 7, 0, EBX, 28, AVX512),
    Feature("avx512bw", 7, 0, EBX, 30, AVX512),
    Feature("avx512vl", 7, 0, EBX, 31, AVX512),
    Feature("avx512vbmi", 7, 0, ECX, 1, AVX512),
    Feature("avx512vbmi2", 7, 0, ECX, 6, AVX512),
    Feature("gfni", 7, 0, ECX, 8),
    Feature("avx512vnni", 7, 0, ECX, 11, AVX512),
    Feature("avx512bitalg", 7, 0, ECX, 12, AVX512),
    Feature("avx512vpopcntdq", 7, 0, ECX, 14, AVX512),
    Feature("avx512fp16", 7, 0, EDX, 23, AVX512),
    Feature("avxvnni", 7, 1, EAX, 4, AVX),
    Feature("avx512bf16", 7, 1, EAX, 5, AVX512),
    Feature("avxifma", 7, 1, EAX, 23, AVX),
    Feature("avxvnniint8", 7, 1, EDX, 4, AVX),
    Feature("avxneconvert", 7, 1, EDX, 5, AVX),
    Feature("avxvnniint16", 7, 1, EDX, 10, AVX),
    Feature("egpr", 7, 1, EDX, 21, APX),
    Feature("avx10.2", 0x24, 0, EBX, 1, AVX512),
    Feature("lzcnt", 0x80000001, 0, ECX, 5),
    Feature("sse4a", 0x80000001, 0, ECX, 6),
    Feature("xop", 0x80000001, 0, ECX, 11, AVX),
    Feature("fma4", 0x80000001, 0, ECX, 16, AVX),
    Feature("tbm", 0x80000001, 0, ECX, 21),
)
TILE_FEATURES = (
    Feature("amx-bf16", 7, 0, EDX, 22, TILES),
    Feature("amx-tile", 7, 0, EDX, 24, TILES),
    Feature("amx-int8", 7, 0, EDX, 25, TILES),
)


@cache
def required_features(arch: str) -> tuple[Feature, ...]:
    """The features that code for an LLVM CPU name (or "native") may use; raises UsageError for an unknown name."""
    cpu, features = resolve_cpu(arch)
    if architecture_of(arch) != "x86_64":
        return ()
    inlined = optimise(_probe(cpu, features), cpu, features, 1)
    return tuple(feature for i, feature in enumerate(X86_FEATURES) if f"@callee{i}(" not in inlined)


def runs_here(arch: str) -> bool:
    """Whether this machine's processor runs code for an LLVM CPU name."""
    is_ours = architecture_of(arch) == machine()
    return is_ours and set(required_features(arch)) <= set(required_features("native"))


def _probe(cpu: str, features: str) -> str:
    """For every feature a function that has it, and one for the CPU that calls it."""
    text = [f'attributes #0 = {{ "target-cpu"="{cpu}" "target-features"="{features}" }}']
    for i, feature in enumerate(X86_FEATURES):
        text += [
            f"define internal i32 @callee{i}(i32 %x) #{i + 1} {{\n  %y = add i32 %x, 1\n  ret i32 %y\n}}",
            f"define i32 @caller{i}(i32 %x) #0 {{\n  %y = call i32 @callee{i}(i32 %x)\n  ret i32 %y\n}}",
            f'attributes #{i + 1} = {{ "target-cpu"="x86-64" "target-features"="+{feature.name}" }}',
        ]
    return "\n".join(text)
