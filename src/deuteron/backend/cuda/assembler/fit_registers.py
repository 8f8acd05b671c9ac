"""Assembles a kernel with a few registers less, where a multiprocessor then holds a third more of its CTAs.

    Used 34 registers, .reqntid 512     three CTAs, 48 of 64 warps
    .maxnreg 32                         four, which is kept if nothing more is spilled
    Used 42 registers, .reqntid 256     five CTAs
    .maxnreg 40                         six: a fifth more, for a twentieth of the registers
    Used 36 registers, .reqntid 1024    one CTA
    .maxnreg 32                         two, which may spill a few registers
    Used 40 registers, 16 bytes spilled
    .maxnreg 40                         the same, told, which is kept if less is spilled
    .maxnreg 48                         one CTA less, if that spills as well
    1,604 registers live at once        they spill, whatever is done
    .maxnreg 255                        told at once, all that a thread may have

ptxas takes the registers that suit its schedule and knows of no threshold. What memory bounds gains by CTAs whose
loads and stores overlap (layer norm of 16384x4096: 2.5 % on an H200). Sometimes it spills where it had registers left;
told a limit, it does not (layer norm of 1024 with 2 warps, ptxas 13.0 and 13.5). A kernel with dots on tensor cores
gives up registers for half as many CTAs again, and spills nothing for them, and so does one of 16 warps. One that says
itself how many registers it takes, or how many CTAs are enough, stays as it is, and so does one whose dots need more
than it would have.

A kernel whose function has a stack is slow though the function is never called, as the reduction of large angles: with
240 bytes it took four times as long on an H200, in 16,384 CTAs; with 8, where a thread had 32 registers, one took six
times as long as Triton's. So it has registers instead, which is not timed.

Of what has many times more values than registers ptxas 13.5 spills far more than it has to: for a backward pass of one
warp it takes 64 of 255 registers and spills 97 KB; told to take all, it spills 33 KB, and is done in less time.
"""

from __future__ import annotations

import re

from deuteron.backend.cuda.assembler.live_registers import live_registers
from deuteron.backend.cuda.assembler.occupancy import occupancy
from deuteron.backend.cuda.assembler.ptxas import Cubin, Resources, assemble
from deuteron.backend.cuda.assembler.ptxas_process import AssemblerProcess
from deuteron.backend.cuda.target import Architecture
from deuteron.errors import AssemblerError, OutOfResources
from deuteron.machine.gpu import GPU

