/* Runs the programs of a grid on threads. In every emitted file, weak and hidden, so that all kernels of a program (or
   of a shared library) have one pool. Names end in the version of this interface: files of two versions link too.

   A launch is a job on its caller's stack, in the list of open jobs. The caller and the workers take chunks of its
   programs until none is left. No job waits for a worker that has not joined it, so any number of threads may launch at
   once, and workers may stop at any time. Workers start with the first grid of more than one program. Where the program
   has an executor of its own, that runs the chunks in their place. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "cancel.c"
#include "control.h"
#include "cpu_types.h"
#include "executor.c"
#include "status.h"

#define DEUTERON_SHARED __attribute__((weak, visibility("hidden")))
#define DEUTERON_MAX_THREADS 1024
#define DEUTERON_CHUNKS_PER_THREAD 8 /* so that programs of unequal length spread evenly */
#define DEUTERON_SCRATCH_ALIGNMENT 64

typedef void (*deuteron_kernel)(void *const *args, const uint32_t *grid, uint64_t begin, uint64_t end, void *scratch);

#ifdef __cplusplus
extern "C" {
#endif

typedef struct deuteron_scratch {
  struct deuteron_scratch *next;
  uint64_t bytes;
} deuteron_scratch;

typedef struct deuteron_job {
  struct deuteron_job *next;
  deuteron_kernel kernel;
  void *const *args;
  const uint32_t *grid;
  uint64_t total;
  uint64_t chunk; /* programs that are handed out at a time; 0: not known yet */
  uint64_t scratch_bytes;
  uint64_t taken; /* programs handed out; atomic */
  uint64_t helpers; /* workers that are running its programs; under the mutex */
} deuteron_job;

typedef struct {
  pthread_mutex_t mutex; /* over all that follows */
  pthread_cond_t work;   /* there is a job, or the workers are to stop */
  pthread_cond_t left;   /* a worker has left a job */
  deuteron_job *jobs;
  deuteron_scratch *scratch; /* blocks that nobody uses now */
  pthread_t *workers;
  int num_workers, is_started, watches_fork;
  uintptr_t generation; /* workers of an earlier one stop */
  int64_t loads;        /* deuteron_load less deuteron_unload */
} deuteron_pool;

deuteron_status deuteron_load_v2(void);
deuteron_status deuteron_unload_v2(void);
deuteron_status deuteron_launch_v2(deuteron_kernel kernel, void *const *args, const uint32_t *grid,
                                   uint64_t scratch_bytes);
extern deuteron_pool deuteron_pool_v2;
void deuteron_stop_v2(void);

DEUTERON_SHARED deuteron_pool deuteron_pool_v2 = {PTHREAD_MUTEX_INITIALIZER,
                                                  PTHREAD_COND_INITIALIZER,
                                                  PTHREAD_COND_INITIALIZER,
                                                  NULL,
                                                  NULL,
                                                  NULL,
                                                  0,
                                                  0,
                                                  0,
                                                  0,
                                                  0};

static void deuteron_before_fork(void) { pthread_mutex_lock(&deuteron_pool_v2.mutex); }

static void deuteron_after_fork(void) { pthread_mutex_unlock(&deuteron_pool_v2.mutex); }

/* The child has no workers and none of the jobs that other threads had open; it starts workers of its own. */
static void deuteron_in_child(void) {
  deuteron_pool *pool = &deuteron_pool_v2;
  pthread_mutex_init(&pool->mutex, NULL);
  pthread_cond_init(&pool->work, NULL);
  pthread_cond_init(&pool->left, NULL);
  free(pool->workers);
  pool->workers = NULL;
  pool->jobs = NULL;
  pool->num_workers = pool->is_started = 0;
}

/* From the first time on no process is forked while another thread has the mutex, which would be locked in it for ever. */
static void deuteron_lock(void) {
  deuteron_pool *pool = &deuteron_pool_v2;
  pthread_mutex_lock(&pool->mutex);
  if (!pool->watches_fork)
    pool->watches_fork = !pthread_atfork(deuteron_before_fork, deuteron_after_fork, deuteron_in_child);
}

/* After this, *scratch is a block of enough bytes, or NULL where none are needed. Returns 0 without memory. */
static int deuteron_take_scratch(uint64_t bytes, deuteron_scratch **scratch) {
  deuteron_scratch *block = NULL, **place;
  void *memory = NULL;
  *scratch = NULL;
  if (bytes == 0)
    return 1;
  deuteron_lock();
  for (place = &deuteron_pool_v2.scratch; *place && (*place)->bytes < bytes; place = &(*place)->next)
    ;
  if (!*place)
    place = &deuteron_pool_v2.scratch; /* all are too small: free one of them for the one to come */
  block = *place;
  if (block)
    *place = block->next;
  pthread_mutex_unlock(&deuteron_pool_v2.mutex);
  if (block && block->bytes < bytes) {
    free(block);
    block = NULL;
  }
  if (!block) {
    if (posix_memalign(&memory, DEUTERON_SCRATCH_ALIGNMENT, DEUTERON_SCRATCH_ALIGNMENT + (size_t)bytes))
      return 0;
    block = (deuteron_scratch *)memory;
    block->bytes = bytes;
  }
  *scratch = block;
  return 1;
}

static void deuteron_give_scratch(deuteron_scratch *scratch) {
  if (!scratch)
    return;
  pthread_mutex_lock(&deuteron_pool_v2.mutex);
  scratch->next = deuteron_pool_v2.scratch;
  deuteron_pool_v2.scratch = scratch;
  pthread_mutex_unlock(&deuteron_pool_v2.mutex);
}

static void *deuteron_scratch_data(deuteron_scratch *scratch) {
  return scratch ? (char *)scratch + DEUTERON_SCRATCH_ALIGNMENT : NULL;
}

/* Runs chunks of a job until none is left. */
static void deuteron_run_chunks(deuteron_job *job, deuteron_scratch *scratch) {
  void *data = deuteron_scratch_data(scratch);
  for (;;) {
    uint64_t begin = __atomic_fetch_add(&job->taken, job->chunk, __ATOMIC_RELAXED);
    if (begin >= job->total)
      return;
    job->kernel(job->args, job->grid, begin, job->total - begin < job->chunk ? job->total : begin + job->chunk, data);
  }
}

static deuteron_job *deuteron_open_job(void) {
  deuteron_job *job = deuteron_pool_v2.jobs;
  while (job && __atomic_load_n(&job->taken, __ATOMIC_RELAXED) >= job->total)
    job = job->next;
  return job;
}

static void *deuteron_worker(void *generation) {
  deuteron_pool *pool = &deuteron_pool_v2;
  pthread_mutex_lock(&pool->mutex);
  while (pool->generation == (uintptr_t)generation) {
    deuteron_scratch *scratch;
    deuteron_job *job = deuteron_open_job();
    if (!job) {
      pthread_cond_wait(&pool->work, &pool->mutex);
      continue;
    }
    job->helpers++;
    pthread_mutex_unlock(&pool->mutex);
    if (deuteron_take_scratch(job->scratch_bytes, &scratch)) {
      deuteron_run_chunks(job, scratch);
      deuteron_give_scratch(scratch);
    } else {
      sched_yield(); /* the others do the work meanwhile */
    }
    pthread_mutex_lock(&pool->mutex);
    if (--job->helpers == 0)
      pthread_cond_broadcast(&pool->left);
  }
  pthread_mutex_unlock(&pool->mutex);
  return NULL;
}

/* DEUTERON_NUM_THREADS, or the processors that this process may use. */
static int deuteron_num_threads(void) {
  const char *text = getenv("DEUTERON_NUM_THREADS");
  long count = 0;
  if (text) {
    char *end;
    count = strtol(text, &end, 10);
    if (*end || count < 1)
      count = 0;
  }
#ifdef CPU_COUNT
  if (count == 0) {
    cpu_set_t usable;
    if (sched_getaffinity(0, sizeof usable, &usable) == 0)
      count = CPU_COUNT(&usable);
  }
#endif
  if (count == 0)
    count = sysconf(_SC_NPROCESSORS_ONLN);
  return count < 1 ? 1 : count > DEUTERON_MAX_THREADS ? DEUTERON_MAX_THREADS : (int)count;
}

/* A launch on the program's executor. */
typedef struct {
  const deuteron_job *job;
  uint64_t num_done; /* atomic: parts that have run */
  int is_short;      /* atomic: there was no memory for a part */
} deuteron_parted;

static void deuteron_run_part(void *launch, uint64_t part) {
  deuteron_parted *parts = (deuteron_parted *)launch;
  const deuteron_job *job = parts->job;
  const uint64_t begin = part * job->chunk;
  deuteron_scratch *scratch;
  __atomic_fetch_add(&parts->num_done, 1, __ATOMIC_RELAXED);
  if (!deuteron_take_scratch(job->scratch_bytes, &scratch)) {
    __atomic_store_n(&parts->is_short, 1, __ATOMIC_RELAXED);
    return;
  }
  job->kernel(job->args, job->grid, begin, job->total - begin < job->chunk ? job->total : begin + job->chunk,
              deuteron_scratch_data(scratch));
  deuteron_give_scratch(scratch);
}

static deuteron_status deuteron_run_elsewhere(deuteron_job *job, deuteron_executor executor, void *context) {
  const uint64_t num_parts = (uint64_t)deuteron_num_threads() * DEUTERON_CHUNKS_PER_THREAD;
  deuteron_parted parts;
  uint64_t expected;
  int cancel;
  job->chunk = (job->total + num_parts - 1) / num_parts;
  expected = (job->total + job->chunk - 1) / job->chunk;
  parts.job = job;
  parts.num_done = 0;
  parts.is_short = 0;
  cancel = deuteron_put_off_cancel();
  executor(context, expected, deuteron_run_part, &parts);
  deuteron_put_back_cancel(cancel);
  if (__atomic_load_n(&parts.num_done, __ATOMIC_RELAXED) != expected)
    return DEUTERON_ERROR_LAUNCH_FAILED;
  return __atomic_load_n(&parts.is_short, __ATOMIC_RELAXED) ? DEUTERON_ERROR_OUT_OF_MEMORY : DEUTERON_SUCCESS;
}

/* Starts as many workers as there are threads to use, less the caller; signals are left to the program's own threads.
   What the system refuses to start is done without. Under the mutex. */
static void deuteron_start_workers(void) {
  deuteron_pool *pool = &deuteron_pool_v2;
  const int wanted = deuteron_num_threads() - 1;
  sigset_t all, before;
  pool->is_started = 1;
  if (wanted == 0 || !(pool->workers = (pthread_t *)malloc((size_t)wanted * sizeof(pthread_t))))
    return;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  while (pool->num_workers < wanted &&
         !pthread_create(&pool->workers[pool->num_workers], NULL, deuteron_worker, (void *)pool->generation))
    pool->num_workers++;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void deuteron_open(deuteron_job *job) {
  deuteron_pool *pool = &deuteron_pool_v2;
  deuteron_job **last = &pool->jobs;
  uint64_t wake = (job->total - 1) / job->chunk; /* the caller takes a chunk too */
  while (*last)
    last = &(*last)->next;
  *last = job;
  if (wake >= (uint64_t)pool->num_workers)
    pthread_cond_broadcast(&pool->work);
  else
    while (wake-- > 0)
      pthread_cond_signal(&pool->work);
}

/* After this no worker touches the job. */
static void deuteron_close(deuteron_job *job) {
  deuteron_pool *pool = &deuteron_pool_v2;
  deuteron_job **place = &pool->jobs;
  pthread_mutex_lock(&pool->mutex);
  while (*place != job)
    place = &(*place)->next;
  *place = job->next;
  if (job->helpers > 0) {
    const int cancel = deuteron_put_off_cancel();
    while (job->helpers > 0)
      pthread_cond_wait(&pool->left, &pool->mutex);
    deuteron_put_back_cancel(cancel);
  }
  pthread_mutex_unlock(&pool->mutex);
}

static deuteron_job deuteron_new_job(deuteron_kernel kernel, void *const *args, const uint32_t *grid,
                                     uint64_t scratch_bytes) {
  deuteron_job job;
  job.next = NULL;
  job.kernel = kernel;
  job.args = args;
  job.grid = grid;
  job.total = (uint64_t)grid[0] * grid[1] * grid[2];
  job.chunk = 0;
  job.scratch_bytes = scratch_bytes;
  job.taken = job.helpers = 0;
  return job;
}

/* How many programs are handed out at a time to the caller and so many workers. */
static uint64_t deuteron_chunk_for(uint64_t total, uint64_t num_workers) {
  const uint64_t chunk = num_workers == 0 ? total : total / ((num_workers + 1) * DEUTERON_CHUNKS_PER_THREAD);
  return chunk == 0 ? 1 : chunk;
}

/* On the caller and the workers. */
static deuteron_status deuteron_run_here(deuteron_job *job) {
  deuteron_pool *pool = &deuteron_pool_v2;
  deuteron_scratch *scratch;
  if (!deuteron_take_scratch(job->scratch_bytes, &scratch))
    return DEUTERON_ERROR_OUT_OF_MEMORY;
  if (job->total > 1) {
    deuteron_lock();
    if (!pool->is_started)
      deuteron_start_workers();
    if (job->chunk == 0)
      job->chunk = deuteron_chunk_for(job->total, (uint64_t)pool->num_workers);
    deuteron_open(job);
    pthread_mutex_unlock(&pool->mutex);
    deuteron_run_chunks(job, scratch);
    deuteron_close(job);
  } else {
    job->kernel(job->args, job->grid, 0, job->total, deuteron_scratch_data(scratch));
  }
  deuteron_give_scratch(scratch);
  return DEUTERON_SUCCESS;
}

/* Runs every program of the grid and returns when all have run. Any thread may call it at any time. */
DEUTERON_SHARED deuteron_status deuteron_launch_v2(deuteron_kernel kernel, void *const *args, const uint32_t *grid,
                                                   uint64_t scratch_bytes) {
  deuteron_job job = deuteron_new_job(kernel, args, grid, scratch_bytes);
  void *context;
  deuteron_executor executor = job.total > 1 ? deuteron_get_executor_v1(&context) : NULL;
  return executor ? deuteron_run_elsewhere(&job, executor, context) : deuteron_run_here(&job);
}

/* Stops the workers and frees what the pool keeps. The next launch starts new ones; launches that run finish. */
__attribute__((destructor)) DEUTERON_SHARED void deuteron_stop_v2(void) {
  deuteron_pool *pool = &deuteron_pool_v2;
  deuteron_scratch *scratch;
  pthread_t *workers;
  int i, num_workers, cancel;
  pthread_mutex_lock(&pool->mutex);
  workers = pool->workers;
  num_workers = pool->num_workers;
  scratch = pool->scratch;
  pool->workers = NULL;
  pool->scratch = NULL;
  pool->num_workers = pool->is_started = 0;
  pool->generation++;
  pthread_cond_broadcast(&pool->work);
  pthread_mutex_unlock(&pool->mutex);
  cancel = deuteron_put_off_cancel();
  for (i = 0; i < num_workers; i++)
    pthread_join(workers[i], NULL);
  deuteron_put_back_cancel(cancel);
  free(workers);
  while (scratch) {
    deuteron_scratch *next = scratch->next;
    free(scratch);
    scratch = next;
  }
}

DEUTERON_SHARED deuteron_status deuteron_load_v2(void) {
  deuteron_lock();
  deuteron_pool_v2.loads++;
  pthread_mutex_unlock(&deuteron_pool_v2.mutex);
  return DEUTERON_SUCCESS;
}

/* The last unload stops the workers. */
DEUTERON_SHARED deuteron_status deuteron_unload_v2(void) {
  int is_last;
  deuteron_lock();
  is_last = deuteron_pool_v2.loads <= 1;
  deuteron_pool_v2.loads -= deuteron_pool_v2.loads > 0;
  pthread_mutex_unlock(&deuteron_pool_v2.mutex);
  if (is_last)
    deuteron_stop_v2();
  return DEUTERON_SUCCESS;
}

#ifdef __cplusplus
}
#endif
