/* What kernels that wait, assert, or check what they access, are told and tell; their arguments end with its address. */
#ifndef DEUTERON_CONTROL_H
#define DEUTERON_CONTROL_H

#include <stdint.h>

typedef struct {
  int32_t stop, assertion, program[3], unused;
  int64_t lane;
  uint64_t address;
} deuteron_control;

/* What `stop` is when the launch is to end: its caller does not want it, or an assertion or access of a program fails. */
enum { DEUTERON_CALLED_OFF = 1, DEUTERON_FAILED = 2 };

#endif
