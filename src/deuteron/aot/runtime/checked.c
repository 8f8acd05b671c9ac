/* What a kernel that checks its accesses tells of one that is out of bounds, in words: as a launch from Python does. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "control.h"
#include "cpu_types.h"
#include "status.h"

/* The memory that an argument may access; of address 0 and no bytes: that of any other. */
typedef struct {
  uint64_t address, num_bytes;
} deuteron_span;

/* An access that is checked, or an assertion, by its number. */
typedef struct {
  const char *place;    /* "norms.py:6:37: " */
  const char *what;     /* "load", or the assertion's message */
  const char *calls;    /* "\n  called from ...", those that led there */
  const int64_t *shape; /* of the tile */
  int rank;
  int base;          /* which pointer it is of; -1: it may be any */
  uint64_t num_bytes; /* of an element; 0: an assertion */
} deuteron_access;

typedef struct {
  char *text;
  uint64_t size, used;
} deuteron_message;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void deuteron_add(deuteron_message *message, const char *format, ...) {
  const uint64_t left = message->used < message->size ? message->size - message->used : 0;
  va_list values;
  int count;
  va_start(values, format);
  count = vsnprintf(left ? message->text + message->used : NULL, (size_t)left, format, values);
  va_end(values);
  message->used += count > 0 ? (uint64_t)count : 0;
}

/* "lane (1, 2) of program (0, 0, 0)" */
static void deuteron_add_subject(deuteron_message *message, const deuteron_access *access, const deuteron_control *told) {
  int64_t below = 1;
  int axis;
  for (axis = 1; axis < access->rank; axis++)
    below *= access->shape[axis];
  for (axis = 0; axis < access->rank; axis++) {
    deuteron_add(message, "%s%lld", axis ? ", " : "lane (", (long long)(told->lane / below % access->shape[axis]));
    below /= axis + 1 < access->rank ? access->shape[axis + 1] : 1;
  }
  deuteron_add(message, "%sprogram (%d, %d, %d)", access->rank == 0 ? "" : access->rank == 1 ? ",) of " : ") of ",
               (int)told->program[0], (int)told->program[1], (int)told->program[2]);
}

static uint64_t deuteron_distance(const deuteron_span *span, uint64_t address) {
  const uint64_t beyond = address - span->address;
  return address < span->address ? span->address - address : beyond > span->num_bytes ? beyond - span->num_bytes : 0;
}

/* The pointer that an access is of, be it null, or is nearest to; -1 where none has memory. */
static int deuteron_span_of(const deuteron_access *access, uint64_t address, const deuteron_span *spans, int count) {
  int i, found = -1;
  if (access->base >= 0)
    return access->base;
  for (i = 0; i < count; i++)
    if ((spans[i].address || spans[i].num_bytes) &&
        (found < 0 || deuteron_distance(&spans[i], address) < deuteron_distance(&spans[found], address)))
      found = i;
  return found;
}

/* Whether two arrays overlap; where one is not known it is taken not to. */
__attribute__((unused)) static int deuteron_meet(const deuteron_span *first, const deuteron_span *second, int or_equal) {
  if (!first->address || !second->address || !first->num_bytes || !second->num_bytes)
    return 0;
  if (or_equal && first->address == second->address)
    return 0;
  return first->address < second->address ? second->address - first->address < first->num_bytes
                                          : first->address - second->address < second->num_bytes;
}

/* How many elements of a tile there are along a dimension, and from one to the next. */
typedef struct {
  int64_t extent, size;
} deuteron_step;

/* Whether no two elements are at one place: each step is longer than all that shorter ones reach. Where -n is the extent,
   so is what n steps reach, of which no more is asked. */
__attribute__((unused)) static int deuteron_is_injective(const deuteron_step *steps, int count) {
  int i, other;
  for (i = 0; i < count; i++) {
    const int64_t size = steps[i].size < 0 ? -steps[i].size : steps[i].size;
    int64_t covered = 0;
    for (other = 0; other < count; other++) {
      const int64_t shorter = steps[other].size < 0 ? -steps[other].size : steps[other].size;
      if (shorter < size || (shorter == size && other < i))
        covered += shorter * (steps[other].extent < 0 ? -steps[other].extent : steps[other].extent - 1);
    }
    if (steps[i].extent > 0 && size <= covered)
      return 0;
  }
  return 1;
}

/* Writes that they do into a text of `size` bytes, and returns a status. */
__attribute__((unused)) static deuteron_status deuteron_overlap(const char *kernel, const char *first,
                                                                const char *second, char *text, uint64_t size) {
  deuteron_message message;
  message.text = text;
  message.size = text ? size : 0;
  message.used = 0;
  if (strcmp(first, second) == 0)
    deuteron_add(&message, "error: elements of a tile that kernel '%s' stores through argument '%s' overlap. ", kernel, first);
  else
    deuteron_add(&message, "error: arguments '%s' and '%s' of kernel '%s' overlap, and its code takes them to be apart. ",
                 first, second, kernel);
  deuteron_add(&message, "Compile it with the option may_alias");
  return DEUTERON_ERROR_INVALID_VALUE;
}

/* Writes what was told of an access or assertion into a text of `size` bytes, and returns it as a status. */
__attribute__((unused)) static deuteron_status deuteron_describe(const char *kernel, const deuteron_access *accesses,
                                                                 const char *const *names, const deuteron_span *spans,
                                                                 int num_spans, const deuteron_control *told,
                                                                 char *text, uint64_t size) {
  const deuteron_access *access = &accesses[told->assertion];
  const int is_aligned = access->num_bytes == 0 || told->address % access->num_bytes == 0;
  deuteron_message message;
  int span;
  message.text = text;
  message.size = text ? size : 0;
  message.used = 0;
  if (access->num_bytes == 0) {
    deuteron_add(&message, "%serror: Assertion failed in ", access->place);
    deuteron_add_subject(&message, access, told);
    deuteron_add(&message, ": %s%s", access->what, access->calls);
    return DEUTERON_ERROR_ASSERT;
  }
  deuteron_add(&message, "%serror: %s %s: ", access->place, is_aligned ? "Out-of-bounds" : "Misaligned", access->what);
  deuteron_add_subject(&message, access, told);
  deuteron_add(&message, " of kernel '%s' accesses %llu bytes at ", kernel, (unsigned long long)access->num_bytes);
  span = deuteron_span_of(access, told->address, spans, num_spans);
  if (span < 0 || spans[span].num_bytes == UINT64_MAX)
    deuteron_add(&message, "address %#llx%s%s", (unsigned long long)told->address, span < 0 ? "" : " through ",
                 span < 0 ? "" : names[span]);
  else
    deuteron_add(&message, "byte offset %lld of %s, which %s%llu bytes",
                 (long long)(told->address - spans[span].address), names[span],
                 spans[span].address ? "has " : "is null and has ", (unsigned long long)spans[span].num_bytes);
  if (is_aligned)
    deuteron_add(&message, ". Mask such lanes, or check the offsets and strides.%s", access->calls);
  else
    deuteron_add(&message, ". An element of %llu bytes lies at a multiple of %llu.%s",
                 (unsigned long long)access->num_bytes, (unsigned long long)access->num_bytes, access->calls);
  return is_aligned ? DEUTERON_ERROR_ILLEGAL_ADDRESS : DEUTERON_ERROR_MISALIGNED_ADDRESS;
}
