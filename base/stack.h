/* The stack of the thread, which analyses that follow calls by recursion must not overrun: a host may call the library
 * from a thread with a small one. */
#ifndef TARE_BASE_STACK_H
#define TARE_BASE_STACK_H

#include "base/status.h"

/* TARE_NO_MEMORY, which no analysis takes for "no" or "unknown", when less than a reserve for the deepest functions
 * below is left. TARE_OK where the stack is not known (one that the host made for itself). Takes a few nanoseconds. */
tare_status tare_stack_check(void) TARE_WARN_UNUSED;

#endif
