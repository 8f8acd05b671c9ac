${algos}
int ${name}_get_num_algos(void) { return ${num_algos}; }

${launch} {
  switch (algo_id) {
${cases}
  default:
    return DEUTERON_ERROR_INVALID_VALUE;
  }
}

${launch_default} {
  return ${name}(${arguments}, 0);
}

/* Those for GPUs, and from there on those for the processor. */
static const deuteron_linked deuteron_kernels_${name}[] = {
    ${kernels},
};

deuteron_status load_${name}(deuteron_stream stream) {
  bool is_loaded[${num_kernels}];
  if (deuteron_on_cpu(stream))
    return deuteron_load_all(deuteron_kernels_${name} + ${num_gpu}, ${num_cpu}, is_loaded);
  return deuteron_load_all(deuteron_kernels_${name}, ${num_gpu}, is_loaded);
}

deuteron_status unload_${name}(deuteron_stream stream) {
  if (deuteron_on_cpu(stream))
    return deuteron_unload_all(deuteron_kernels_${name} + ${num_gpu}, ${num_cpu});
  return deuteron_unload_all(deuteron_kernels_${name}, ${num_gpu});
}
