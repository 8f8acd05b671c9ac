/* What stands for any value of an algorithm, and for any algorithm: not -1, by which ..._select says that there is none. */
#ifndef DEUTERON_ANY
#define DEUTERON_ANY INT64_MIN      /* in the place of a value of an algorithm */
#define DEUTERON_ANY_ALGO INT32_MIN /* in the place of an algo_id */
#endif
