/* The types that every function of a library uses, the same for kernels on the CPU and on GPUs, so that one library, and one
   function of it, may have both: an address is a pointer, a stream too, a status is an int. */
#ifndef DEUTERON_TYPES_H
#define DEUTERON_TYPES_H
#define DEUTERON_TARGET_LIBRARY 1

#include <stdbool.h>
#include <stdint.h>

typedef void *deuteron_ptr;             /* an address of the device's memory */
typedef const void *deuteron_const_ptr; /* one through which no kernel writes */
typedef void *deuteron_stream;          /* of a GPU a CUstream or cudaStream_t, NULL for the default one; or DEUTERON_CPU */
typedef int deuteron_status;
#define DEUTERON_STATUS(number) (number)

/* In the place of a stream: run on the processor, and return when that is done. */
#ifdef __cplusplus
#define DEUTERON_CPU reinterpret_cast<deuteron_stream>(static_cast<intptr_t>(-1))
#else
#define DEUTERON_CPU ((deuteron_stream)(intptr_t)-1)
#endif

#elif !defined(DEUTERON_TARGET_LIBRARY)
#error "this file includes a library and single kernels, whose types differ: include each in a file of its own"
#endif
