/* The program's executor. In every emitted file, weak and visible to other files, so that a program and its shared
   libraries have one. */
#include <pthread.h>

#include "cpu_types.h"
#include "executor.h"

#define DEUTERON_SHARED __attribute__((weak, visibility("hidden")))
#define DEUTERON_PROGRAM_WIDE __attribute__((weak, visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  pthread_mutex_t mutex; /* over the others, which belong together */
  int is_set;            /* atomic */
  deuteron_executor run;
  void *context;
} deuteron_executor_state;

extern deuteron_executor_state deuteron_executor_v1;
deuteron_executor deuteron_get_executor_v1(void **context);
DEUTERON_PROGRAM_WIDE deuteron_executor_state deuteron_executor_v1 = {PTHREAD_MUTEX_INITIALIZER, 0, NULL, NULL};

static void deuteron_hold_executor(void) { pthread_mutex_lock(&deuteron_executor_v1.mutex); }

static void deuteron_let_executor(void) { pthread_mutex_unlock(&deuteron_executor_v1.mutex); }

/* From then on no process is forked while a launch of another thread has the mutex, which would be locked in it for ever. */
DEUTERON_PROGRAM_WIDE void deuteron_set_executor(deuteron_executor executor, void *context) {
  static int watches_fork; /* under the mutex */
  pthread_mutex_lock(&deuteron_executor_v1.mutex);
  if (!watches_fork)
    watches_fork = !pthread_atfork(deuteron_hold_executor, deuteron_let_executor, deuteron_let_executor);
  deuteron_executor_v1.run = executor;
  deuteron_executor_v1.context = context;
  __atomic_store_n(&deuteron_executor_v1.is_set, executor != NULL, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&deuteron_executor_v1.mutex);
}

/* The executor, NULL where there is none. */
DEUTERON_SHARED deuteron_executor deuteron_get_executor_v1(void **context) {
  deuteron_executor found;
  if (!__atomic_load_n(&deuteron_executor_v1.is_set, __ATOMIC_ACQUIRE))
    return NULL;
  pthread_mutex_lock(&deuteron_executor_v1.mutex);
  found = deuteron_executor_v1.run;
  *context = deuteron_executor_v1.context;
  pthread_mutex_unlock(&deuteron_executor_v1.mutex);
  return found;
}

#ifdef __cplusplus
}
#endif
