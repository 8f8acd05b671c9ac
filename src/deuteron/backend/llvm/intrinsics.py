"""Intrinsics of one processor family that code may call, and how to find out whether a CPU has them.

LLVM ends the process on one that the CPU lacks, and has no call that tells. But it uses instructions of the same
extension by itself: a probe is compiled, and its assembly read. Those of AMX it never does; but a function for a
feature becomes part of its caller only where the caller's CPU has that feature.

    PROBES["llvm.x86.avx512bf16.dpbf16ps.512"]      Probe(<a conversion to bf16>, "vcvtneps2bf16 ... %ymm")
    PROBES["llvm.x86.tdpbf16ps"]                    Probe(<a call of a function with +amx-bf16>, no call is left)
"""

from __future__ import annotations

import re
from typing import NamedTuple

DPBF16 = "llvm.x86.avx512bf16.dpbf16ps.512"
VPDPBUSD = "llvm.x86.avx512.vpdpbusd.512"
TDPBF16PS = "llvm.x86.tdpbf16ps"
TDPBSSD = "llvm.x86.tdpbssd"
TDPFP16PS = "llvm.x86.tdpfp16ps"
LDTILECFG, TILERELEASE = "llvm.x86.ldtilecfg", "llvm.x86.tilerelease"
SCALEF_PS, SCALEF_PD = "llvm.x86.avx512.mask.scalef.ps.512", "llvm.x86.avx512.mask.scalef.pd.512"
GETEXP_PS, GETMANT_PS = "llvm.x86.avx512.mask.getexp.ps.512", "llvm.x86.avx512.mask.getmant.ps.512"
VPERMI2PS, VPERMI2PD = "llvm.x86.avx512.vpermi2var.ps.512", "llvm.x86.avx512.vpermi2var.pd.512"
FPCLASSPS = "llvm.x86.avx512.fpclass.ps.512"
CVTNEPS2BF16, CVTNE2PS2BF16 = "llvm.x86.avx512bf16.cvtneps2bf16.512", "llvm.x86.avx512bf16.cvtne2ps2bf16.512"
PAUSE = "llvm.x86.sse2.pause"
STMXCSR, LDMXCSR = "llvm.x86.sse.stmxcsr", "llvm.x86.sse.ldmxcsr"
GET_FPCR, SET_FPCR = "llvm.aarch64.get.fpcr", "llvm.aarch64.set.fpcr"
EVERY_AARCH64 = frozenset((GET_FPCR, SET_FPCR))
TILELOAD, TILESTORE, TILEZERO = "llvm.x86.tileloadd64", "llvm.x86.tilestored64", "llvm.x86.tilezero"


class Probe(NamedTuple):
    """LLVM IR, and what its assembly has in it where the CPU has the extension; `is_optimised`: after the passes."""

    llir: str
    instruction: re.Pattern[str]
    is_optimised: bool = False


_BF16_PROBE = """
define void @probe(ptr %p) {
  %x = load <16 x float>, ptr %p
  %y = fptrunc <16 x float> %x to <16 x bfloat>
  store <16 x bfloat> %y, ptr %p
  ret void
}
"""

_SSE2_PROBE = """
define double @probe(double %x) {
  %y = fadd double %x, %x
  ret double %y
}
"""

_AVX512_PROBE = """
define void @probe(ptr %p) {
  %x = load <16 x float>, ptr %p
  %y = fadd <16 x float> %x, %x
  store <16 x float> %y, ptr %p
  ret void
}
"""

_EVEN = ", ".join(f"i32 {lane}" for lane in range(0, 32, 2))
_ODD = ", ".join(f"i32 {lane}" for lane in range(1, 32, 2))
_PAIRS_PROBE = f"""
define void @probe(ptr %p, ptr %q, ptr %r) {{
  %x = load <32 x i16>, ptr %p
  %y = load <32 x i16>, ptr %r
  %wide = sext <32 x i16> %x to <32 x i32>
  %other = sext <32 x i16> %y to <32 x i32>
  %products = mul <32 x i32> %wide, %other
  %even = shufflevector <32 x i32> %products, <32 x i32> poison, <16 x i32> <{_EVEN}>
  %odd = shufflevector <32 x i32> %products, <32 x i32> poison, <16 x i32> <{_ODD}>
  %total = load <16 x i32>, ptr %q
  %pairs = add <16 x i32> %even, %odd
  %sum = add <16 x i32> %total, %pairs
  store <16 x i32> %sum, ptr %q
  ret void
}}
"""


def _feature_probe(feature: str) -> Probe:
    llir = f"""
define internal i32 @with_feature(i32 %x) #0 {{
  %y = mul i32 %x, 77
  ret i32 %y
}}
define i32 @probe(i32 %x) {{
  %y = call i32 @with_feature(i32 %x)
  ret i32 %y
}}
attributes #0 = {{ "target-cpu"="x86-64" "target-features"="+{feature}" }}
"""
    return Probe(llir, re.compile(r"^probe:(?:(?!callq?\b|jmp\b|\.cfi_endproc)[\s\S])*\$77,", re.MULTILINE), True)


PROBES = {
    **dict.fromkeys((DPBF16, CVTNEPS2BF16, CVTNE2PS2BF16), Probe(_BF16_PROBE, re.compile(r"vcvtneps2bf16\t.*%ymm"))),
    VPDPBUSD: Probe(_PAIRS_PROBE, re.compile(r"vpdpwssd\t.*%zmm")),
    TDPBF16PS: _feature_probe("amx-bf16"),
    TDPBSSD: _feature_probe("amx-int8"),
    TDPFP16PS: _feature_probe("amx-fp16"),
    **dict.fromkeys((PAUSE, STMXCSR, LDMXCSR), Probe(_SSE2_PROBE, re.compile(r"addsd\t"))),
    **dict.fromkeys(
        (SCALEF_PS, SCALEF_PD, GETEXP_PS, GETMANT_PS, VPERMI2PS, VPERMI2PD, FPCLASSPS),
        Probe(_AVX512_PROBE, re.compile(r"vaddps\t.*%zmm")),
    ),
    **dict.fromkeys((LDTILECFG, TILERELEASE, TILELOAD, TILESTORE, TILEZERO), _feature_probe("amx-tile")),
}
