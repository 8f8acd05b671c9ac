/* The types that every function of a compiled kernel uses, as they are for the CPU. For CUDA they are those of cuda.h,
   with the same names here, so that one program compiles for either. */
#ifndef DEUTERON_TYPES_H
#define DEUTERON_TYPES_H
#define DEUTERON_TARGET_CPU 1

#include <stdbool.h>
#include <stdint.h>

typedef void *deuteron_ptr;             /* an address of the device's memory: on the CPU, any address */
typedef const void *deuteron_const_ptr; /* one through which no kernel writes */
typedef void *deuteron_stream;          /* has no meaning on the CPU: a call returns when the kernel has run */
typedef int deuteron_status;
#define DEUTERON_STATUS(number) (number)

#elif !defined(DEUTERON_TARGET_CPU)
#error "this file includes kernels for the CPU and for CUDA, whose types differ: include each in a file of its own"
#endif
