/* What the programs of this folder time launches by. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BATCH 500
#define BATCHES 400

#if NUM_ARGS == 5
#define ARGS 0, 0, 0, 1, 0.5f
#define POINTERS 3
#elif NUM_ARGS == 20
#define ARGS 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 0.5f
#define POINTERS 6
#elif NUM_ARGS == 11
#define TILES(x) x, 128, 64, 64, x, 128, 64, 64, 1 /* two descriptors of one address, and a number */
#define ARGS TILES(65536)
#define POINTERS 8
#else
#define ARGS \
  0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 0.5f
#define POINTERS 6
#endif

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Times functions in turn, so that what changes with time changes for all; prints the median and the fastest batch of each
   in ns a launch, and how much more the median is than the first one's. Returns the first status that is not 0. */
static int compare(const char *const *names, int (*const *launches)(void), int count, int (*synchronize)(void)) {
  static double times[8][BATCHES];
  double first = 0;
  int i, batch, which, status;
  for (batch = 0; batch < BATCHES; batch++) {
    for (which = 0; which < count; which++) {
      const double begin = now();
      for (i = 0; i < BATCH; i++)
        if ((status = launches[which]()) != 0)
          return status;
      times[which][batch] = (now() - begin) / BATCH;
      if ((status = synchronize()) != 0)
        return status;
    }
  }
  printf("%d arguments                    median  fastest     more   (ns a launch)\n", NUM_ARGS);
  for (which = 0; which < count; which++) {
    qsort(times[which], BATCHES, sizeof times[which][0], ascending);
    first = which == 0 ? times[0][BATCHES / 2] : first;
    printf("%-28s %8.0f %8.0f %8.0f\n", names[which], times[which][BATCHES / 2], times[which][0],
           times[which][BATCHES / 2] - first);
  }
  return 0;
}
