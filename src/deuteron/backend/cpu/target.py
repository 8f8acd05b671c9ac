"""The description of a CPU, asked of LLVM.

    cpu_target(*resolve_cpu("x86-64-v3"))
    CPU(cpu="x86-64-v3", features="", vector_bits=256, vector_registers=16, converts_half=True, ...)

LLVM has no call that lists what a CPU name implies. So a probe is compiled, and its assembly read, once for each CPU.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from deuteron.backend.llvm.compile import emit_assembly, external_symbols
from deuteron.backend.llvm.targets import architecture_of, resolve_cpu
from deuteron.machine.cpu import CPU, USUAL_CACHE, USUAL_SECOND_CACHE

MOST_SECOND_CACHE = 2 << 20  # of one core; what is larger several share
_ANY_PROCESSOR = ("x86-64", "generic")


@cache
def cpu_target(cpu: str, features: str) -> CPU:
    """The target of a CPU as `resolve_cpu` gives it."""
    bits, registers = _vector_registers(emit_assembly(_ADD_PROBE, cpu, features, 1), architecture_of(cpu))
    has = [not external_symbols(emit_assembly(probe, cpu, features, 1)) for probe in _PROBES]
    has += ["vmovdqu16" in emit_assembly(_MASK_PROBE, cpu, features, 1), bits >= 512 and _gathers_fast(cpu, features)]
    return CPU(cpu, features, bits, registers, *has, *_cache_bytes(cpu, features))


def _gathers_fast(cpu: str, features: str) -> bool:
    """Whether LLVM gathers on a processor without its AVX-512, for which it asks how fast that is; not on this machine
    where Linux says that its processor does so more slowly for safety, nor on a processor that is not known.
    """
    if cpu.startswith(_ANY_PROCESSOR) or "gather" not in emit_assembly(_GATHER_PROBE, cpu, f"{features},-avx512f", 1):
        return False
    return (cpu, features) != resolve_cpu("native") or not _is_mitigated("gather_data_sampling")


def _is_mitigated(vulnerability: str) -> bool:
    """Whether Linux says that this machine's processor avoids something."""
    says = Path("/sys/devices/system/cpu/vulnerabilities") / vulnerability
    return says.is_file() and says.read_text().startswith("Mitigation")


def _cache_bytes(cpu: str, features: str) -> tuple[int, int]:
    """The last and the second cache of this machine's processor as Linux tells of them, or what is usual; of another
    processor that.
    """
    if (cpu, features) != resolve_cpu("native"):
        return USUAL_CACHE, USUAL_SECOND_CACHE
    caches = Path("/sys/devices/system/cpu/cpu0/cache")
    found = [_kibibytes(size.read_text()) << 10 for size in caches.glob("index*/size")]
    second = [
        _kibibytes((level.parent / "size").read_text()) << 10
        for level in caches.glob("index*/level")
        if level.read_text().strip() == "2"
    ]
    last = min(max(found, default=0) or USUAL_CACHE, USUAL_CACHE)
    return last, min(max(second, default=0) or USUAL_SECOND_CACHE, MOST_SECOND_CACHE)


def _kibibytes(text: str) -> int:
    """Of a size as Linux writes it: `32768K`; 0 of anything else."""
    number, unit, rest = text.partition("K")
    return int(number) if number.isdigit() and unit and not rest.strip() else 0


def _vector_registers(assembly: str, architecture: str) -> tuple[int, int]:
    if "%zmm" in assembly:
        return 512, 32
    if "%ymm" in assembly:
        return 256, 16
    return 128, 16 if architecture == "x86_64" else 32


_ADD_PROBE = """
define void @probe(ptr %p) {
  %x = load <16 x float>, ptr %p
  %sum = fadd <16 x float> %x, %x
  store <16 x float> %sum, ptr %p
  ret void
}
"""

_HALF_PROBE = """
define void @probe(ptr %p, ptr %q) {
  %x = load <8 x half>, ptr %p
  %y = fpext <8 x half> %x to <8 x float>
  store <8 x float> %y, ptr %q
  ret void
}
"""

_FLOOR_PROBE = """
declare float @llvm.floor.f32(float)
define float @probe(float %x) {
  %y = call float @llvm.floor.f32(float %x)
  ret float %y
}
"""

_FUSED_PROBE = """
declare float @llvm.fma.f32(float, float, float)
define float @probe(float %x) {
  %y = call float @llvm.fma.f32(float %x, float %x, float %x)
  ret float %y
}
"""

_EXCHANGE_PROBE = """
define i128 @probe(ptr %p, i128 %old, i128 %new) {
  %pair = cmpxchg ptr %p, i128 %old, i128 %new seq_cst seq_cst, align 16
  %found = extractvalue { i128, i1 } %pair, 0
  ret i128 %found
}
"""

_MASK_PROBE = """
declare <32 x i16> @llvm.masked.load.v32i16.p0(ptr, i32, <32 x i1>, <32 x i16>)
define void @probe(ptr %p, ptr %q, <32 x i1> %mask) {
  %x = call <32 x i16> @llvm.masked.load.v32i16.p0(ptr %p, i32 2, <32 x i1> %mask, <32 x i16> zeroinitializer)
  store <32 x i16> %x, ptr %q, align 2
  ret void
}
"""

_GATHER_PROBE = """
declare <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr>, i32, <8 x i1>, <8 x float>)
define void @probe(ptr %p, <8 x i32> %at, <8 x i1> %mask) {
  %places = getelementptr float, ptr %p, <8 x i32> %at
  %x = call <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr> %places, i32 4, <8 x i1> %mask, <8 x float> undef)
  store <8 x float> %x, ptr %p
  ret void
}
"""

_PROBES = (_HALF_PROBE, _FLOOR_PROBE, _FUSED_PROBE, _EXCHANGE_PROBE)
