"""LLVM for every backend: a builder of LLVM IR text, the optimiser, the emitters and the loader.

types         Value, type strings, exact constants
builder       Builder: one function; its instructions are in arithmetic, vectors, memory and control_flow
module        Module: functions, globals, declarations, metadata -> text
targets       the CPU names and features that LLVM knows
compile       LLVM IR text -> optimised text, assembly, object; the only user of llvmlite's compiler
loader        an object -> addresses of its functions in this process
"""
