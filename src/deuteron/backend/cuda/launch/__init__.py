"""How kernels for NVIDIA GPUs are loaded and launched: the driver, streams, and the tensor maps that a launch makes."""
