"""Memory: places in shared memory, where threads have to wait for each other, and what keeps accesses in order.

allocate_shared.py   places everything that is in it
place_barriers.py    barriers between accesses that meet
fence_atomics.py     fences around atomics
"""