# Of the registers: with fewer still, what is not spilled is computed again. Measured between an eighth and a quarter,
# of 18 kernels: cross entropy with 16 warps gains 10 % (40 registers to 32), layer norm backward 26 % (150 to 126), a
# cumulative sum in blocks 1 %. Where more is computed, CTAs gain nothing: dropout, of 200 instructions for an access
# of memory, loses 5 %; those that gain have up to 96.
MAX_SAVED, MAX_SAVED_COMPUTING = 1 / 4, 1 / 8
MAX_INSTRUCTIONS = 128  # of the text of a kernel, for each access
# The same of CTAs of so many threads, for half as many CTAs again: all warps of one wait at its barriers at once, and
# one or two of them leave a multiprocessor idle. Cross entropy in place takes 0.87 of its time with 64 registers for
# 100, divergences of rows 0.86 with 40 for 63. CTAs of fewer threads gain and lose.
MANY_THREADS = 512
MAX_SAVED_MANY, MIN_GAIN_MANY = 2 / 5, 3 / 2
# Of CTAs: three to four gain 2.5 % in layer norm of 16384x4096 (above).
MIN_GAIN = 4 / 3
# Where it takes so few registers, less is enough: five to six gain 5 % in layer norm of 16384x4096 in bf16 (42 to 40),
# 20 to 24 gain 1 % in rows of 1,024; where 48 or 80 registers are left, nothing (0.5 % less).
MAX_SAVED_LITTLE, MIN_GAIN_LITTLE = 1 / 16, 6 / 5
# The same of kernels with dots, where most registers are often those of what is stored after a loop: a product with
# dropout takes 0.79 of its time with 164 registers for 219, a convolution 0.71 with two CTAs for one. Four CTAs for
# three took 0.83 to 1.24, five for four 0.83 to 1.07.
MAX_SAVED_DOTS, MIN_GAIN_DOTS = 3 / 10, 3 / 2
# Bytes that a thread may store and load again for twice the CTAs: four registers. Where one CTA is on a multiprocessor
# alone, nothing is loaded while it computes.
SPILLED_FOR_TWICE = 32
# Times the registers that a thread may have: values that fill so many spill in any order. Kernels have up to 248, or
# more than 1,000 (live_registers.py); nothing is measured between.
SURE_TO_SPILL = 2
# More, for a kernel whose functions have a stack: what registers are given in.
MORE = 8
_THREADS = re.compile(r"^\.reqntid (\d+)\n", re.MULTILINE)
_SAID = re.compile(r"\bsetmaxnreg|^\.maxnreg", re.MULTILINE)
_ENOUGH = ".minnctapersm"
_DOTS = re.compile(r"\bmma")
_CALL = re.compile(r"\bcall\.uni\b")
_INSTRUCTION = re.compile(r"^\t[^.\n].*;$", re.MULTILINE)
_ACCESS = re.compile(r"\b(?:ld|st|red|atom)\.(?:global|relaxed|volatile)")


def assemble_to_fit(
    ptx: str,
    architecture: Architecture,
    dynamic_shared: int,
    fp_fusion: bool,
    process: AssemblerProcess | None = None,
) -> Cubin:
    """The cubin of a kernel that is launched with so many bytes of shared memory.

    `process`: one that was started for this architecture; if it does not suit, others follow.
    """
    machine, threads = architecture.machine, _THREADS.search(ptx)
    if threads is None or _ENOUGH in ptx or ("maxnreg" in ptx and _SAID.search(ptx)):
        return assemble(ptx, architecture.name, fp_fusion, process)
    most = _most_registers(machine, int(threads[1]))
    if live_registers(ptx) > SURE_TO_SPILL * most:
        return assemble(_limited(ptx, most), architecture.name, fp_fusion, process)
    cubin = assemble(ptx, architecture.name, fp_fusion, process)
    if cubin.resources.stack_bytes and not cubin.resources.spill_bytes and _CALL.search(ptx):
        roomier = assemble(_limited(ptx, min(cubin.resources.registers + MORE, most)), architecture.name, fp_fusion)
        return cubin if roomier.resources.stack_bytes else roomier
    limits = (_limits_with_dots if _DOTS.search(ptx) else _limits)(
        ptx, machine, int(threads[1]), cubin.resources, dynamic_shared
    )
    for limit in limits:
        fitted = _fitted(ptx, architecture, int(threads[1]), cubin, limit, dynamic_shared, fp_fusion)
        if fitted is not cubin:
            return fitted
    return cubin


def _fitted(
    ptx: str,
    architecture: Architecture,
    num_threads: int,
    cubin: Cubin,
    limit: int,
    dynamic_shared: int,
    fp_fusion: bool,
) -> Cubin:
    """The kernel with so many registers, or its cubin without a limit where that is better."""
    machine = architecture.machine
    try:
        fitted = assemble(_limited(ptx, limit), architecture.name, fp_fusion)
    except (AssemblerError, OutOfResources):  # the text without a limit was accepted: it is the limit's fault
        return cubin
    used, then = cubin.resources, fitted.resources
    before, after = (_num_ctas(machine, num_threads, one, dynamic_shared) for one in (used, then))
    spared = SPILLED_FOR_TWICE if after >= 2 * before and not _DOTS.search(ptx) and not _CALL.search(ptx) else 0
    more = max(then.spill_bytes - used.spill_bytes, then.stack_bytes - used.stack_bytes)
    kept = fitted if more <= spared and len(fitted.messages) <= len(cubin.messages) else cubin
    if not used.spill_bytes or not then.spill_bytes:
        return kept
    roomier = _limited(ptx, _registers_for(machine, num_threads, before - 1))
    return min(kept, assemble(roomier, architecture.name, fp_fusion), key=lambda one: one.resources.spill_bytes)


