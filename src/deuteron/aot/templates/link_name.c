${algos}
int ${name}_get_num_algos(void) { return ${num_algos}; }

${launch} {
  switch (algo_id) {
${cases}
  default:
    return DEUTERON_ERROR_INVALID_VALUE;
  }
}

${default}
${select}
${supports}
/* Those for GPUs, and from there on those for the processor. */
static const deuteron_linked deuteron_kernels_${name}[] = {
    ${kernels},
};

${load} {
  bool is_loaded[${num_kernels}];
${load_each}
}

${unload} {
${unload_each}
}
${checked}