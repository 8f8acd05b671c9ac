"""Compiles by an executor of the program's own, while the program goes on.

    with ThreadPoolExecutor(8) as pool, deuteron.AsyncCompileMode(pool):
        kernels = [add.warmup(x, y, n, BLOCK=block, grid=(1,)) for block in (64, 128, 256)]   # return at once
        print(kernels[0].asm["ptx"])                                                        # waits for this one
        add[grid](x, y, n, BLOCK=128)                                                       # and so does a launch

What nobody has waited for is waited for at the end of the block, where the first error is raised; if the block itself
raises, by the launch that needs it. The mode is that of the thread, or of the asynchronous task, that is in the block.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from deuteron.compiler import CompiledKernel
from deuteron.tracebacks import api_boundary

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

active_mode: ContextVar[AsyncCompileMode | None] = ContextVar("async_compile_active_mode", default=None)


class FutureKernel:
    """A kernel that may still be compiled: its attributes are those of the CompiledKernel, for which they wait."""

    def __init__(
        self,
        finalize_compile: Callable[[CompiledKernel], None],
        cleanup_compile: Callable[[FutureKernel], None],
        future: Future[CompiledKernel],
    ):
        """One of the two functions is called, once, by the first thread that waits: after a compile or a failure."""
        self.finalize_compile, self.cleanup_compile = finalize_compile, cleanup_compile
        self.future = future
        self.kernel: CompiledKernel | None = None
        self._error: BaseException | None = None
        self._lock = threading.RLock()

    @api_boundary
    def result(self, ignore_errors: bool = False) -> CompiledKernel | None:
        """The compiled kernel; raises what the compile raised, or returns None for it."""
        with self._lock:
            if self.kernel is None and self._error is None:
                self._settle()
        if self._error is not None and not ignore_errors:
            raise self._error
        return self.kernel

    def _settle(self) -> None:
        try:
            self.kernel = self.future.result()  # before hooks are told of it, which may look at it
            self.finalize_compile(self.kernel)
        except Exception as error:
            self.kernel, self._error = None, error
            self.cleanup_compile(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what copies and pickles ask before there are attributes
            raise AttributeError(name)
        with api_boundary:
            return getattr(self.result(), name)


class AsyncCompileMode:
    """Within the block `warmup` gives its compile to the executor, and returns a FutureKernel.

    Args:
        executor: where kernels are compiled; one of threads, as `concurrent.futures` has them.
        ignore_errors: whether the end of the block raises nothing for a kernel that does not compile.

    Raises:
        RuntimeError: another mode is active.
    """

    def __init__(self, executor: Executor, *, ignore_errors: bool = False):
        self.executor, self.ignore_errors = executor, ignore_errors
        self._kernels: list[FutureKernel] = []

    def submit(
        self,
        compile: Callable[[], CompiledKernel],
        finalize: Callable[[CompiledKernel], None],
        cleanup: Callable[[FutureKernel], None],
    ) -> FutureKernel:
        """Have a kernel compiled; the functions are as FutureKernel has them."""
        kernel = FutureKernel(finalize, cleanup, self.executor.submit(compile))
        self._kernels.append(kernel)
        return kernel

    def __enter__(self) -> AsyncCompileMode:
        if active_mode.get() is not None:
            raise RuntimeError("an AsyncCompileMode is active already: leave its block before another one is entered")
        active_mode.set(self)
        return self

    @api_boundary
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: Any) -> None:
        active_mode.set(None)
        kernels, self._kernels = self._kernels, []
        if error is not None:  # which says more than what a compile raises, and must not wait for it
            return
        for kernel in kernels:
            kernel.result(ignore_errors=True)
        for kernel in kernels:
            kernel.result(self.ignore_errors)
