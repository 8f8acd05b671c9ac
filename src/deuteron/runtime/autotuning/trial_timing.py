"""How a configuration is timed, by an autotuner and for a library: shortly, if it then is much slower than the best.

check_spills(kernel)                            raises Spills, unless it keeps nothing in memory
time_trial(launch, do_bench, 0.5, True)         Outcome([0.4, 0.39, 0.42]): milliseconds at QUANTILES
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from deuteron.errors import Spills, UsageError
from deuteron.runtime.autotuning.checks import call_hook
from deuteron.runtime.autotuning.tuned_file import Outcome
from deuteron.testing.bench import shortest

QUANTILES = (0.5, 0.2, 0.8)
# A trial ends where the shortest launch of a first short timing takes so many times the best median. Of a kernel's own
# median that was at most 1.1 times on the CPU, but for 4 of 120 on a machine with four times as much to do as cores.
HOPELESS = 3.0


def time_trial(launch: Callable[[], Any], bench: Callable[..., Any], best: float, stops_early: bool) -> Outcome:
    """`best` is the median of the fastest so far, infinity before the first."""
    if stops_early and best < float("inf"):
        quick = shortest(launch, enough=HOPELESS * best)
        if quick > HOPELESS * best:
            return Outcome([quick] * len(QUANTILES), is_stopped=True)
    ms = call_hook(bench, "the do_bench of an autotuner", "do_bench(fn, quantiles=)", launch, quantiles=QUANTILES)
    if ms is None:
        raise UsageError("the do_bench of an autotuner returns milliseconds, one number or a list, got None")
    return Outcome(ms)


def check_spills(kernel: Any) -> None:
    """Raise Spills for a compiled kernel that keeps registers in memory, as far as is known."""
    words = getattr(kernel, "n_spills", None)
    if words:
        raise Spills(f"it spills {4 * words} bytes of each thread's registers into memory")
