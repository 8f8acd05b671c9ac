"""The NumPy interpreter: the definition of the language, and the oracle of every test.

    run_module(module, [x, y, out, n], grid=(8, 1, 1))

Programs run one at a time, x fastest, so that a debugger and `print` work. Every op has one rule, a NumPy function.

    executor.py        walks blocks, looks rules up, binds results, gives an exception its op and location
    turns.py           programs that may wait for one another
    arguments.py       what a caller passes -> values of the parameters and the memory of the launch
    allocation.py      buffers, bounds and alignment checks, gather and scatter
    provenance.py      the argument that a pointer was computed from
    values.py          NumPy dtypes of values, rounding to narrow floats
    numerics/          formats of floats, and functions that NumPy lacks
    rules.py           all rules, and what one takes and gives
    program.py memory.py atomic.py shape.py reduce.py dot.py convert.py arithmetic.py math.py debug.py control_flow.py
                       the rules, one file per op family
"""

from deuteron.interpreter.allocation import Buffer as Buffer
from deuteron.interpreter.executor import run_module as run_module
