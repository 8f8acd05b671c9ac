${head} {
  deuteron_status deuteron_result = DEUTERON_ERROR_UNSUPPORTED_DEVICE;
  int deuteron_bad = 0;
  *reason = "there is no kernel for this device";
${unused}
  (void)(${questions});
  return deuteron_result;
}
