/* What was measured: the target (0 is the processor), the algorithm, ${keys}, and the logarithms of these. */
static const int64_t deuteron_tuned_${name}[][${width}] = {
${rows}
};

/* The algorithm that was fastest for the nearest sizes; where it has no kernel for these arguments, the first that has. */
${launch_default} {
  const int64_t deuteron_sizes[] = {${sizes}};
  const int64_t deuteron_target = ${target};
  const int deuteron_first =
      deuteron_nearest(deuteron_tuned_${name}[0], ${num_rows}, ${num_keys}, deuteron_target, deuteron_sizes);
  const deuteron_status deuteron_result = ${name}(${arguments}, deuteron_first);
  int deuteron_i;
  if (!deuteron_is_not_taken(deuteron_result))
    return deuteron_result;
  for (deuteron_i = 0; deuteron_i < ${num_algos}; deuteron_i++) {
    const deuteron_status deuteron_other = ${name}(${arguments}, deuteron_i);
    if (!deuteron_is_not_taken(deuteron_other))
      return deuteron_other;
  }
  return deuteron_result;
}
