"""PTX in the ops of tile IR: what inline assembly means to the interpreter, and to targets that have no PTX.

registers.py     the registers of one template as values, reading and writing them as PTX types
predicates.py    comparisons, kinds of floats, choices      (RULES)
integers.py      integers, bits, moves                      (RULES, INTEGER_RULES)
dots.py          sums of products of bytes                  (RULES)
control.py       trap, barriers, what has no effect         (RULES)
small_floats.py  floats of four and six bits
scales.py        powers of two in eight bits
floating.py      floats, conversions; all rules together    (ALL_RULES)
translation.py   an op of assembly on its arguments
"""
