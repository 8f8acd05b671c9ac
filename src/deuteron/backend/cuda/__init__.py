"""NVIDIA GPUs: ttgir to LLVM IR, PTX and cubin.

backend.py       options and stages            target.py, ptxas.py    architectures, the assembler
lowering.py      one kernel                    context.py             rules looked up, values bound
fragment.py      a tile: layout and registers  elements.py, words.py  how elements are held and packed
threads.py       what depends on lane and warp accesses.py            vectors of elements in memory
shared_tile.py, shuffles.py                    tiles in shared memory, elements in other lanes
math.py, formats.py, mma.py                    functions, conversions, mma.sync
rules/           one file per op family
"""
