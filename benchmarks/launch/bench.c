/* What a launch costs on the host: cuLaunchKernel alone, the function of a kernel, and the function that `link` makes.

       make run                       needs a GPU; DEUTERON=... and BUILD=... as in examples/aot

   This file includes an emitted kernel, to launch the very same machine code without it. The kernels do nothing, and the GPU
   is waited for between batches that fit into its queue, so that only the host's part is timed. */
#include EMITTED /* the `.c` of a kernel; it has the types, the driver's functions and the cubin */
#include "linked.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BATCH 500
#define BATCHES 400

#if NUM_ARGS == 5
#define ARGS 0, 0, 0, 1, 0.5f
#define POINTERS 3
#else
#define ARGS 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 0.5f
#define POINTERS 6
#endif

static void *driver;
static void *bare_kernel;
static void *bare_args[NUM_ARGS];
static uint64_t bare_values[NUM_ARGS];

static void check(const char *what, int status) {
  if (status != 0) {
    fprintf(stderr, "%s: %s\n", what, deuteron_status_string((deuteron_status)status));
    exit(status == (int)DEUTERON_ERROR_NO_DRIVER || status == (int)DEUTERON_ERROR_NO_DEVICE ? 2 : 1);
  }
}

static int bare(void) {
  return deuteron_cuda_v3.call.launch_kernel(bare_kernel, 1, 1, 1, deuteron_this.num_threads, 1, 1, 0, NULL, bare_args,
                                             NULL);
}

static int kernel(void) { return (int)KERNEL(NULL, ARGS); }

static int linked(void) { return (int)LINKED(NULL, ARGS); }

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Prints the median and the fastest batch, in ns a launch. */
static double report(const char *name, double *times) {
  qsort(times, BATCHES, sizeof *times, ascending);
  printf("%-28s %8.0f %8.0f\n", name, times[BATCHES / 2], times[0]);
  return times[BATCHES / 2];
}

int main(void) {
  static double times[3][BATCHES];
  static int (*const launch[3])(void) = {bare, kernel, linked};
  int (*synchronize)(void), (*set_current)(void *);
  void *library, *context, *found;
  double first;
  int i, batch, which;
  check("load", (int)deuteron_cuda_load_v3(&deuteron_this));
  driver = deuteron_cuda_v3.handle;
  found = dlsym(driver, "cuCtxSynchronize");
  memcpy(&synchronize, &found, sizeof found);
  found = dlsym(driver, "cuCtxSetCurrent");
  memcpy(&set_current, &found, sizeof found);
  check("context", deuteron_cuda_v3.call.primary_ctx_retain(&context, 0));
  check("context", set_current(context));
  check("library", deuteron_cuda_v3.call.library_load_data(&library, deuteron_cubin, NULL, NULL, 0, NULL, NULL, 0));
  check("kernel", deuteron_cuda_v3.call.library_get_kernel(&bare_kernel, library, deuteron_this.symbol));
  for (i = 0; i < NUM_ARGS; i++) {
    bare_values[i] = i == POINTERS;
    bare_args[i] = &bare_values[i];
  }
  for (batch = 0; batch < BATCHES; batch++) {
    for (which = 0; which < 3; which++) { /* in turn, so that what changes with time changes for all */
      const double begin = now();
      for (i = 0; i < BATCH; i++)
        check("launch", launch[which]());
      times[which][batch] = (now() - begin) / BATCH;
      check("synchronize", synchronize());
    }
  }
  printf("%d arguments                    median  fastest   (ns a launch)\n", NUM_ARGS);
  first = report("cuLaunchKernel alone", times[0]);
  printf("%28s %8.0f more\n", "", report("the kernel's function", times[1]) - first);
  printf("%28s %8.0f more\n", "", report("the linked function", times[2]) - first);
  return 0;
}
