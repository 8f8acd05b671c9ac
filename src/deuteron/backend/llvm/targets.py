"""The CPUs that LLVM generates code for.

    resolve_cpu("native")           CPU("rocketlake", "+avx512f,-amx-fp8,...")
    resolve_cpu("x86-64-v3")        CPU("x86-64-v3", "")
    resolve_cpu("cortex-a72")       CPU("cortex-a72", "-aes,..."), on x86-64 too: what is compiled for it runs elsewhere
    architecture_of("cortex-a72")   "aarch64"
    resolve_cpu("i486")             UsageError: LLVM would end the process on a 32-bit CPU in 64-bit mode

LLVM only warns about a name it does not know and then takes a generic CPU, so names are checked here. The
lists are those of LLVM 22 (`-mcpu=help`) without the ones that it cannot generate 64-bit code for; a test
compares them with LLVM.
"""

from __future__ import annotations

import importlib
import platform
from functools import cache, partial
from typing import NamedTuple

from deuteron.backend.llvm.tile_permission import may_use_tiles
from deuteron.errors import UsageError
from deuteron.once import undisturbed

_X86_64_NAMES = """
    alderlake amdfam10 arrowlake arrowlake-s athlon-fx athlon64 athlon64-sse3 atom barcelona bdver1
    bdver2 bdver3 bdver4 bonnell broadwell btver1 btver2 cannonlake cascadelake clearwaterforest
    cooperlake core-avx-i core-avx2 core2 corei7 corei7-avx diamondrapids emeraldrapids generic goldmont
    goldmont-plus gracemont grandridge graniterapids graniterapids-d haswell icelake-client
    icelake-server ivybridge k8 k8-sse3 knl knm lunarlake meteorlake nehalem nocona novalake opteron
    opteron-sse3 pantherlake penryn raptorlake rocketlake sandybridge sapphirerapids sierraforest
    silvermont skx skylake skylake-avx512 slm tigerlake tremont westmere wildcatlake x86-64 x86-64-v2
    x86-64-v3 x86-64-v4 znver1 znver2 znver3 znver4 znver5
"""
_AARCH64_NAMES = """
    a64fx ampere1 ampere1a ampere1b ampere1c apple-a10 apple-a11 apple-a12 apple-a13 apple-a14 apple-a15
    apple-a16 apple-a17 apple-a18 apple-a19 apple-a7 apple-a8 apple-a9 apple-m1 apple-m2 apple-m3
    apple-m4 apple-m5 apple-s10 apple-s4 apple-s5 apple-s6 apple-s7 apple-s8 apple-s9 c1-nano c1-premium
    c1-pro c1-ultra carmel cobalt-100 cortex-a320 cortex-a34 cortex-a35 cortex-a510 cortex-a520
    cortex-a520ae cortex-a53 cortex-a55 cortex-a57 cortex-a65 cortex-a65ae cortex-a710 cortex-a715
    cortex-a72 cortex-a720 cortex-a720ae cortex-a725 cortex-a73 cortex-a75 cortex-a76 cortex-a76ae
    cortex-a77 cortex-a78 cortex-a78ae cortex-a78c cortex-r82 cortex-r82ae cortex-x1 cortex-x1c
    cortex-x2 cortex-x3 cortex-x4 cortex-x925 cyclone exynos-m3 exynos-m4 exynos-m5 falkor
    fujitsu-monaka gb10 generic grace kryo neoverse-512tvb neoverse-e1 neoverse-n1 neoverse-n2
    neoverse-n3 neoverse-v1 neoverse-v2 neoverse-v3 neoverse-v3ae olympus oryon-1 saphira thunderx
    thunderx2t99 thunderx3t110 thunderxt81 thunderxt83 thunderxt88 tsv110
"""
CPU_NAMES = {"x86_64": _X86_64_NAMES.split(), "aarch64": _AARCH64_NAMES.split()}


# What LLVM's code generation uses by itself beyond ARMv8.0 with NEON. Kernels gain little by it, as their vectors have
# fixed widths; without it every assembler takes their assembly and every processor of 64 bits runs it.
_AARCH64_BASELINE = (
    "-aes,-altnzcv,-bf16,-ccdp,-complxnum,-crc,-cssc,-dotprod,-flagm,-fp16fml,-fptoint,-fullfp16,-i8mm,-jsconv,-lse,"
    "-lse2,-mops,-predres,-rcpc,-rcpc-immo,-rdm,-sb,-sha2,-sha3,-sm4,-sme,-sme2,-sve,-sve2"
)


class CPU(NamedTuple):
    """A CPU as LLVM takes it: its name, and features as `+avx2,-sse4a`, which may be empty."""

    name: str
    features: str


@cache
def resolve_cpu(name: str) -> CPU:
    """The CPU of this name, or the machine's own for "native", without what the system refuses; raises UsageError."""
    if name == "native":
        return _host_cpu()
    if name == "generic" or any(name in names for names in CPU_NAMES.values()):
        return CPU(name, _AARCH64_BASELINE if architecture_of(name) == "aarch64" else "")
    import difflib  # deferred: of a mistake only

    known = [*CPU_NAMES.get(machine(), []), *(other for names in CPU_NAMES.values() for other in names)]
    known = list(dict.fromkeys(known))
    close = difflib.get_close_matches(name, known, 3)
    advice = f"Did you mean {' or '.join(close)}? " if close else ""
    raise UsageError(f"unknown CPU '{name}'. {advice}LLVM knows: native, {', '.join(known)}")


def architecture_of(name: str) -> str:
    """The architecture of a CPU that `resolve_cpu` knows; `native` and `generic` are of this machine's."""
    own = CPU_NAMES.get(machine(), ())
    if name in own or name == "generic":
        return machine()
    return next((architecture for architecture, names in CPU_NAMES.items() if name in names), machine())


def machine() -> str:
    """The architecture of this machine as LLVM calls it."""
    return architecture_called(platform.machine())


def architecture_called(name: str) -> str:
    """An architecture as LLVM calls it, by what systems and build tools call it."""
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name.lower(), name.lower())


def _host_cpu() -> CPU:
    undisturbed(partial(importlib.import_module, "llvmlite.binding"))
    import llvmlite.binding as llvm  # heavy: 0.1 s

    features = llvm.get_host_cpu_features().flatten()
    if "+amx-tile" in features and not may_use_tiles():
        features = features.replace("+amx-", "-amx-")
    return CPU(llvm.get_host_cpu_name(), features)
