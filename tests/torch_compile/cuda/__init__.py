"""The programs of torch.compile on a GPU that is not there: Inductor's code for CUDA, its kernels on the emulator.

    python -m torch_compile.cuda 90                  every program, for compute capability 9.0; in the folder tests
    python -m torch_compile.cuda 80 softmax          one of them

fake_gpu.py   torch believes in a GPU, whose tensors have no data
backend.py    a backend of torch.compile: traced on the CPU, compiled for the GPU, run on tensors of the CPU
kernels.py    what Inductor's code calls a kernel: compiled by Deuteron, launched on the emulator
"""
