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

static const deuteron_linked deuteron_kernels_${name}[] = {
    ${kernels},
};

deuteron_status load_${name}(void) {
  bool is_loaded[${num_kernels}];
  return deuteron_load_all(deuteron_kernels_${name}, ${num_kernels}, is_loaded);
}

deuteron_status unload_${name}(void) { return deuteron_unload_all(deuteron_kernels_${name}, ${num_kernels}); }
