"""Analyses of tile IR that passes and lowerings ask: what is known of a value, without changing it.

axis/             of integers and pointers along the dimensions of a tile
addresses/        where the elements of a tile are
aliasing/         what may be one place in memory, and in which order it is touched
shared_memory/    where shared memory is in use, and who waits
"""
