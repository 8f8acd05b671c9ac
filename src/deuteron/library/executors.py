"""Where the kernels of a library are compiled: in processes of this machine, or on the machines of a Dask cluster.

compile_all = executor_of("dask://scheduler:8786")         or processes:4; None is processes
for variant, outcome in compile_all(variants, root):
    ...                                                    a Compiled or a Mistake, in the order in which they are done
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from deuteron.errors import UsageError
from deuteron.library.processes import available_processes, compiled, shares
from deuteron.library.remote import compile_share, expected_versions, packed
from deuteron.library.variants import Variant
from deuteron.library.worker import Compiled, Mistake

Outcomes = Iterator[tuple[Variant, Compiled | Mistake]]
_DASK = "dask://"
_PROCESSES = "processes:"
_CONNECT_SECONDS = 20


def executor_of(text: str | None, processes: int | None = None) -> Callable[[Sequence[Variant], Path], Outcomes]:
    """What compiles variants of a project; raises UsageError for a text that names no executor."""
    if text is None:
        return partial(compiled, processes=processes or available_processes())
    if text.startswith(_DASK) and len(text) > len(_DASK):
        return partial(compiled_by_dask, address=f"tcp://{text[len(_DASK) :]}")
    count = text.removeprefix(_PROCESSES)
    if text.startswith(_PROCESSES) and count.isdecimal() and int(count) > 0:
        return partial(compiled, processes=int(count))
    raise UsageError(f"--executor '{text}': it is {_PROCESSES}4 or {_DASK}HOST:PORT, the scheduler of a Dask cluster")


def compiled_by_dask(variants: Sequence[Variant], root: Path, address: str) -> Outcomes:
    """The outcome of every variant; raises UsageError where there is no cluster."""
    try:
        from distributed import Client, as_completed  # deferred: an extra
    except ImportError:
        raise UsageError("compiling on a Dask cluster takes Dask: pip install 'deuteron[dask]'") from None
    try:
        client = Client(address, timeout=_CONNECT_SECONDS)
    except OSError as error:
        raise UsageError(f"there is no Dask scheduler at {address}: {error}") from None
    with client:
        threads = sum(client.nthreads().values())
        if threads == 0:
            raise UsageError(f"the Dask cluster at {address} has no workers")
        project, expected = client.scatter(packed(root), broadcast=True), expected_versions(variants)
        tasks = {
            client.submit(compile_share, share, project, expected, pure=False): share
            for share in shares(variants, threads)
        }
        for task in as_completed(tasks):
            yield from zip(tasks[task], _outcomes(task, tasks[task], root), strict=True)


def _outcomes(task: object, share: Sequence[Variant], root: Path) -> list[Compiled | Mistake]:
    error = task.exception()
    if error is not None:
        return [Mistake(f"a worker of the Dask cluster failed: {type(error).__name__}: {error}")] * len(share)
    return [_checked(outcome, root) for outcome in task.result()]


def _checked(outcome: Compiled | Mistake, root: Path) -> Compiled | Mistake:
    """A kernel that was read from other files than those that are here is none of this project."""
    if isinstance(outcome, Mistake) or outcome.sources == outcome.sources.now(root):
        return outcome
    now = outcome.sources.now(root)
    groups = ((outcome.sources.files, now.files), (outcome.sources.packages, now.packages))
    differing = [name for there, here in groups for name in there if there[name] != here[name]]
    return Mistake(f"it was compiled from other sources than those here: {', '.join(differing)}")
