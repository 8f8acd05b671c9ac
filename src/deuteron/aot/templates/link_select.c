${head} {
  static const struct {
${fields}
  } deuteron_rows[] = {
${rows}
  };
  int deuteron_i;
  for (deuteron_i = 0; deuteron_i < ${num_algos}; deuteron_i++)
    if (${condition})
      return deuteron_i;
  return -1;
}
