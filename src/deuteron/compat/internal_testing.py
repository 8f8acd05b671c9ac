"""`triton._internal_testing`: what projects' tests ask of the target that kernels are compiled for, and of knobs.

@pytest.mark.skipif(not is_hopper_or_newer(), reason="...")
fresh_knobs, reset_knobs = _fresh_knobs_impl()
"""

from __future__ import annotations

from collections.abc import Callable, Container
from contextlib import ExitStack
from typing import Any

from deuteron import knobs
from deuteron.runtime import driver as active_driver
from deuteron.settings import set_variable, settings


def is_interpreter() -> bool:
    """Whether kernels run in the interpreter."""
    return bool(settings.interpret)


def get_current_target() -> Any:
    """The target; None in the interpreter, as in Triton."""
    return None if is_interpreter() else active_driver.active.get_current_target()


def is_cuda() -> bool:
    """Whether kernels run on a GPU of NVIDIA."""
    target = get_current_target()
    return target is not None and target.backend == "cuda"


def _of_capability(first: int, last: int = 999) -> Callable[[], bool]:
    return lambda: is_cuda() and first <= int(get_current_target().arch) <= last


def _never() -> bool:
    return False


def fresh_knobs_functions(skipped_attr: Container[str] | None = None) -> tuple[Callable[[], Any], Callable[[], None]]:
    """A function that takes back what knobs and their variables say, but for the groups that are skipped, and returns
    `triton.knobs`; and one that undoes it.
    """
    skipped = skipped_attr or ()
    groups = [
        group for name, group in vars(knobs).items() if isinstance(group, knobs.base_knobs) and name not in skipped
    ]
    undone = ExitStack()

    def fresh() -> Any:
        undone.callback(setattr, knobs, "propagate_env", knobs.propagate_env)
        for group in groups:
            undone.enter_context(group.scope())
            _unset(group.reset())
        knobs.propagate_env = True
        return knobs

    return fresh, undone.close


def _unset(group: knobs.base_knobs) -> None:
    for knob in group.knob_descriptors.values():
        for variable in filter(None, (knob.key, knob.own)):
            set_variable(variable, None)


_OF_OTHERS = ("hip", "hip_cdna", "hip_cdna2", "hip_cdna3", "hip_cdna4", "hip_cdna3_or_newer", "hip_gfx1250", "hip_rdna")

TEST_NAMES = {
    "_fresh_knobs_impl": fresh_knobs_functions,
    "is_interpreter": is_interpreter,
    "get_current_target": get_current_target,
    "is_cuda": is_cuda,
    "is_ampere_or_newer": _of_capability(80),
    "is_hopper": _of_capability(90, 99),
    "is_hopper_or_newer": _of_capability(90),
    "is_blackwell": _of_capability(100, 119),
    "is_sm12x": _of_capability(120, 129),
    **{
        f"is_{name}": _never
        for name in (*_OF_OTHERS, "hip_rdna3", "hip_rdna4", "hip_mi200", "hip_mi300", "hip_mi350", "xpu")
    },
}
