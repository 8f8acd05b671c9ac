"""`triton.profiler` (Proton): the times of launches by scope, in a file as Proton writes it.

import triton.profiler as proton
proton.start("matmul", hook="triton")               hook: with what the kernels' authors say in launch_metadata
with proton.scope("layer", {"tokens": 512}):
    kernel[grid](...)
proton.finalize()                                   writes matmul.hatchet: ROOT > layer > kernel

A node of the file's tree is a scope or a kernel: its name, its metrics ("count", "time (ns)", those that were given),
its children. Times are those between events before and after each launch of a kernel; what torch launches has none.
"""

from __future__ import annotations

import functools
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ContextDecorator, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deuteron import knobs
from deuteron.errors import UsageError
from deuteron.runtime import driver

DEFAULT_PROFILE_NAME = "proton"
TIME, COUNT, CPU_TIME = "time (ns)", "count", "cpu_time (ns)(exc)"


@dataclass
class Node:
    """A scope or a kernel, below the scopes around it."""

    name: str
    metrics: dict[str, Any] = field(default_factory=dict)
    children: dict[str, Node] = field(default_factory=dict)

    def at(self, path: tuple[str, ...]) -> Node:
        """The node below this one with these names, made where it is not there."""
        node = self
        for name in path:
            node = node.children.setdefault(name, Node(name))
        return node

    def add(self, metrics: Mapping[str, Any]) -> None:
        for name, value in metrics.items():
            self.metrics[name] = self.metrics.get(name, 0) + (value.item() if hasattr(value, "item") else value)

    def to_json(self) -> dict[str, Any]:
        children = [child.to_json() for child in self.children.values()]
        return {"frame": {"name": self.name, "type": "function"}, "metrics": self.metrics, "children": children}


@dataclass
class Session:
    """What is recorded between `start` and `finalize`; the times of `launches` are asked for at the end."""

    path: str
    has_metadata: bool
    is_active: bool = True
    root: Node = field(default_factory=lambda: Node("ROOT", {COUNT: 0, TIME: 0}))
    launches: list[tuple[Node, Any, Any]] = field(default_factory=list)

    def add_launch(self, path: tuple[str, ...], metadata: Any, begin: Any, end: Any) -> None:
        entries = metadata.get() if self.has_metadata else metadata.data
        node = self.root.at((*path, entries["name"]))
        if self.has_metadata:
            of_author = {name: value for name, value in entries.items() if name not in ("name", "function", "stream")}
            node.add({name: value for name, value in of_author.items() if isinstance(value, int | float)})
        self.launches.append((node, begin, end))

    def write(self) -> None:
        """Wait for the launches, and write `<path>.hatchet`."""
        driver.active.get_device_interface().synchronize()
        kind, number = driver.active.get_current_target().backend.upper(), driver.active.get_current_device()
        for node, begin, end in self.launches:
            node.add({COUNT: 1, TIME: round(begin.elapsed_time(end) * 1e6)})
            node.metrics |= {"device_id": str(number), "device_type": kind}
        device = driver.active.utils.get_device_properties(number)
        devices = {
            kind: {str(number): {"num_sms": device["multiprocessor_count"], "clock_rate": device["sm_clock_rate"]}}
        }
        Path(f"{self.path}.hatchet").write_text(json.dumps([self.root.to_json(), devices]))


class Place(threading.local):
    """Where a thread is: the names of its scopes and, within a launch, the event at its beginning."""

    def __init__(self) -> None:
        self.path: tuple[str, ...] = ()
        self.begin: Any = None


_sessions: dict[int, Session] = {}
_place = Place()


def _active() -> list[Session]:
    return [session for session in _sessions.values() if session.is_active]


def _now() -> Any:
    event = driver.active.get_device_interface().Event(enable_timing=True)
    event.record()
    return event


def _before_launch(metadata: Any) -> None:
    _place.begin = _now() if _active() else None


def _after_launch(metadata: Any) -> None:
    if _place.begin is not None:
        end = _now()
        for session in _active():
            session.add_launch(_place.path, metadata, _place.begin, end)


