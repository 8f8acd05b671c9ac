"""Settings and hooks as attributes, grouped and named as in Triton; `triton.knobs` under `deuteron.compat`.

    deuteron.knobs.compilation.always_compile = True        sets TRITON_ALWAYS_COMPILE and DEUTERON_ALWAYS_COMPILE
    with deuteron.knobs.cache.scope():                      what is set within is undone after
        deuteron.knobs.cache.dir = "/tmp/kernels"
    deuteron.knobs.runtime.launch_enter_hook.add(hook)      called before every launch

    variables.py    a knob: a variable of the environment, how it is read and set; groups of them
    groups.py       the knobs that there are, and the hooks
    hooks.py        a chain of hooks, what is only computed for a hook that asks, what hooks are told

A knob that is not set is read from the environment whenever it is asked for. `del group.knob`, or `group.knob = env`,
takes back what was set. A knob that changes nothing in Deuteron says so in a warning when it is set.
"""

from __future__ import annotations

from typing import Any

from deuteron.knobs.groups import (
    amd_knobs,
    autotuning_knobs,
    build_knobs,
    cache_knobs,
    compilation_knobs,
    language_knobs,
    nvidia_knobs,
    proton_knobs,
    redis_knobs,
    runtime_knobs,
)
from deuteron.knobs.hooks import CompileTimes as CompileTimes
from deuteron.knobs.hooks import HookChain as HookChain
from deuteron.knobs.variables import base_knobs as base_knobs
from deuteron.knobs.variables import env as env
from deuteron.knobs.variables import env_base as env_base
from deuteron.knobs.variables import env_bool as env_bool
from deuteron.knobs.variables import env_class as env_class
from deuteron.knobs.variables import env_int as env_int
from deuteron.knobs.variables import env_opt_bool as env_opt_bool
from deuteron.knobs.variables import env_opt_str as env_opt_str
from deuteron.knobs.variables import env_str as env_str

# Whether a knob that is set sets its variable, too, for processes that are started.
propagate_env: bool = True

build = build_knobs()
redis = redis_knobs()
cache = cache_knobs()
compilation = compilation_knobs()
autotuning = autotuning_knobs()
runtime = runtime_knobs()
language = language_knobs()
nvidia = nvidia_knobs()
amd = amd_knobs()
proton = proton_knobs()


def refresh_knobs() -> None:
    """Nothing is kept of what was read from the environment, so that nothing is to be read anew."""


def __getattr__(name: str) -> Any:
    raise AttributeError(f"Deuteron has no 'triton.knobs.{name}'")
