/* The types that every function of a compiled kernel uses, as they are for the CPU. For CUDA they are those of cuda.h,
   with the same names here and the same numbers, so that one program compiles for either. */
#ifndef DEUTERON_TYPES_H
#define DEUTERON_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void *deuteron_ptr;    /* an address of the device's memory: on the CPU, any address */
typedef void *deuteron_stream; /* has no meaning on the CPU: a call returns when the kernel has run */
typedef int deuteron_status;

#define DEUTERON_SUCCESS ((deuteron_status)0)
#define DEUTERON_ERROR_INVALID_VALUE ((deuteron_status)1)        /* an argument, the grid or algo_id */
#define DEUTERON_ERROR_OUT_OF_MEMORY ((deuteron_status)2)        /* no scratch memory for the kernel */
#define DEUTERON_ERROR_UNSUPPORTED_DEVICE ((deuteron_status)209) /* the kernel needs another processor */

/* The name of a status, never NULL. */
const char *deuteron_status_string(deuteron_status status);

#ifdef __cplusplus
}
#endif

#endif
