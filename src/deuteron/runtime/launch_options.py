"""The keywords of a launch that are no parameters: options of the target, such as `num_warps`.

launch_options(add, backend, {"num_warps": 8})      the backend's options
launch_options(add, backend, {"num_warp": 8})       LaunchError: ... 'num_warp' ... Did you mean 'num_warps'?
key_of_options({"extern_libs": {...}})              (("extern_libs", "{...}"),)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from deuteron.errors import LaunchError, suggest
from deuteron.options import IGNORED_OPTIONS, REFUSED_OPTIONS, option_names, unknown_options
from deuteron.runtime.binding import usage

if TYPE_CHECKING:
    from deuteron.runtime.jit import JITFunction


def launch_options(fn: JITFunction, backend: Any, keywords: Mapping[str, Any]) -> Any:
    """The options with which it is compiled; raises LaunchError for a keyword that is none."""
    given = {name: value for name, value in keywords.items() if name != "ir_override"}
    given = {"debug": True, **given} if fn.debug else given
    if unknown := unknown_options(backend.options_class, given):
        known = option_names(backend.options_class)
        instead = REFUSED_OPTIONS.get(unknown[0])
        near = f" {instead}" if instead else suggest(unknown[0], [*fn.arg_names, *known])
        known = ", ".join(known)
        raise LaunchError(f"{usage(fn)}; '{unknown[0]}' is none of these and no option: {known}.{near}")
    return backend.make_options(given).for_launch()


def key_of_options(options: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """The options, those that are ignored as texts: they may be dictionaries."""
    if IGNORED_OPTIONS.keys().isdisjoint(options):
        return tuple(options.items())
    return tuple(_hashable(options))


def _hashable(options: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in options.items():
        yield name, repr(value) if name in IGNORED_OPTIONS else value
