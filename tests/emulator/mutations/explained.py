"""The mutants that may survive: which, how many of them, and why. docs/emulator.md tells it in words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from emulator.mutations.mutants import Mutant


@dataclass(frozen=True)
class Explanation:
    """`pattern` of the kernel and the change; as many as `at_most` may survive in one kernel."""

    pattern: str
    at_most: int
    why: str


EXPLAINED = [
    Explanation(r": without mbarrier\.inval", 12, "the memory of the mbarrier is not used for anything else"),
    Explanation(r"^attention .*: without fence\.proxy", 2, "the fence after mbarrier.init is after the store of q too"),
    Explanation(
        r"^attention .*: .*bar\.sync 0", 2, "before a slot that the second loop, of two iterations, fills no more"
    ),
    Explanation(
        r"^(flash_)?attention.*: without wgmma\.fence|^chained.*: without wgmma\.fence",
        1,
        "nothing used its registers since the fence of the wgmma before",
    ),
    Explanation(
        r"^(specialized|chained|cluster).*: without bar\.warp", 4, "only wgmma read the buffer, a warp at a time"
    ),
    Explanation(
        r"^(specialized|chained|cluster).*: without mbarrier\.arrive\.shared",
        1,
        "after the last round nobody fills the buffer",
    ),
    Explanation(
        r"^specialized by pointers.*: without fence\.mbarrier", 1, "no TMA, and no other CTA uses these mbarriers"
    ),
    Explanation(r"^chained.*: .*try_wait.* -> no wait", 1, "the first copy into an empty buffer"),
    Explanation(
        r"^chained.*: without bar\.sync %r\d+, 256", 1, "takes the last arrival of the ping-pong off the barrier"
    ),
    Explanation(r"^cluster.*: .*bar\.sync 0", 2, "the barrier of the cluster has just ordered the same threads"),
    Explanation(
        r"^old values.*: .*bar\.sync 0", 2, "nothing but a fence and a load of shared memory since the barrier before"
    ),
    Explanation(
        r"^TMA stores.*: .*bar\.sync 0", 4, "the thread that copies, or each thread, did itself what it overwrites"
    ),
    Explanation(r"^flash_attention.*bar\.sync 0", 3, "who overwrites and who read are threads of one warp"),
    Explanation(r"^cluster.*cluster\.arrive.* -> relaxed", 1, "the first: fence.mbarrier_init announced the mbarriers"),
]


def explanation(name: str, mutant: Mutant) -> Explanation | None:
    return next((one for one in EXPLAINED if re.search(one.pattern, f"{name}: {mutant.change}")), None)


def too_many(survivors: Iterable[tuple[str, Mutant]]) -> list[str]:
    """The survivors that nothing explains, and those that are more than their explanation allows."""
    seen: dict[tuple[str, Explanation], int] = {}
    found = []
    for name, mutant in survivors:
        why = explanation(name, mutant)
        if why is not None:
            seen[name, why] = seen.get((name, why), 0) + 1
        if why is None or seen[name, why] > why.at_most:
            found.append(f"{name}: {mutant.description}")
    return found
