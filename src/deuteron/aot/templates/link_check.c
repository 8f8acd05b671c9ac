${head} {
  deuteron_status deuteron_result = DEUTERON_ERROR_UNSUPPORTED_DEVICE;
${unused}
${dispatch}
  deuteron_say("only kernels for the CPU are checked; on a GPU compute-sanitizer checks", ${message}, ${message_size});
  return deuteron_result;
}
