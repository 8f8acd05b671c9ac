"""Tile IR: Triton's `tt` dialect with `arith`, `math` and `scf`, on xDSL.

arith.py  math.py     elementwise ops (xDSL's, with comparisons and selects that accept tiles)
tt/                   one file per op family: program, memory, atomic, shape, reduce, dot, convert, debug, function
effects.py            what an op touches besides giving its results: its class declares it
types.py              tiles and pointers: constructors and the questions that everybody asks of a type
location.py           source locations to and from MLIR's location attributes
builder.py            inserts ops and stamps each with the current location and name
text.py               context, parse, print
pretty/               the form that Triton prints; generic_printer.py prints MLIR's generic form
foreign.py            what Triton's ttir has and ours has not; structured.py: branches between blocks, polls.py: waiting
verifier.py           what must hold at each stage, beyond what each op verifies
"""
