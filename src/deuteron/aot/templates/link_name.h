/* Kernel ${name}, in ${num_algos}, for ${targets}:
${algos}
   Every function returns DEUTERON_SUCCESS or what went wrong; any thread may call it at any time. Arguments that no kernel
   was compiled for give DEUTERON_ERROR_INVALID_VALUE, and so does an algo_id that does not exist; a device that there is
   no kernel for gives DEUTERON_ERROR_UNSUPPORTED_DEVICE. */
${launches}

/* The algorithms by what they are: with other kernels their numbers change, and their names do not. */
enum {
${constants}
};

/* Loading is optional: it moves what the first launch on a device would do to an earlier time. Unload when done. */
${maintenance}
