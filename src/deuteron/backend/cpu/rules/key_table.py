"""Which keys an operand is kept packed under, from program to program: a table of words for each operand.

    clock, period, is hopeful, groups of an entry, 0        period: after how many programs a key was met again, last
    key of this program;  key of the one before
    entry 0: when it was met, or 0;  was it met again;  steps that are packed;  key
    entry 1 ...

What is met once is not worth being kept: it would be written to a place that is not in the first cache. So a key is
entered when it is first met, and what it stands for is kept from the second time on; at once where keys have been met
again of late, or are expected to be. A new key takes the place of the oldest entry, if that one has not been met for a
period. So of keys that come in turns, and are more than there is room for, the first ones stay, and are found.

    pid_m 0 1 2 3 0 1 2 3 ... 4 5 6 7 4 ...     room for 6      4 and 5 are entered, 6 and 7 take the places of 0 and 1
    pid_m 0 1 2 3 0 1 2 3 ...                   room for 2      0 and 1 are found, 2 and 3 never
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from deuteron.backend.cpu.plan.slots import ENTRY_WORDS, TABLE_WORDS
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import Value, const

CLOCK, PERIOD, IS_HOPEFUL, GROUPS, NOTHING = range(TABLE_WORDS)
_LAST, _MET_AGAIN, PACKED, _KEY = range(4)  # of an entry

_LONG = 64  # programs after which a key is not expected any more where none has been met again of late

_ATTRIBUTES = 'noinline nounwind "no-builtins"'


def begin_table(b: Builder, table: Value, is_hopeful: Value) -> None:
    """Of a table that is all zeros: whether keys are expected to be met again, one by the program after its first."""
    b.store(b.select(is_hopeful, const("i64", 1), const("i64", _LONG)), table_word(b, table, PERIOD))
    b.store(b.zext(is_hopeful, "i64"), table_word(b, table, IS_HOPEFUL))


def put_key(b: Builder, table: Value, keys: Sequence[Value]) -> None:
    for number, key in enumerate(keys):
        b.store(key, table_word(b, table, TABLE_WORDS + number))


def find_key(b: Builder, table: Value, num_keys: int, num_entries: int, capacity: int, groups: Value) -> Value:
    """The number of the entry that this program's operand is to be kept in, or is, of so many groups; -1: of none."""
    name = f"find_key.{num_keys}"
    if not b.module.has_function(name):
        _emit_find(b.module, name, num_keys)
    return b.call("i64", name, table, groups, const("i64", capacity), const("i64", num_entries))


def entry_word(b: Builder, table: Value, num_keys: int, entry: Value, number: int) -> Value:
    first = const("i64", TABLE_WORDS + 2 * num_keys + number)
    return b.gep("i64", table, b.add(b.mul(entry, const("i64", ENTRY_WORDS + num_keys)), first))


def table_word(b: Builder, table: Value, number: int) -> Value:
    return b.gep("i64", table, const("i64", number)) if number else table


def _emit_find(module: Module, name: str, num_keys: int) -> None:
    """The function that looks for a key and enters it; what has more groups than any before empties the table, since
    entries are as far apart as they have groups.
    """
    parameters = [("ptr", "table"), ("i64", "groups"), ("i64", "capacity"), ("i64", "most")]
    b = module.function(name, "i64", parameters, attributes=_ATTRIBUTES)
    table, groups, capacity, most = b.parameters
    keys = [b.load("i64", table_word(b, table, TABLE_WORDS + number)) for number in range(num_keys)]
    is_previous = _is_previous(b, table, keys)
    known = b.load("i64", table_word(b, table, GROUPS))
    is_emptied, groups = b.icmp("ugt", groups, known), b.umax(groups, b.umax(known, const("i64", 1)))
    b.store(groups, table_word(b, table, GROUPS))
    now = b.add(b.load("i64", table_word(b, table, CLOCK)), const("i64", 1))
    b.store(now, table_word(b, table, CLOCK))
    num_entries = b.umin(b.umax(b.udiv(capacity, groups), const("i64", 1)), most)
    found, oldest, last = _search(b, table, keys, num_entries, is_emptied)
    with b.if_(b.icmp("sge", found, const("i64", 0)), "found") as branch:
        _meet_again(b, table, num_keys, found, now)
        branch.yield_(found)
        branch.otherwise()
        branch.yield_(_enter(b, table, keys, oldest, last, now, is_previous))
    b.ret(branch.results[0])


