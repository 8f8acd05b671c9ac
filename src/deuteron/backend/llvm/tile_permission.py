"""Whether this process may use tiles, the registers of AMX: Linux gives them to a process that asks.

    may_use_tiles()     True: the process has asked, for all of its threads and for those that it forks

Linux refuses where the processor has none, and where a thread has a stack for signals that is too small for them (its
documentation, arch/x86/xstate). Other systems are not asked.
"""

from __future__ import annotations

import ctypes
import platform
from functools import cache

_SYS_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XTILEDATA = 158, 0x1023, 18


@cache
def may_use_tiles() -> bool:
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return False
    return ctypes.CDLL(None).syscall(_SYS_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XTILEDATA) == 0
