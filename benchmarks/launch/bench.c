/* What a launch costs on the host: cuLaunchKernel alone, the function of a kernel, and the function that `link` makes.

       make run                       needs a GPU; DEUTERON=... and BUILD=... as in examples/aot

   This file includes an emitted kernel, to launch the very same machine code without it. The kernels do nothing, and the GPU
   is waited for between batches that fit into its queue, so that only the host's part is timed. */
#include EMITTED /* the `.c` of a kernel; it has the types, the driver's functions and the cubin */
#include "linked.h"
#include "timing.h"

static void *bare_kernel;
static void *bare_args[NUM_ARGS];
static uint64_t bare_values[NUM_ARGS][16] __attribute__((aligned(128))); /* as large as a tensor map */

static void check(const char *what, int status) {
  if (status != 0) {
    fprintf(stderr, "%s: %s\n", what, deuteron_status_string((deuteron_status)status));
    exit(status == (int)DEUTERON_ERROR_NO_DRIVER || status == (int)DEUTERON_ERROR_NO_DEVICE ? 2 : 1);
  }
}

static int bare(void) {
  return deuteron_cuda_v5.call.launch_kernel(bare_kernel, 1, 1, 1, deuteron_this.num_threads, 1, 1, 0, NULL, bare_args,
                                             NULL);
}

static int kernel(void) { return (int)KERNEL(NULL, ARGS); }

static int linked(void) { return (int)LINKED(NULL, ARGS); }

#ifdef TILES
/* Of other tensors than the launches before. */
static int encoded(void) {
  static unsigned address;
  address = (address + 1) % 4096;
  return (int)LINKED(NULL, TILES(65536 * (address + 1)));
}
#endif

int main(void) {
  static const char *const names[] = {"cuLaunchKernel alone", "the kernel's function", "the linked function",
                                      "and two maps are encoded"};
#ifdef TILES
  static int (*const launches[])(void) = {bare, kernel, linked, encoded};
#else
  static int (*const launches[])(void) = {bare, kernel, linked};
#endif
  int (*synchronize)(void), (*set_current)(void *);
  void *library, *context, *found;
  int i;
  check("load", (int)deuteron_cuda_load_v5(&deuteron_this));
  found = dlsym(deuteron_cuda_v5.handle, "cuCtxSynchronize");
  memcpy(&synchronize, &found, sizeof found);
  found = dlsym(deuteron_cuda_v5.handle, "cuCtxSetCurrent");
  memcpy(&set_current, &found, sizeof found);
  check("context", deuteron_cuda_v5.call.primary_ctx_retain(&context, 0));
  check("context", set_current(context));
  check("library", deuteron_cuda_v5.call.library_load_data(&library, deuteron_cubin, NULL, NULL, 0, NULL, NULL, 0));
  check("kernel", deuteron_cuda_v5.call.library_get_kernel(&bare_kernel, library, deuteron_this.symbol));
  for (i = 0; i < NUM_ARGS; i++) {
    bare_values[i][0] = i == POINTERS;
    bare_args[i] = bare_values[i];
  }
  check("launch", compare(names, launches, (int)(sizeof launches / sizeof launches[0]), synchronize));
  return 0;
}
