/* A loop of cuLaunchKernel and nothing else: what a launch cannot cost less than. Loaded by `python -m benchmarks.launch`. */
#include <stddef.h>

typedef int (*launch_function)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                               void **);

int bare_launches(launch_function launch, void *kernel, unsigned num_threads, void *stream, void **arguments, int count) {
  int i, status = 0;
  for (i = 0; i < count && status == 0; i++)
    status = launch(kernel, 1, 1, 1, num_threads, 1, 1, 0, stream, arguments, NULL);
  return status;
}
