"""Random tile IR that no frontend writes: loops around dots and loads, what the interpreter stores is compared.

    PYTHONPATH=src:tests:. python -m random_ir [--first 0] [--count 100] [--minutes 10] [--costs] [--targets cuda:90]

Loops count from and to anywhere, also to the largest number; they carry sums, operands, masks, pointers, numbers and
conditions, of which they yield any: what they carry already, twice or exchanged, what was there before, what an inner
loop or a branch gave. Addresses, masks and `other` come of loads, loads of a loop are read after it, some kernels
store to what they load, count by atomics, or load what is volatile. All numbers are small integers, so that what is
stored is equal bit by bit.

`text` is a kernel as it grows, `values` what it computes, `control` loops and branches, `programs` whole kernels and
their arguments. `any_costs` of the fuzzer lets passes decide by lot where they weigh costs.
"""
