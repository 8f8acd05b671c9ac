"""What is common to GPUs: ttgir to LLVM IR.

context.py                                rules looked up, values bound
fragment.py elements.py words.py          a tile: layout and registers; how elements are held and packed
threads.py                                what depends on lane and warp
shared_tile.py shuffles.py                tiles in shared memory, elements in other lanes
advanced_pointers.py                      pointers that a loop advances
lowering.py                               the kernel around the rules
isa.py formats.py                         what a target provides; conversions of floats
rules/                                    one file per op family
"""
