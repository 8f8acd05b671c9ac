/* ${name}, every access checked against the sizes that are given. */
${algos}
${head} {
  const char *deuteron_why;
  deuteron_status deuteron_result = ${name}_supports(${arguments}, algo_id, &deuteron_why);
  int deuteron_i = algo_id;
  if (deuteron_result != DEUTERON_SUCCESS) {
    deuteron_say(deuteron_why, ${message}, ${message_size});
    return deuteron_result == DEUTERON_ERROR_NO_KERNEL ? DEUTERON_ERROR_INVALID_VALUE : deuteron_result;
  }
  if (algo_id == DEUTERON_ANY_ALGO)
    for (deuteron_i = 0; ${name}_supports(${arguments}, deuteron_i, &deuteron_why) != DEUTERON_SUCCESS;)
      deuteron_i++;
  switch (deuteron_i) {
${cases}
  default:
    return DEUTERON_ERROR_INVALID_VALUE;
  }
}