def start(
    name: str | None = None,
    *,
    context: str = "shadow",
    data: str = "tree",
    backend: str | None = None,
    mode: Any = None,
    hook: str | None = None,
) -> int | None:
    """Begin a session, of which the number is returned; None where `PROTON_DISABLE` is set.

    Raises UsageError for what is not there: contexts of Python's calls, traces, and backends within kernels.
    """
    if knobs.proton.disable:
        return None
    _check("context", context, ("shadow",))
    _check("data", data, ("tree",))
    _check("backend", backend, (None, "cupti"))
    _check("mode", mode, (None, "", "default"))
    _check("hook", hook, (None, "triton"))
    if not hasattr(driver.active.get_device_interface(), "Event"):
        raise UsageError("Launches on a GPU are timed by torch's events: install torch for it, or use Nsight Systems.")
    number = max(_sessions, default=-1) + 1
    _sessions[number] = Session(name or DEFAULT_PROFILE_NAME, hook == "triton")
    knobs.runtime.launch_enter_hook.add(_before_launch)
    knobs.runtime.launch_exit_hook.add(_after_launch)
    return number


def _check(name: str, value: Any, known: tuple[Any, ...]) -> None:
    if value not in known:
        raise UsageError(f"Of Proton's {name} there is {' or '.join(map(repr, known))} in Deuteron, got {value!r}.")


def _chosen(session: int | None) -> list[int]:
    if session is not None and session not in _sessions:
        raise UsageError(f"There is no session {session}: start() returns its number, and finalize() ends it.")
    return list(_sessions) if session is None else [session]


def activate(session: int | None = None) -> None:
    """Record again, in one session or in all."""
    for number in _chosen(session):
        _sessions[number].is_active = True


def deactivate(session: int | None = None, flushing: bool = False) -> None:
    """Record nothing for the time being."""
    for number in _chosen(session):
        _sessions[number].is_active = False


def finalize(session: int | None = None, output_format: str | None = "hatchet") -> None:
    """End a session, or all, and write what was recorded."""
    _check("output_format", output_format, (None, "", "hatchet"))
    for number in _chosen(session):
        _sessions.pop(number).write()
    if not _sessions:
        knobs.runtime.launch_enter_hook.remove(_before_launch)
        knobs.runtime.launch_exit_hook.remove(_after_launch)


def profile(func: Callable[..., Any] | None = None, **options: Any) -> Callable[..., Any]:
    """A decorator: calls of the function are a session, which `finalize()` writes."""
    if func is None:
        return functools.partial(profile, **options)

    @functools.wraps(func)
    def profiled(*args: Any, **kwargs: Any) -> Any:
        session = start(**options)
        result = func(*args, **kwargs)
        deactivate(session)
        return result

    return profiled


def enter_scope(name: str, *, metrics: Mapping[str, Any] | None = None) -> None:
    """From here on launches are below `name`, until `exit_scope`."""
    _place.path = (*_place.path, name)
    _add(metrics)


def exit_scope(name: str | None = None, *, metrics: Mapping[str, Any] | None = None) -> None:
    """Leave the scope that was entered last; raises UsageError where it has another name."""
    if not _place.path or name not in (None, _place.path[-1]):
        raise UsageError(f"exit_scope({name or ''}) leaves the scope entered last; open are {list(_place.path)}.")
    _add(metrics)
    _place.path = _place.path[:-1]


def _add(metrics: Mapping[str, Any] | None) -> None:
    for session in _active():
        session.root.at(_place.path).add(metrics or {})


class scope(ContextDecorator):
    """`with scope(name, metrics):`, or a decorator: what is launched within is below `name`."""

    def __init__(self, name: str, metrics: Mapping[str, Any] | None = None):
        self.name, self.metrics = name, metrics

    def __enter__(self) -> scope:
        enter_scope(self.name, metrics=self.metrics)
        return self

    def __exit__(self, *exception: Any) -> None:
        exit_scope(self.name)


class cpu_timed_scope(scope):
    """A scope whose own time on the CPU is a metric of it."""

    def __enter__(self) -> scope:
        self._begin = time.perf_counter_ns()
        return super().__enter__()

    def __exit__(self, *exception: Any) -> None:
        exit_scope(self.name, metrics={CPU_TIME: time.perf_counter_ns() - self._begin})


def enter_state(name: str) -> None:
    """A state is a scope without metrics here."""
    enter_scope(name)


def exit_state() -> None:
    exit_scope()


@contextmanager
def state(name: str) -> Iterator[None]:
    """`with state(name):`, or a decorator."""
    with scope(name):
        yield


_FUNCTIONS = (start, activate, deactivate, finalize, profile, enter_scope, exit_scope, enter_state, exit_state, state)
PROFILER_NAMES = {
    "DEFAULT_PROFILE_NAME": DEFAULT_PROFILE_NAME,
    **{named.__name__: named for named in (*_FUNCTIONS, scope, cpu_timed_scope)},
}
