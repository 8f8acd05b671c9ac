"""Rewrites IR between passes into other IR that means the same: what follows has to give the same values.

    PYTHONPATH=src:tests python -m equal_ir [CASE ...] [--targets cuda:80 cuda:90] [--seeds 4] [--only NAME ...]

reorder             pure ops of a block in another order
duplicate           x = f(a); g(x), h(x)              ->  x = f(a); y = f(a); g(x), h(y)
swap_operands       a + b                             ->  b + a
choose_same         x = f(a)                          ->  x = f(a) if <true> else y
wrap_in_branch      x = f(a)                          ->  x = f(a) if <true> else f(a)
rotate_carried      for ... carries (a, b, c)         ->  for ... carries (c, a, b)
carry_unused        for ...:                          ->  for ..., y = x:  ...; yield y, or what the body computes
carry_twice         for ... carries a                 ->  for ... carries a, a, of which each is used somewhere
carry_invariant     for ...: uses x                   ->  for ..., y = x: uses y; yield y
carry_index         for k in range(b, e, s): f(k)     ->  for ..., i = b: f(i); yield i + s
carry_computed      for k ...: x = f(k)               ->  for k ..., x = f(b): yield f(k + s)
split_loop          for k in range(b, e, s)           ->  range(b, min(b + n * s, e), s), then from there to e
peel_first          for k in range(b, e, s)           ->  if b < e: an iteration; then range(b + s, e, s)
nest_loop           for k in range(b, e, s)           ->  the loop in one that runs once
count_from_zero     for k in range(b, e, s): f(k)     ->  for i in range(0, ceil((e - b) / s)): f(b + i * s)
widen_index         for k in range(b, e, s): f(k)     ->  for k of 64 bits: f(k of 32 bits)

`ops`, `loops` and `indices` have the rewrites, `places` what they have in common, `launches` the kernels of
tests/kernels, compiled with rewrites after some passes, and what they stored. Rewrites are done before places in shared
memory are given: from there on the order of ops says which of them share one.
"""