def _registers_for(machine: GPU, num_threads: int, ctas: int) -> int:
    """The most registers with which so many CTAs fit, one at least."""
    counts = range(min(machine.registers.max_per_thread, machine.registers.count // num_threads), 0, -1)
    return next(count for count in counts if occupancy(machine, num_threads, count, 0).ctas >= max(ctas, 1))


def _num_ctas(machine: GPU, num_threads: int, used: Resources, dynamic_shared: int) -> int:
    return occupancy(machine, num_threads, used.registers, dynamic_shared + used.shared_bytes).ctas


def _limited(ptx: str, registers: int) -> str:
    return _THREADS.sub(rf"\g<0>.maxnreg {registers}\n", ptx, count=1)


def _most_registers(machine: GPU, num_threads: int) -> int:
    """With which a CTA can be launched: 96 of 640 threads, since warps get them in units, and not 102."""
    return _registers_for(machine, num_threads, 1)


def _computes(ptx: str) -> bool:
    """Whether a kernel is bound by what it computes rather than by memory."""
    return len(_INSTRUCTION.findall(ptx)) > MAX_INSTRUCTIONS * max(len(_ACCESS.findall(ptx)), 1)


def _limits(ptx: str, machine: GPU, num_threads: int, used: Resources, dynamic_shared: int) -> list[int]:
    """The numbers of registers to try, one after the other until one is kept."""
    if used.spill_bytes and used.registers < _most_registers(machine, num_threads):
        return [used.registers]
    saved = MAX_SAVED_COMPUTING if _computes(ptx) else MAX_SAVED
    return memory_bound_limits(machine, num_threads, used.registers, dynamic_shared + used.shared_bytes, saved)


def memory_bound_limits(
    machine: GPU, num_threads: int, registers: int, shared_bytes: int, saved: float = MAX_SAVED
) -> list[int]:
    """The registers with which a third more of the CTAs fit, half as many again if their threads are many, and those
    with which a fifth more do if it takes few.
    """

    def limit(saved: float, gain: float) -> int | None:
        return rewarding_limit(machine, num_threads, registers, shared_bytes, saved, gain)

    more = limit(saved, MIN_GAIN)
    if more is None and num_threads >= MANY_THREADS:
        more = limit(MAX_SAVED_MANY, MIN_GAIN_MANY)
    return list(dict.fromkeys(filter(None, (more, limit(MAX_SAVED_LITTLE, MIN_GAIN_LITTLE)))))


def _limits_with_dots(ptx: str, machine: GPU, num_threads: int, used: Resources, dynamic_shared: int) -> list[int]:
    shared_bytes = dynamic_shared + used.shared_bytes
    limit = rewarding_limit(machine, num_threads, used.registers, shared_bytes, MAX_SAVED_DOTS, MIN_GAIN_DOTS)
    return [] if used.spill_bytes or limit is None else [limit]


def rewarding_limit(
    machine: GPU,
    num_threads: int,
    registers: int,
    shared_bytes: int,
    saved: float = MAX_SAVED,
    gain: float = MIN_GAIN,
) -> int | None:
    """The most registers, fewer than these by that part at most, with which so many times the CTAs fit, if any."""

    def ctas(count: int) -> int:
        return occupancy(machine, num_threads, count, shared_bytes).ctas

    wanted = max(ctas(registers) * gain, 1)
    counts = range(registers - 1, registers - int(registers * saved) - 1, -1)
    return next((count for count in counts if ctas(count) >= wanted), None)
