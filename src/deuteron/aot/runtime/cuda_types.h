/* The types that every function of a compiled kernel uses, as they are for CUDA: those of cuda.h. Nothing of CUDA is needed
   to compile this. Where cuda.h can be included it is, so that it may also be included before or after. */
#ifndef DEUTERON_TYPES_H
#define DEUTERON_TYPES_H
#define DEUTERON_TARGET_CUDA 1

#include <stdbool.h>
#include <stdint.h>

#ifdef __has_include
#if __has_include(<cuda.h>)
#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#endif
#include <cuda.h>
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif
#endif
#endif

#ifndef __cuda_cuda_h__ /* what cuda.h defines */
typedef unsigned long long CUdeviceptr;
typedef struct CUstream_st *CUstream;
typedef enum cudaError_enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_UNKNOWN = 999
} CUresult;
#endif

typedef CUdeviceptr deuteron_ptr;       /* an address of the device's memory */
typedef CUdeviceptr deuteron_const_ptr; /* one through which no kernel writes */
typedef CUstream deuteron_stream;       /* what a launch is queued on; NULL is the default stream */
typedef CUresult deuteron_status;
#ifdef __cplusplus
#define DEUTERON_STATUS(number) static_cast<CUresult>(number)
#else
#define DEUTERON_STATUS(number) ((CUresult)(number))
#endif

#elif !defined(DEUTERON_TARGET_CUDA)
#error "this file includes kernels for the CPU and for CUDA, whose types differ: include each in a file of its own"
#endif
