"""A fuzzer: random kernels, run by every executor and compared with the interpreter. See docs/fuzzing.md.

python -m tests.fuzz --seed 1 --count 1000 --executors cpu,cuda:80,cuda:90

generator/    a seed -> a kernel as Python source, its arguments, grid and options
mutator/      or one of real kernels, changed by random edits
case.py       such a program, its arrays, and its text as a stand-alone file
validity.py   which programs have one meaning: accesses in bounds, no races, an end
perturb/      the interpreter with every licence that the language gives taken at random
exactness.py  which numbers, sums and products are exact, so that they are the same in any order
oracle.py     what memory has to hold after the launch, element by element
executors.py  launching a case on the CPU, the emulator, a GPU; triton.py: by Triton's frontend
control_flow.py  kernels of Python's statements, which CPython runs too
jit.py        launching it again and again as users do, with other arguments (passed.py)
worker.py     a process that survives what it runs
shrink.py     a smaller program with the same failure
campaign.py   many programs, findings deduplicated and written down
"""
