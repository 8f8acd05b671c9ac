/* What the library of a kernel says of it to the launcher, under the kernel's name. */
#include "cpu_types.h"

#define DEUTERON_KERNEL_VERSION 2

typedef struct {
  uint32_t version;
  const char *name;
  void (*programs)(void *const *args, const uint32_t *grid, uint64_t begin, uint64_t end, void *scratch);
  uint64_t scratch_bytes;
  const uint8_t *kinds; /* of each parameter: 0 known to the compiler, 1 a pointer, 2 a number */
  uint32_t num_params;
  const deuteron_cpu_feature *features; /* that the processor must have */
  uint32_t num_features;
  int *known;                    /* what deuteron_check_cpu found */
  const char *const *assertions; /* by their numbers */
  bool waits;                    /* programs may wait for one another */
} deuteron_library_kernel;
