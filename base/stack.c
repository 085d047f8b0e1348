/* The bounds of a thread's stack are found once per thread. */
#include "base/stack.h"
#include "base/control.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Kernels and messages take arrays of up to some tens of KB. At most a quarter of the stack. */
enum { RESERVE = 64 << 10 };

struct bounds {
    uintptr_t low, high; /* equal: not known */
    bool found;
};

static void find(struct bounds *bounds) {
    pthread_attr_t attributes;
    void *low;
    size_t size;
    bounds->found = true;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    if (pthread_attr_getstack(&attributes, &low, &size) == 0) {
        bounds->low = (uintptr_t)low;
        bounds->high = bounds->low + size;
    }
    pthread_attr_destroy(&attributes);
}

tare_status tare_stack_check(void) {
    static _Thread_local struct bounds bounds;
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (!bounds.found) find(&bounds);
    if (here < bounds.low || here >= bounds.high) return TARE_OK;
    const uintptr_t size = bounds.high - bounds.low, reserve = size / 4 < RESERVE ? size / 4 : RESERVE;
    if (here - bounds.low >= reserve) return TARE_OK;
    return tare_control_fail_stack((int64_t)(size >> 10));
}
