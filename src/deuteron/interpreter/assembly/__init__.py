"""PTX in the ops of tile IR: what inline assembly means to the interpreter, and to targets that have no PTX.

registers.py     the registers of one template as values, reading and writing them as PTX types
integers.py      integers, bits, predicates, moves               (RULES, INTEGER_RULES)
control.py       trap, and what has no effect               (RULES)
floating.py      floats, conversions; all rules together         (ALL_RULES)
translation.py   an op of assembly on its arguments
"""
