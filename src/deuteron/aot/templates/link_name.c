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

deuteron_status load_${name}(void) {
  static deuteron_status (*const functions[])(void) = {
      ${load_functions},
  };
  return deuteron_all(functions, ${num_kernels});
}

deuteron_status unload_${name}(void) {
  static deuteron_status (*const functions[])(void) = {
      ${unload_functions},
  };
  return deuteron_all(functions, ${num_kernels});
}
