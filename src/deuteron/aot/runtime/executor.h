/* Kernels for the CPU on threads of the program's own: a thread pool, OpenMP, TBB. */
#ifndef DEUTERON_EXECUTOR_H
#define DEUTERON_EXECUTOR_H

#ifdef __cplusplus
extern "C" {
#endif

/* A part of a launch. Parts of one launch may run at the same time, each once. */
typedef void (*deuteron_task)(void *launch, uint64_t part);

/* Calls task(launch, part) for every part from 0 to num_parts - 1, on any threads in any order, and returns when all have
   returned. Equal launches have equal parts, so that a thread that gets the same ones finds its memory near. */
typedef void (*deuteron_executor)(void *context, uint64_t num_parts, deuteron_task task, void *launch);

/* From now on launches of more than one program run on an executor, in the whole program; with NULL on Deuteron's own
   threads again. A launch that runs goes on as it began. */
void deuteron_set_executor(deuteron_executor executor, void *context);

#ifdef __cplusplus
}
#endif

#endif
