"""Plans a kernel before any code is emitted: which tiles are kept in memory, which loops there are, who shares memory.

kernel_of(module)       prepare.py      a copy of the function that planning may change
visitors.py                             what a declaration is given to enter what it says
ops                                     what is declared of each op class: how it is read, scheduled, computed
Storage                 storage.py      tiles to keep; costs, effects, inductions, views answer its questions
Scheduler               schedule.py     items in order; fuse.py puts roots into nests, reads.py says what they read
release_private_tiles   private.py      tiles that only their own nest reads stay in registers
choose_orders           orders.py       which dimension of a tile is contiguous in memory
assign_buffers          buffers.py      who shares memory and where it is, by liveness.py
choose_axis             axes.py         what is vectorised; steps.py

A property of a value depends on all that it is computed from: `memo.evaluate` visits each once.
"""
