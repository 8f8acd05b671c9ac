"""A compiled kernel: the text of every stage, the metadata, and the way to launch it.

    kernel = deuteron.compile(ASTSource(add, {"x": "*fp32", "n": "i32"}, {"BLOCK": 128}), target="cpu")
    kernel.asm["llir"]           text of a stage; of `asm` it is made when asked for
    kernel.metadata.params       what the arguments are
    print(kernel.report())       registers, vector widths, which instructions; also data
    kernel[(8, 1, 1)](x, 1000)   launches; constexpr arguments can be left out

What the compile was promised of an argument (`:16`, `:1`) is not checked again by such a launch. Where arrays overlap
that the kernel takes to be apart, one that is compiled for such is launched instead.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deuteron import knobs
from deuteron.backend import Backend
from deuteron.backend.arrays import array_specialiser, check_writable, device_mismatch, split_token
from deuteron.backend.metadata import KernelMetadata, Param
from deuteron.backend.overlaps import overlap_of
from deuteron.backend.spans import bounded
from deuteron.backend.tensor_descriptor import flatten
from deuteron.cached_property import cached_property
from deuteron.compiler.runner import make_runner
from deuteron.compiler.source import ASTSource, IRSource
from deuteron.errors import LaunchError, UsageError, counted
from deuteron.forking import undivided
from deuteron.knobs.hooks import LazyDict
from deuteron.tracebacks import api_boundary

if TYPE_CHECKING:
    from deuteron.backend.report import Report
    from deuteron.compiler.replay import PassText
    from deuteron.explorer import Page


class StageTexts(Mapping[str, str | bytes]):
    """The text of every stage by its name; texts on demand are made at the first look-up."""

    def __init__(self, texts: dict[str, str | bytes], on_demand: dict[str, Callable[[], str | bytes]]):
        self._texts = texts
        self._on_demand = {name: make for name, make in on_demand.items() if name not in texts}

    def add(self, name: str, make: Callable[[], str | bytes]) -> None:
        """One more text on demand."""
        self._on_demand[name] = make

    def __getitem__(self, name: str) -> str | bytes:
        if name in self._on_demand:
            self._texts[name] = self._on_demand.pop(name)()
        return self._texts[name]

    def __iter__(self) -> Iterator[str]:
        return iter([*self._texts, *self._on_demand])

    def __len__(self) -> int:
        return len(self._texts) + len(self._on_demand)

    def __contains__(self, name: object) -> bool:
        return name in self._texts or name in self._on_demand

    def __repr__(self) -> str:
        return f"StageTexts({', '.join(self)})"


class MetadataGroup(StageTexts):
    """What a compile made: the texts, and what is known of them. Its name is that of what Triton makes a kernel of."""

    def __init__(
        self,
        texts: dict[str, str | bytes],
        on_demand: dict[str, Callable[[], str | bytes]],
        metadata: KernelMetadata,
        backend: Backend,
        is_cached: bool,
    ):
        super().__init__(texts, on_demand)
        self.metadata = metadata
        self.backend = backend
        self.is_cached = is_cached


# Attributes of a kernel that only its process has.
_IN_MEMORY = ("launch", "_run", "_others")


class CompiledKernel:
    """The result of a compile; equal sources, options, targets and versions give an equal `hash`.

    `launch_enter_hook` and `launch_exit_hook` are for all kernels: what those of `knobs.runtime` were called before
    Triton 3.4.
    """

    launch_enter_hook: Callable[[Any], None] | None = None
    launch_exit_hook: Callable[[Any], None] | None = None

    def __init__(self, src: ASTSource | IRSource, metadata_group: MetadataGroup, hash: str):
        """The parameters are Triton's, for programs that put a function of their own in front of this one."""
        if not isinstance(metadata_group, MetadataGroup):
            raise UsageError("a CompiledKernel is made by compile(source or file), not of the files of a cache")
        self.src = src
        self.metadata = metadata_group.metadata
        self.asm = metadata_group
        self.hash = hash
        self.is_cached = metadata_group.is_cached
        self._backend = metadata_group.backend

    def __repr__(self) -> str:
        return f"CompiledKernel({self.name}, {self.metadata.target}, {self.hash[:8]})"

    @property
    def name(self) -> str:
        return self.metadata.name

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: everything but the code in memory, which is loaded again by the first launch."""
        return {name: value for name, value in vars(self).items() if name not in _IN_MEMORY}

    @property
    def n_regs(self) -> int | None:
        """Registers of a thread, as the assembler reported them; None where there is no such report."""
        return self.metadata.resources.get("registers")

    @property
    def n_spills(self) -> int | None:
        """Words of 4 bytes of a thread that the assembler spilled; None where there is no such report."""
        spill_bytes = self.metadata.resources.get("spill_bytes")
        return None if spill_bytes is None else spill_bytes // 4

    @property
    def stage_times(self) -> dict[str, float]:
        """Seconds that each stage took when the kernel was compiled."""
        return self.metadata.stage_times

    @cached_property
    @undivided()
    def launch(self) -> Callable[[Sequence[int], Sequence[Any]], None]:
        """`launch(grid, values)`: addresses and numbers for the runtime parameters. Loads the code when first used."""
        before, after = knobs.runtime.kernel_load_start_hook, knobs.runtime.kernel_load_end_hook
        if before:
            before(None, None, self.name, self.asm, self.hash)
        loaded = self._backend.load(self.asm, self.metadata)
        if after:
            after(loaded, loaded, self.name, self.asm, self.hash)
        if self.metadata.most_programs is not None:
            loaded.launch_of_more = self._launch_of_more
        if any(described.is_inferred for described in self.metadata.tensor_maps):
            loaded.launch_of_pointers = lambda because: self._otherwise("plain_loads", because).launch
        return loaded

    def load(self, **where: int) -> None:
        """Load the code, and let the device have it, so that a launch finds all of it there."""
        self.launch.prepare(**where)

    def _init_handles(self) -> None:
        """Load the code, as launchers made for Triton ask for before they take `run` and `function`."""
        self.launch  # noqa: B018

    def close(self) -> None:
        """Let go of the loaded code; the next launch loads it again."""
        loaded, before = self.module, knobs.runtime.kernel_unload_hook
        if loaded is not None and before:
            before(loaded, loaded, self.name, self.asm, self.hash)
        for name in _IN_MEMORY:
            vars(self).pop(name, None)

    def __del__(self) -> None:
        if not sys.is_finalizing():
            self.close()

    @property
    def module(self) -> Any:
        """What holds the loaded code; None before it is loaded."""
        return vars(self).get("launch")

    @property
    def function(self) -> Any:
        """The loaded kernel, on the CPU its address, on a GPU the driver's handle; None before it is loaded."""
        return self.module and self.module.function

    @property
    def packed_metadata(self) -> KernelMetadata:
        """What launchers pass back to `run`, which needs none of it."""
        return self.metadata

    @property
    def run(self) -> Callable[..., None]:
        """Launches with what the launchers pass that are made for Triton's kernels (`runner.py`)."""
        made = vars(self).get("_run")
        if made is None:
            made = self._run = make_runner(self)
        return made

    @property
    def launch_metadata_schema(self) -> dict[str, Any]:
        """What a launcher that is not Deuteron's needs to know."""
        metadata = self.metadata
        return {
            "entry_name": metadata.symbol,
            "num_warps": metadata.num_warps,
            "num_ctas": metadata.num_ctas,
            "cluster_dims": metadata.cluster_dims,
            "shared_mem": metadata.shared,
        }

    def launch_metadata(self, grid: Sequence[int], stream: int, *args: Any) -> LazyDict | None:
        """What launch hooks are told of a launch with these arguments, of all parameters; None where there are none."""
        if not has_launch_hooks():
            return None
        found = LazyDict({"name": self.name, "function": self.function, "stream": stream})
        describe = getattr(self.src, "fn", None) and getattr(self.src.fn, "launch_metadata", None)
        if describe:
            named = dict(zip(self.src.fn.arg_names, args, strict=True))
            found.add(describe, (tuple(grid), self.metadata, named))
        return found

    def launch_with_hooks(
        self,
        grid: Sequence[int],
        values: Sequence[Any],
        where: Mapping[str, int],
        stream: int = 0,
        describe: Callable[[], dict[str, Any]] | None = None,
    ) -> None:
        """Launch, and tell the hooks before and after it. `describe` gives what the kernel's author says of it."""
        metadata = LazyDict({"name": self.name, "function": self.launch, "stream": stream})
        if describe is not None:
            metadata.add(describe, ())
        for hook in (CompiledKernel.launch_enter_hook, knobs.runtime.launch_enter_hook):
            if hook:
                hook(metadata)
        self.launch(grid, values, **where)
        for hook in (knobs.runtime.launch_exit_hook, CompiledKernel.launch_exit_hook):
            if hook:
                hook(metadata)

    def report(self) -> Report:
        """What became of the kernel: resources, vector widths, instructions, pipelining, messages of the assembler."""
        return self._backend.report(self.asm, self.metadata)

    def passes(self) -> list[PassText]:
        """The text of tile IR after each pass, made again: in order, before the first of each stage without a name."""
        from deuteron.compiler.replay import replay_passes  # deferred: a launch does not need it

        return replay_passes(self._backend, self.src, self.metadata)

    def explore(
        self,
        against: CompiledKernel | None = None,
        grid: Sequence[int] | None = None,
        args: Sequence[object] = (),
    ) -> Page:
        """A page that shows what became of every line; beside that of another kernel where there is one to compare.

        `.open()` shows it in the browser, `.save(path)` writes it, a notebook shows it by itself. With a grid, and
        arguments for all runtime parameters, the page has what each line costs on the emulator (kernels for CUDA).
        """
        from deuteron.explorer import explore  # deferred: it is built on compiled kernels, which launch without it

        return explore(self, against, grid, args)

    def __getitem__(self, grid: Sequence[int]) -> Callable[..., None]:
        """`kernel[grid](*args)`: arrays, addresses, numbers, for all parameters or for those that are not constexpr.

        An argument that was compiled in, as it was 1 or None, may be given with these or be left out as well.
        """
        full_grid = (*grid, 1, 1)[:3]

        @api_boundary
        def launch(*args: Any) -> None:
            given = self._given(args)
            values = [_value(*pair, self.metadata) for pair in zip(self.metadata.runtime_params, given, strict=True)]
            kernel = self.for_launch(values, given)
            if has_launch_hooks():
                kernel.launch_with_hooks(full_grid, values, {})
            else:
                kernel.launch(full_grid, values)

        return launch

    def for_launch(self, values: Sequence[Any], given: Sequence[Any]) -> CompiledKernel:
        """The kernel itself, or, where arrays overlap that it takes to be apart, `for_overlapping`."""
        overlap = overlap_of(self.metadata, values, given)
        return self if overlap is None else self._otherwise("may_alias", overlap.in_words(self.name))

    def _launch_of_more(self, programs: int) -> Callable[..., None]:
        """What launches a grid of more programs than the code is for."""
        because = (
            f"a grid of kernel '{self.name}' has {programs} programs along the first axis, and numbers are taken "
            f"not to overflow in those of at most {self.metadata.most_programs}"
        )
        return self._otherwise("many_programs", because).launch

    def _otherwise(self, option: str, because: str) -> CompiledKernel:
        """The kernel compiled with an option on, once."""
        others: dict[str, CompiledKernel] = vars(self).setdefault("_others", {})
        if option not in others:
            from deuteron.compiler.driver import compile_otherwise  # deferred: it is built on this module

            others[option] = compile_otherwise(self, because, **{option: True})
        return others[option]

    def _given(self, args: Sequence[Any]) -> list[Any]:
        """What is given for the runtime parameters."""
        all_parts = (flatten(args, is_deep=True), flatten(args))
        fitting = ((params, parts) for parts in all_parts for params in self._accepted if len(params) == len(parts))
        params, parts = next(fitting, (None, ()))
        if params is None:
            names = ", ".join(param.name for param in self.metadata.runtime_params)
            raise LaunchError(f"kernel '{self.name}' takes {names}, got {counted(len(args), 'argument')}")
        return [arg for param, arg in zip(params, parts, strict=True) if param.kind != "constexpr"]

    @cached_property
    def _accepted(self) -> tuple[Sequence[Param], ...]:
        """The parameters that arguments may be given for: each of these has those of the next one, and more."""
        metadata, fn = self.metadata, getattr(self.src, "fn", None)
        declared = {param.name for param in getattr(fn, "params", ()) if param.is_constexpr}
        return metadata.params, [p for p in metadata.params if p.name not in declared], metadata.runtime_params


def has_launch_hooks() -> bool:
    """Whether somebody is to be told of launches."""
    runtime, kernels = knobs.runtime, CompiledKernel
    return bool(
        runtime.launch_enter_hook or runtime.launch_exit_hook or kernels.launch_enter_hook or kernels.launch_exit_hook
    )


def _value(param: Param, arg: Any, kernel: KernelMetadata) -> Any:
    """What is passed for an argument: of an array its address, if it has the type that the kernel was compiled for."""
    specialise = array_specialiser(type(arg))
    if param.kind != "pointer" or specialise is None:
        return arg
    token, address = specialise(arg)
    found, _, device = split_token(token)
    where = f"argument '{param.name}' of kernel '{kernel.name}'"
    if not param.accepts(found):
        raise LaunchError(f"{where}: expected {param.type}, got an array of {found}")
    mismatch = device_mismatch(device, kernel.target.backend)
    if mismatch:
        raise LaunchError(f"{where}: {mismatch.message}, and the kernel is for {kernel.target}")
    try:
        check_writable(token, kernel.may_write(param.name))
    except LaunchError as error:
        raise LaunchError(f"{where}: {error.message}") from None
    return bounded(address, arg) if kernel.is_checked else address
