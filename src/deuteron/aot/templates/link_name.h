/* Kernel ${name}, in ${num_algos}:
${algos}
   Every function returns DEUTERON_SUCCESS or what went wrong; any thread may call it at any time. Arguments that no kernel
   was compiled for give DEUTERON_ERROR_INVALID_VALUE, and so does an algo_id that does not exist. */
${launches}

/* Loading is optional: it moves what the first launch would do to an earlier time. Unload when done. */
${maintenance}
