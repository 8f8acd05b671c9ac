${head} {
  deuteron_status deuteron_result = DEUTERON_ERROR_UNSUPPORTED_DEVICE;
${unused}
${dispatch}
  deuteron_say("there is no kernel that checks for this device; on a GPU compute-sanitizer does", ${message}, ${message_size});
  return deuteron_result;
}
