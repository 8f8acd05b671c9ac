"""What is true of a processor, whoever compiles for it: the machine description.

    nvidia_gpu.registers.max_per_thread       255
    nvidia_gpu.wgmma                          None but for 9.0: nothing multiplies with it elsewhere
    GPUConfig(nvidia_gpu, num_warps=8)        what passes over a kernel get

gpu.py      GPU, GPUConfig        numbers, and capabilities that a GPU has or has not
cpu.py      CPU                   the same of a CPU, which LLVM knows
tile.py     TileConfig            what passes on tile IR get, which know of both
matrix.py   MatrixUnit            instructions that multiply matrices

Backends fill descriptions in (`backend/cuda/target.py`, `backend/cpu/target.py`); passes, analyses and cost models ask
them, never which target it is. What a description does not say, the machine does not have.
"""
