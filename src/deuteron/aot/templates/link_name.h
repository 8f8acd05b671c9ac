/* Kernel ${name}, in ${num_algos}, for ${targets}:
${algos}${takes}
   Every function returns DEUTERON_SUCCESS or what went wrong; any thread may call it at any time. Arguments that no kernel
   was compiled for give DEUTERON_ERROR_INVALID_VALUE, and so does an algo_id that does not exist; a device that there is
   no kernel for gives DEUTERON_ERROR_UNSUPPORTED_DEVICE. ${name}_default takes ${default}.${apart} */
${launches}

/* The algorithms by what they are: with other kernels their numbers change, and their names do not. */
enum {
${constants}
};

/* The first algorithm with these values; DEUTERON_ANY, or NULL of a text, is any. -1 where there is none. */
${select}

/* Whether algorithm algo_id, or with DEUTERON_ANY_ALGO any, has a kernel for these arguments on this device. If not it is
   DEUTERON_ERROR_NO_KERNEL where the arguments are at fault, DEUTERON_ERROR_UNSUPPORTED_DEVICE where the device is, and
   *reason, unless NULL, says why. Nothing is launched or loaded. */
${supports}

/* Loading is optional: it moves what the first launch on a device would do to an earlier time. Unload when done, where
   nothing was loaded but by launches, too. */
${maintenance}
${checked}