/* The same as bench.c of what Triton's compile.py and link.py write for the same kernels: `make run-triton`. */
#include <cuda.h>

#include "linked.h"
#include "timing.h"

extern CUfunction FUNCTION; /* of the emitted file, once it is loaded */

static void *bare_args[NUM_ARGS + 2];
static uint64_t bare_values[NUM_ARGS + 2];

static int bare(void) { return (int)cuLaunchKernel(FUNCTION, 1, 1, 1, 128, 1, 1, 0, NULL, bare_args, NULL); }

static int linked(void) { return (int)LINKED(NULL, ARGS); }

static int synchronize(void) { return (int)cuCtxSynchronize(); }

static int prepare(void) {
  CUcontext context;
  CUdevice device;
  int i, status;
  for (i = 0; i < NUM_ARGS + 2; i++) {
    bare_values[i] = i == POINTERS;
    bare_args[i] = &bare_values[i];
  }
  if ((status = (int)cuInit(0)) || (status = (int)cuDeviceGet(&device, 0)))
    return status;
  if ((status = (int)cuDevicePrimaryCtxRetain(&context, device)) || (status = (int)cuCtxSetCurrent(context)))
    return status;
  return linked(); /* which loads it */
}

int main(void) {
  static const char *const names[] = {"cuLaunchKernel alone", "Triton's linked function"};
  static int (*const launches[])(void) = {bare, linked};
  int status = prepare();
  if (status == 0)
    status = compare(names, launches, 2, synchronize);
  if (status != 0)
    fprintf(stderr, "CUresult %d\n", status);
  return status != 0;
}
