/* Clocks for durations, profiles and intervals between events.
 *
 * The origin of both clocks is arbitrary: only differences of two readings of the same clock have a meaning. Changes of
 * the system time do not affect them. */
#ifndef TARE_BASE_CLOCK_H
#define TARE_BASE_CLOCK_H

#include <stdint.h>

/* Monotonic time in nanoseconds; never decreases within a process. */
int64_t tare_clock_ns(void);
/* The same clock in seconds. */
double tare_clock_seconds(void);
/* Processor time consumed by the calling thread, in seconds. */
double tare_clock_cpu_seconds(void);

#endif
