/* Programs that may wait for one another: as many run at the same time as it takes. In files of kernels that wait.

   They run on the pool, since most wait for earlier ones, which run or have ended. Beside it a thread looks whether
   programs begin: while none has for a while, and some are left, it doubles the threads. An executor is not asked, for
   it may have fewer threads than there are programs that wait. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_condattr_setclock */
#endif
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "control.h"
#include "cpu_pool.c"
#include "status.h"

#define DEUTERON_MOST_TOGETHER 1024
#define DEUTERON_NANOSECONDS_WITHOUT_BEGIN 5000000 /* until there are twice as many threads */

typedef struct {
  deuteron_job *job;
  deuteron_control *told;
  pthread_mutex_t mutex;
  pthread_cond_t over; /* the caller and the pool have run their part */
  int is_over, num_threads;
  int is_short; /* atomic: there was no memory for a thread */
  pthread_t threads[DEUTERON_MOST_TOGETHER];
} deuteron_waiting;

static uint64_t deuteron_num_left(const deuteron_job *job) {
  const uint64_t taken = __atomic_load_n(&job->taken, __ATOMIC_RELAXED);
  return taken < job->total ? job->total - taken : 0;
}

/* One more thread for the programs. Without memory for it the launch ends: what others wait for might never begin. */
static void *deuteron_run_beside(void *launch) {
  deuteron_waiting *waiting = (deuteron_waiting *)launch;
  deuteron_scratch *scratch;
  if (deuteron_take_scratch(waiting->job->scratch_bytes, &scratch)) {
    deuteron_run_chunks(waiting->job, scratch);
    deuteron_give_scratch(scratch);
    return NULL;
  }
  __atomic_store_n(&waiting->is_short, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&waiting->job->taken, waiting->job->total, __ATOMIC_RELAXED);
  __atomic_store_n(&waiting->told->stop, DEUTERON_CALLED_OFF, __ATOMIC_RELAXED);
  return NULL;
}

static void deuteron_start_beside(deuteron_waiting *waiting, uint64_t wanted) {
  while (wanted-- > 0 && waiting->num_threads < DEUTERON_MOST_TOGETHER &&
         !pthread_create(&waiting->threads[waiting->num_threads], NULL, deuteron_run_beside, waiting))
    waiting->num_threads++;
}

/* Whether the launch is over, which is waited for a while. Under the mutex. */
static int deuteron_is_over(deuteron_waiting *waiting) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += DEUTERON_NANOSECONDS_WITHOUT_BEGIN;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  while (!waiting->is_over && !pthread_cond_timedwait(&waiting->over, &waiting->mutex, &until))
    ;
  return waiting->is_over;
}

static void *deuteron_look_after(void *launch) {
  deuteron_waiting *waiting = (deuteron_waiting *)launch;
  const uint64_t num_threads = (uint64_t)deuteron_num_threads();
  uint64_t left = waiting->job->total;
  int i;
  pthread_mutex_lock(&waiting->mutex);
  while (!deuteron_is_over(waiting)) {
    const uint64_t before = left, more = num_threads + (uint64_t)waiting->num_threads;
    left = deuteron_num_left(waiting->job);
    if (left == before)
      deuteron_start_beside(waiting, left < more ? left : more);
  }
  pthread_mutex_unlock(&waiting->mutex);
  for (i = 0; i < waiting->num_threads; i++)
    pthread_join(waiting->threads[i], NULL);
  return NULL;
}

static deuteron_status deuteron_run_looked_after(deuteron_waiting *waiting) {
  deuteron_status status;
  pthread_t looker;
  sigset_t all, before;
  int failed, cancel;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  failed = pthread_create(&looker, NULL, deuteron_look_after, waiting);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failed)
    return DEUTERON_ERROR_OUT_OF_MEMORY;
  cancel = deuteron_put_off_cancel();
  status = deuteron_run_here(waiting->job);
  pthread_mutex_lock(&waiting->mutex);
  waiting->is_over = 1;
  pthread_cond_signal(&waiting->over);
  pthread_mutex_unlock(&waiting->mutex);
  pthread_join(looker, NULL);
  deuteron_put_back_cancel(cancel);
  return waiting->is_short ? DEUTERON_ERROR_OUT_OF_MEMORY : status;
}

/* Runs every program of the grid, each of which may wait for any other up to so many at a time, and returns when all have
   run. `told` is what the arguments end with. */
__attribute__((unused)) static deuteron_status deuteron_launch_together(deuteron_kernel kernel, void *const *args,
                                                                        const uint32_t *grid, uint64_t scratch_bytes,
                                                                        deuteron_control *told) {
  deuteron_job job = deuteron_new_job(kernel, args, grid, scratch_bytes);
  deuteron_waiting waiting;
  pthread_condattr_t attributes;
  deuteron_status status;
  job.chunk = 1;
  if (job.total <= 1)
    return deuteron_run_here(&job);
  waiting.job = &job;
  waiting.told = told;
  waiting.is_over = waiting.num_threads = waiting.is_short = 0;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_mutex_init(&waiting.mutex, NULL);
  pthread_cond_init(&waiting.over, &attributes);
  pthread_condattr_destroy(&attributes);
  status = deuteron_run_looked_after(&waiting);
  pthread_cond_destroy(&waiting.over);
  pthread_mutex_destroy(&waiting.mutex);
  return status;
}
