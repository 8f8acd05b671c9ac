"""`@jit`: a kernel that is compiled when it is launched with arguments of new types, and launched.

    @deuteron.jit
    def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr): ...

    add[(cdiv(n, 128),)](x, y, out, n, BLOCK=128, num_warps=4)

    bind the arguments -> a token for each -> the kernel of these tokens -> its launch function

A launch that finds its kernel does nothing else, so its cost is bounded by `tests/runtime/test_overhead.py`.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from deuteron.backend import get_backend
from deuteron.compiler import ASTSource, CompiledKernel, IRSource
from deuteron.compiler.driver import compile_with
from deuteron.compiler.inspection import inspection_key
from deuteron.compiler.job import Job
from deuteron.compiler.kernel import has_launch_hooks
from deuteron.errors import LaunchError, OtherKernel, UsageError, suggest
from deuteron.forking import undivided
from deuteron.language.constant import rebuild
from deuteron.language.functions.function import Function
from deuteron.language.functions.references import Reference, check_unchanged, with_parts
from deuteron.language.functions.source_functions import SourceFunction, functions_of
from deuteron.once import ForkLock
from deuteron.runtime.async_compile import active_mode
from deuteron.runtime.binding import Binding, in_order
from deuteron.runtime.driver import driver
from deuteron.runtime.events import CompileEvent
from deuteron.runtime.fast_launch import FastLaunches
from deuteron.runtime.grid import Grid, evaluate_grid
from deuteron.runtime.interface import KernelInterface
from deuteron.runtime.kernel_caches import DeviceCaches, Launcher, Launchers
from deuteron.runtime.launch_options import key_of_options, launch_options
from deuteron.runtime.mock import MockTensor
from deuteron.runtime.pickling import Pickled
from deuteron.runtime.placement import check_arrays_writable, check_devices, named_target, target_of
from deuteron.runtime.preload import read, read_specialization, register
from deuteron.runtime.prepared import PreparedLaunch
from deuteron.runtime.recompiles import Asked
from deuteron.runtime.simulation import Simulation
from deuteron.runtime.specialise import Token, decode, name_argument, parameter_specialiser
from deuteron.settings import settings
from deuteron.tracebacks import api_boundary


class JITFunction(Pickled, Function, KernelInterface):
    """A function of the language that can be launched. Compiled kernels are kept for the life of the function.

    `cache_hook` and `compiled_hook` are for all functions: what `knobs.runtime.jit_cache_hook` and
    `.jit_post_compile_hook` were called before Triton 3.4.
    """

    _OF_PROCESS = frozenset(
        ("specialisers", "fast", "_launchers", "_simulation", "_watched", "_lock", "_names_outside", "_hash_lock")
    ) | {"file_lines"}
    cache_hook: Callable[..., Any] | None = None
    compiled_hook: Callable[..., Any] | None = None

    def __init__(
        self,
        fn: Callable[..., Any],
        version: Any = None,
        do_not_specialize: Iterable[int | str] | None = None,
        do_not_specialize_on_alignment: Iterable[int | str] | None = None,
        debug: bool | None = None,
        noinline: bool | None = None,
        repr: Callable[..., str] | None = None,
        launch_metadata: Callable[..., Any] | None = None,
        interpret: bool | None = None,
    ):
        super().__init__(
            fn,
            do_not_specialize=do_not_specialize or (),
            do_not_specialize_on_alignment=do_not_specialize_on_alignment or (),
            noinline=bool(noinline),
            repr=repr,
        )
        if not isinstance(debug, int | None):
            raise UsageError(f"debug of '{self.__name__}' is True or False, got {debug!r}")
        if not (launch_metadata is None or callable(launch_metadata)):
            raise UsageError(f"launch_metadata of '{self.__name__}' is a function, got {launch_metadata!r}")
        self.debug = debug
        self.is_interpreted = bool(interpret)
        self.launch_metadata = launch_metadata
        self.pre_run_hooks: list[Callable[..., Any]] = []
        self._names = tuple(self.arg_names)
        self._start_empty()

    def _start_empty(self) -> None:
        register(self)
        self.specialisers = tuple(map(parameter_specialiser, self.params))
        self.fast = FastLaunches(self)
        self._launchers: dict[Any, Launcher] = Launchers(self.fast.forget)
        self._simulation = Simulation(self)
        self._watched: dict[tuple[int, str], Reference] = {}
        self._lock = ForkLock()

    @property
    def device_caches(self) -> DeviceCaches:
        """The compiled kernels in memory: `device_caches[device][0]` maps keys to them."""
        return DeviceCaches(self._launchers, is_tuple=True)

    @property
    def cache(self) -> DeviceCaches:
        """The compiled kernels in memory: `cache[device]` maps keys to them."""
        return DeviceCaches(self._launchers, is_tuple=False)

    def __getitem__(self, grid: Grid) -> Callable[..., Any]:
        """The kernel with its grid, to be called with the arguments."""
        return self.fast.at(grid)

    def add_pre_run_hook(self, hook: Callable[..., Any]) -> None:
        """Call `hook(*args, **kwargs)` before every launch."""
        if not callable(hook):
            raise UsageError(f"a hook of kernel '{self.__name__}' is a function of a launch's arguments, got {hook!r}")
        self.pre_run_hooks.append(hook)

    def run(self, *args: Any, grid: Grid, warmup: bool = False, **kwargs: Any) -> CompiledKernel | None:
        """Launch (or, with `warmup`, only compile) for these arguments; returns the compiled kernel.

        Arguments that are no parameters are options of the target (`num_warps`, `num_stages`, ...).
        """
        with api_boundary:
            return self._run(args, kwargs, grid, warmup)

    def run_noted(self, grid: Grid, args: tuple, kwargs: dict[str, Any]) -> Any:
        """What `kernel[grid](...)` does in Python. A launch like it is to be done without Python, if it can be."""
        with api_boundary:
            if self.is_run_replaced:
                return self.run(*args, **{"grid": grid, "warmup": False, **kwargs})
            return self._run(args, kwargs, kwargs.pop("grid", grid), kwargs.pop("warmup", False), is_noted=True)

    @property
    def is_run_replaced(self) -> bool:
        """Whether somebody gave this kernel, or all, another `run`."""
        return "run" in vars(self) or type(self).run is not _run

    def _run(
        self, args: tuple, kwargs: dict[str, Any], grid: Grid, warmup: bool, is_noted: bool = False
    ) -> CompiledKernel | None:
        for hook in self.pre_run_hooks:
            hook(*args, **kwargs)
        if self._watched:
            check_unchanged(self.__name__, self._watched.values())
        bound = self._bind(args, kwargs, warmup)
        is_emulated = settings.emulate and not (settings.interpret or self.is_interpreted)
        if warmup and is_emulated:
            return self._simulation.emulated_kernel(bound)
        if warmup:
            found = self._launcher(bound, is_warmup=True, waits=False)
            return found and found.kernel
        extents = evaluate_grid(grid, self.__name__, lambda: self._meta(bound))
        if settings.interpret or self.is_interpreted:
            return self._simulation.interpret(bound, extents)
        if is_emulated:
            return self._simulation.emulate(bound, extents)
        found = self._launcher(bound)
        if found is None:
            return None
        overlap = found.overlap_of(bound)
        if overlap is not None:
            if is_noted:
                self._note(bound, found)  # what machine code begins with
            bound = bound.for_overlapping()
            found = self._launcher(bound, because=overlap.in_words(self.__name__))
            if found is None:
                return None
        if has_launch_hooks() and extents[0] and extents[1] and extents[2]:
            self._launch_with_hooks(found, bound, extents)
            return found.kernel
        found.run(bound, extents)
        if is_noted:
            self._note(bound, found)
        return found.kernel

    def _note(self, bound: Binding, found: Launcher) -> None:
        if not self.pre_run_hooks:
            self.fast.note(bound, found)

    def _launch_with_hooks(self, found: Launcher, bound: Binding, extents: tuple[int, int, int]) -> None:
        describe = None
        if self.launch_metadata is not None:
            named = dict(zip(self._names, bound.values, strict=True))
            describe = partial(self.launch_metadata, extents, found.kernel.metadata, named)
        stream = driver.active.get_current_stream(found.where.get("device"))
        found.kernel.launch_with_hooks(extents, found.values(bound), found.where, stream, describe)

    @api_boundary
    def prepare(self, *args: Any, grid: Grid, **kwargs: Any) -> PreparedLaunch:
        """Compile and load for these arguments, and launch nothing; `.launch(...)` of what is returned launches.

        Raises what a launch with these arguments raises, and UsageError where kernels are not compiled for the machine.
        """
        if settings.interpret or self.is_interpreted or settings.emulate:
            raise UsageError(f"kernel '{self.__name__}' cannot be prepared: the interpreter and the emulator run it")
        bound = self._bind(args, kwargs, False)
        extents = evaluate_grid(grid, self.__name__, lambda: self._meta(bound))
        found = self._launcher(bound, is_warmup=True)
        overlap = found and found.overlap_of(bound)
        if overlap:
            found = self._launcher(bound.for_overlapping(), is_warmup=True, because=overlap.in_words(self.__name__))
        if found is None:
            raise UsageError(f"kernel '{self.__name__}' cannot be prepared: a hook says not to compile it")
        found.kernel.load(**found.where)
        return PreparedLaunch(self, bound, found, extents)

    def plan(self, *args: Any, **kwargs: Any) -> Job | None:
        """What a launch with these arguments would compile, which is not looked for; None where nothing is compiled."""
        is_run_otherwise = settings.interpret or self.is_interpreted or settings.emulate
        if is_run_otherwise or "ir_override" in kwargs or inspection_key() is not None:
            return None
        bound = self._bind(args, kwargs, False)
        target, _ = target_of(self, bound)
        backend = get_backend(target)
        return Job(backend, self.source_of(bound), target, self.options_of(backend, bound))

    @api_boundary
    def preload(self, specialization_data: str) -> CompiledKernel:
        """Compile and load what a hook was told of in another process, as `compile["specialization_data"]`.

        A launch then does nothing but launch, so that it may be the first one and be captured into a CUDA graph. Raises
        OtherKernel for what is of another kernel, UsageError for what is no such text, or has no text for a constexpr.
        """
        name, given, target = read_specialization(specialization_data)
        own = f"{self.__module__}.{self.__qualname__}"
        if name != own:
            raise OtherKernel(f"Specialization data is for {name}, and the kernel to preload is {own}")
        bound = read(self.params, given)
        own_target, _ = target_of(self, bound)
        if target != {"backend": own_target.backend, "arch": own_target.arch}:
            raise OtherKernel(f"Specialization data is for {target}, and a launch here is for {own_target}")
        found = self._launcher(bound, is_warmup=True)
        if found is None:
            raise UsageError(f"kernel '{self.__name__}' cannot be preloaded: a hook says not to compile it")
        found.kernel.load(**found.where)
        return found.kernel

    def _bind(self, args: Sequence[Any], kwargs: dict[str, Any], warmup: bool) -> Binding:
        values, options = in_order(self, args, kwargs)
        if warmup:
            values = [
                value if param.is_constexpr else _mocked(value)
                for param, value in zip(self.params, values, strict=True)
            ]
        return self.bind_values(values, options)

    def bind_values(self, values: list[Any], options: dict[str, Any] | None = None) -> Binding:
        """What arguments in the order of the parameters mean; raises LaunchError."""
        tokens: list[Token] = []
        passed: list[Any] = []
        try:
            for specialise, value in zip(self.specialisers, values, strict=True):
                token, what = specialise(value)
                tokens.append(token)
                passed.append(what)
        except LaunchError as error:
            param = self.params[len(tokens)]
            raise name_argument(error, self.__name__, param.name, named_target()) from error
        return Binding(values, options or {}, tuple(tokens), passed)

    def _meta(self, bound: Binding) -> dict[str, Any]:
        """What a grid that is a function is given."""
        return {**dict(zip(self._names, bound.values, strict=True)), **bound.options}

    def _launcher(
        self, bound: Binding, is_warmup: bool = False, waits: bool = True, because: str = ""
    ) -> Launcher | None:
        """The compiled kernel of these types; None where a hook said not to compile it. `because`: why the kernel that
        is there for them is not taken.
        """
        asked = (settings.target, settings.option_texts, SourceFunction.num_updates, inspection_key())
        key = (bound.tokens, key_of_options(bound.options), *asked)
        try:
            found = self._launchers.get(key)
        except TypeError:
            raise UsageError(f"options of kernel '{self.__name__}' must be hashable, got {bound.options}") from None
        if found is None:
            with undivided(), self._lock.here():
                found = self._launchers.get(key) or self._compile(bound, key, is_warmup, because)
        if waits and found is not None:
            found.wait()
        return found

    def _compile(self, bound: Binding, key: tuple, is_warmup: bool, because: str) -> Launcher | None:
        target, device = target_of(self, bound)
        check_devices(self, bound, target)
        backend = get_backend(target)
        options = self.options_of(backend, bound)
        source = self.source_of(bound)
        where = {} if device is None or device.index is None else {"device": device.index}
        types = (source.signature, source.constexprs, source.attrs)
        event = CompileEvent(self, key, *types, options, target, where.get("device", 0), is_warmup)
        if event.refused():
            return None
        override = bound.options.get("ir_override")
        asked = Asked(self.__name__, self._names, bound.tokens, bound.options, list(self._launchers), because)
        strictly = {"before_stages": asked.refuse} if settings.strict and not is_warmup else {}
        text = IRSource(override) if override else source
        compile = partial(compile_with, backend, text, target, options, **strictly)
        indices = bound.runtime_indices()
        has_parts = any(isinstance(bound.passed[index], tuple) for index in indices)
        found = Launcher(None, indices, where, has_parts)
        finish = partial(self._finish, found, bound, event, asked, time.perf_counter())
        mode = active_mode.get()
        with self.watching(bound):
            if mode is None:
                finish(compile())
            else:
                found.kernel = mode.submit(compile, finish, lambda failed: self._launchers.pop(key, None))
                self._launchers[key] = found
        return found

    def _finish(
        self,
        found: Launcher,
        bound: Binding,
        event: CompileEvent,
        asked: Asked,
        begin: float,
        compiled: CompiledKernel,
    ) -> None:
        """Keep what was compiled, unless it must not be launched with what it was compiled for."""
        asked.note(compiled, event.target, time.perf_counter() - begin, event.is_warmup)
        if settings.record is not None:
            from deuteron.runtime.manifest import record  # deferred: it is asked for seldom

            record(settings.record, self, bound.tokens, bound.options, event.target)
        check_arrays_writable(self, bound, compiled)
        found.kernel = compiled
        self._launchers[event.key] = found
        event.compiled()

    @contextmanager
    def watching(self, bound: Binding) -> Iterator[None]:
        """What is compiled within is launched only while the globals last that it, and functions given to it, use.

        An array or a number, whose token is its type, holds none. What is in globals is looked at afterwards: an
        object may find out what it is asked for when it is first asked.
        """
        given = (value for value, token in zip(bound.values, bound.tokens, strict=True) if not isinstance(token, str))
        functions = [self, *(function for value in given for function in functions_of(value))]
        used = [reference for function in functions for reference in function.watched()]
        yield
        found = {part.place: part for reference in used for part in with_parts(reference)}
        if not found.keys() <= self._watched.keys():
            self._watched = {**found, **self._watched}
            self.fast.forget()  # they do not look at what is new

    def watched_now(self) -> tuple[Reference, ...]:
        """What the compiled kernels depend on, and launches look at."""
        return tuple(self._watched.values())

    def source_of(self, bound: Binding) -> ASTSource:
        """What is compiled for such arguments."""
        return ASTSource(self, *decode(self.params, bound.tokens, bound.values))

    def options_of(self, backend: Any, bound: Binding) -> Any:
        """The options with which it is compiled; raises LaunchError for a keyword that is none."""
        return launch_options(self, backend, bound.options)


_run = JITFunction.run


def _mocked(value: Any) -> Any:
    """A dtype as an array of it, also in tuples."""
    if isinstance(value, tuple):
        return rebuild(value, [_mocked(item) for item in value])
    return MockTensor.wrap_dtype(value)


@api_boundary
def jit(fn: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Decorator: makes a function of the tile language, which is called within kernels or launched as one.

    Used as `@jit` or `@jit(do_not_specialize=["n"], ...)`.

    Args:
        do_not_specialize: parameters (names or indices) whose values the compiled code must not depend on.
        do_not_specialize_on_alignment: parameters whose divisibility by 16 it must not depend on.
        debug: keep `tl.device_assert`.
        launch_metadata: `launch_metadata(grid, metadata, args)` returns a dictionary, of which launch hooks are told;
            `args` are the arguments by name.
        repr: `repr(specialization)` returns what the kernel is called that is compiled for `.constants`, the known
            arguments by name, and `.signature`, the types by name.
        noinline: accepted as Triton has it, without effect: every call is inlined.
        version, interpret: accepted as older Tritons had them; `interpret` runs launches in the interpreter.
    """
    if fn is None:
        return partial(jit, **options)
    if isinstance(fn, JITFunction):
        return fn
    known = list(inspect.signature(JITFunction).parameters)[1:]
    for name in options:
        if name not in known:
            raise UsageError(f"@jit has no option '{name}': it has {', '.join(known)}.{suggest(name, known)}")
    return JITFunction(fn, **options)


def _signature_of_jit() -> inspect.Signature:
    """Its parameters by name, for programs that ask which options there are."""
    fn, *options = inspect.signature(JITFunction).parameters.values()
    by_name = [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in options]
    return inspect.Signature([fn.replace(default=None), *by_name])


jit.__signature__ = _signature_of_jit()  # type: ignore[attr-defined]
