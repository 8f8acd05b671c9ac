/* Names of statuses. In every emitted file and weak, so that a program has it once. */
#include "cpu_types.h"

#ifdef __cplusplus
extern "C" {
#endif

__attribute__((weak)) const char *deuteron_status_string(deuteron_status status) {
  switch ((int)status) {
  case 0:
    return "success";
  case 1:
    return "invalid value";
  case 2:
    return "out of memory";
  case 209:
    return "unsupported device";
  default:
    return "unknown status";
  }
}

#ifdef __cplusplus
}
#endif
