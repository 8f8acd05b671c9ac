/* What kernels that assert, or check what they access, tell; their arguments end with its address. */
#ifndef DEUTERON_CONTROL_H
#define DEUTERON_CONTROL_H

#include <stdint.h>

typedef struct {
  int32_t stop, assertion, program[3], unused;
  int64_t lane;
  uint64_t address;
} deuteron_control;

#endif
