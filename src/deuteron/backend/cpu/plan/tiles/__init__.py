"""Which tiles are kept in memory, and where.

storage.py     kept, or computed again by whoever reads it: by costs.py, and use.py, who reads it
views.py       tiles that show the memory of another one: reshapes, halves
private.py     tiles that only their own nest reads stay in registers
orders.py      which dimension of a kept tile is contiguous
buffers.py     who shares memory, and the offsets in the scratch memory; by liveness.py
"""
