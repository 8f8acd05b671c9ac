"""The launcher: machine code that does what a launch from Python does, for launches whose kernel is known.

    records.py      what it reads, as records of words        tokens.py      the numbers of tokens and constants
    code.py         functions of LLVM IR, calls of CPython's C API
    arguments.py    one argument: its token, what is passed   numpy_arrays.py, torch_tensors.py    how it reads these
    bind.py         the arguments in order, the key           entries.py     the entry of a key, its conditions, packing
    grid.py         the extents                               run.py         the target
    frame.py        what a launch keeps on its stack          call.py, chosen.py     launches, those of autotuners
    loaded.py       the code in this process

    plain_call.py   launches with everything given in order, and plain_loaded.py
    python_function.py      functions of Python that are machine code

`runtime/fast_launch.py` makes the entries. What a target does with packed arguments is the target's.
"""
