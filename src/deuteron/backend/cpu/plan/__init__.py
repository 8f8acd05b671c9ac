"""Plans a kernel before any code is emitted: which tiles are kept in memory, which loops there are, who shares memory.

kernel_of(module)       prepare.py      a copy of the function that planning may change; inductions.py
Scheduler               schedule.py     items in order; fuse.py puts roots into nests, reads.py says what they read,
                                        effects.py what they do to the user's memory
ops                                     what is declared of each op class: how it is read, scheduled, computed
visitors.py                             what a declaration is given to enter what it says
needed.py                               what anybody sees of a tile;  needed_scans.py  up to where scans run

A plan is a `Region` (region.py) of `Nest`, `Dot`, `For` ... (items.py); what nests compute are roots.py, at indices.py,
of tiles that are in slots.py. By subject:

tiles                                   which of them are kept in memory, and where
products                                matrix products: their operands and sums
vectors                                 what is vectorised
programs                                their order, what they need not do

A property of a value depends on all that it is computed from: `memo.evaluate` visits each once.
"""