def _is_previous(b: Builder, table: Value, keys: Sequence[Value]) -> Value:
    """Whether the key is that of the program before, whose place it takes."""
    places = [table_word(b, table, TABLE_WORDS + len(keys) + number) for number in range(len(keys))]
    is_equal = _are_equal(b, places, keys)
    for place, key in zip(places, keys, strict=True):
        b.store(key, place)
    return is_equal


def _are_equal(b: Builder, places: Sequence[Value], keys: Sequence[Value]) -> Value:
    equal = [b.icmp("eq", b.load("i64", place), key) for place, key in zip(places, keys, strict=True)]
    return functools.reduce(b.and_, equal, const("i1", 1))


def _search(
    b: Builder, table: Value, keys: Sequence[Value], num_entries: Value, is_emptied: Value
) -> tuple[Value, Value, Value]:
    """The entry of the key, or -1; the oldest entry, and when that was met."""
    start = [const("i64", -1), const("i64", 0), const("i64", -1)]
    with b.loop(const("i64", 0), num_entries, const("i64", 1), start, "entry") as loop:
        found, oldest, oldest_last = loop.carried
        entry = functools.partial(entry_word, b, table, len(keys), loop.index)
        last = b.select(is_emptied, const("i64", 0), b.load("i64", entry(_LAST)))
        b.store(last, entry(_LAST))
        is_entered = b.icmp("ne", last, const("i64", 0))
        places = [entry(_KEY + number) for number in range(len(keys))]
        is_here = b.and_(is_entered, _are_equal(b, places, keys))
        is_older = b.icmp("ult", last, oldest_last)
        loop.next(
            b.select(is_here, loop.index, found),
            b.select(is_older, loop.index, oldest),
            b.select(is_older, last, oldest_last),
        )
    return loop.results


def _meet_again(b: Builder, table: Value, num_keys: int, entry: Value, now: Value) -> None:
    place = functools.partial(entry_word, b, table, num_keys, entry)
    b.store(b.sub(now, b.load("i64", place(_LAST))), table_word(b, table, PERIOD))
    b.store(const("i64", 1), table_word(b, table, IS_HOPEFUL))
    b.store(now, place(_LAST))
    b.store(const("i64", 1), place(_MET_AGAIN))


def _enter(
    b: Builder, table: Value, keys: Sequence[Value], entry: Value, last: Value, now: Value, is_previous: Value
) -> Value:
    """Give a key the oldest entry, if it may have it; whether what it stands for is kept there at once."""
    place = functools.partial(entry_word, b, table, len(keys), entry)
    period, is_empty = b.load("i64", table_word(b, table, PERIOD)), b.icmp("eq", last, const("i64", 0))
    is_over = b.icmp("uge", b.sub(now, last), period)
    with b.if_(b.or_(b.or_(is_empty, is_over), is_previous), "enter") as branch:
        was_in_vain = b.icmp("eq", b.or_(_was_met(b, place, is_empty), b.zext(is_previous, "i64")), const("i64", 0))
        hope = b.select(was_in_vain, const("i64", 0), b.load("i64", table_word(b, table, IS_HOPEFUL)))
        hope = b.select(is_previous, const("i64", 1), hope)
        period = b.select(is_previous, const("i64", 1), b.select(was_in_vain, const("i64", _LONG), period))
        b.store(hope, table_word(b, table, IS_HOPEFUL))
        b.store(period, table_word(b, table, PERIOD))
        words = [now, b.zext(is_previous, "i64"), const("i64", 0), *keys]
        for number, value in enumerate(words):
            b.store(value, place(number))
        branch.yield_(b.select(b.icmp("ne", hope, const("i64", 0)), entry, const("i64", -1)))
        branch.otherwise()
        branch.yield_(const("i64", -1))
    return branch.results[0]


def _was_met(b: Builder, place: functools.partial, is_empty: Value) -> Value:
    """Whether the entry that is replaced was of use, or was none."""
    return b.select(is_empty, const("i64", 1), b.load("i64", place(_MET_AGAIN)))
