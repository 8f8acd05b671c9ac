"""How kernels for processors are launched: loading, threads, and the machine code that calls programs."""
