"""What hooks are told of a compile, in the shape that Triton's hooks have it.

jit_post_compile_hook(key=..., repr="add[num_warps=4, ...](x_ptr: *fp32:16, n: i32)", fn=JitFunctionInfo(...),
                      compile={"signature": {...}, "constants": {...}, "num_warps": 4, ...},
                      is_manual_warmup=False, already_compiled=False)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from deuteron import knobs
from deuteron.language.functions.stable_text import stable_repr
from deuteron.options import Target
from deuteron.runtime.preload import written


class JitFunctionInfo(NamedTuple):
    """The function that is compiled: where it is defined, and the object that `@jit` made."""

    module: str
    name: str
    jit_function: Any


@dataclass(frozen=True)
class CompileEvent:
    """A kernel that is not in memory for the types of a launch."""

    fn: Any
    key: Any
    signature: Mapping[str, str]
    constexprs: Mapping[str, Any]
    attrs: Mapping[str, Any]
    options: Any
    target: Target
    device: int
    is_warmup: bool

    def refused(self) -> bool:
        """Tell the hooks before the compile; whether one of them says that nothing is to be compiled."""
        answers = [self._call(hook) for hook in (type(self.fn).cache_hook, knobs.runtime.jit_cache_hook) if hook]
        return any(answers)

    def compiled(self) -> None:
        """Tell the hooks after the compile."""
        for hook in (type(self.fn).compiled_hook, knobs.runtime.jit_post_compile_hook):
            if hook:
                self._call(hook)

    def _call(self, hook: Callable[..., Any]) -> Any:
        info = JitFunctionInfo(self.fn.__module__, self.fn.__qualname__, self.fn)
        return hook(
            key=self.key,
            repr=self._text(),
            fn=info,
            compile=self._description(),
            is_manual_warmup=self.is_warmup,
            already_compiled=False,
        )

    def _text(self) -> str:
        options = ", ".join(f"{name}={value}" for name, value in vars(self.options).items())
        arguments = ", ".join(f"{name}: {type}" for name, type in self.signature.items())
        return f"{self.fn.__qualname__}[{options}]({arguments})"

    def _description(self) -> dict[str, Any]:
        """What is compiled, by name: every option, too."""
        configs = [{(self.fn.arg_names.index(name),): attrs for name, attrs in self.attrs.items()}]
        return {
            **vars(self.options),
            "extern_libs": (),
            "launch_cooperative_grid": False,
            "key": self.key,
            "signature": dict(self.signature),
            "device": self.device,
            "constants": dict(self.constexprs),
            "configs": configs,
            "specialization_data": self._specialization(),
            "is_warmup": self.is_warmup,
        }

    def _specialization(self) -> str:
        """The same as a text, equal for equal kernels; what `JITFunction.preload` takes."""
        constants = {name: stable_repr(value) for name, value in self.constexprs.items()}
        content = {
            "name": f"{self.fn.__module__}.{self.fn.__qualname__}",
            "signature": dict(self.signature),
            "constants": constants,
            "attrs": {name: list(map(list, attrs)) for name, attrs in self.attrs.items()},
            "options": vars(self.options),
            "target": {"backend": self.target.backend, "arch": self.target.arch},
            "asked": written(self.key[0], dict(self.key[1])),
        }
        return json.dumps(content, default=str)
