${asks}
${head} {
  const char *deuteron_why = "there is no algorithm of this number";
  deuteron_status deuteron_result = DEUTERON_ERROR_INVALID_VALUE;
  int deuteron_i;
  switch (algo_id) {
${cases}
  case DEUTERON_ANY_ALGO:
    deuteron_result = DEUTERON_ERROR_UNSUPPORTED_DEVICE;
    for (deuteron_i = 0; deuteron_i < ${num_algos} && deuteron_result != DEUTERON_SUCCESS; deuteron_i++) {
      const char *deuteron_other;
      const deuteron_status deuteron_one = ${name}_supports(${arguments}, deuteron_i, &deuteron_other);
      if (deuteron_i == 0 || deuteron_one != DEUTERON_ERROR_UNSUPPORTED_DEVICE)
        deuteron_result = deuteron_one, deuteron_why = deuteron_other;
    }
    break;
  default:
    break;
  }
  if (reason)
    *reason = deuteron_why;
  return deuteron_result;
}
