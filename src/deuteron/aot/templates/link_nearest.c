${nearest}
/* Whether a call has launched nothing, for want of a kernel. */
static bool deuteron_is_not_taken(deuteron_status status) {
  return status == DEUTERON_ERROR_INVALID_VALUE || status == DEUTERON_ERROR_UNSUPPORTED_DEVICE;
}
${newest}