"""PTX in the ops of tile IR, for targets that have no PTX.

registers.py     the registers of one template as values, reading and writing them as PTX types
integers.py      integers, bits, predicates, moves               (RULES, INTEGER_RULES)
floating.py      floats, conversions; all rules together         (ALL_RULES)
translate.py     the pass
"""
