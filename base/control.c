/* Control blocks. Each thread has a pointer to the block of its call; the block itself is shared by the call's threads.
 */
#include "base/control.h"
#include "base/alloc.h"
#include "base/clock.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stddef.h>

static _Thread_local struct tare_call call;
static _Thread_local int64_t lost_seen; /* tare_file_lost_count when no lost file concerned the call */
static _Atomic uint64_t calls;          /* begun in this process */
static _Thread_local int64_t patience_ns, stop_seen_ns;
static _Thread_local int64_t failures; /* of this thread */

void tare_control_join(struct tare_call other) {
    call = other;
    lost_seen = 0;
}

void tare_control_set(struct tare_control *control) {
    tare_control_begin(control, 0);
}

void tare_control_begin(struct tare_control *control, uint64_t family) {
    if (control) atomic_store(&control->short_stack, 0);
    tare_control_join((struct tare_call){ .control = control,
                                          .family = family,
                                          .failed_before = control ? atomic_load(&control->failed_allocations) : 0 });
}

/* A thread that began no call is a call of its own. */
struct tare_call tare_control_call(void) {
    if (!call.number) call.number = atomic_fetch_add(&calls, 1) + 1;
    if (!call.family) call.family = call.number;
    return call;
}

struct tare_file_reader tare_control_reader(void) {
    const struct tare_call own = tare_control_call();
    return (struct tare_file_reader){ .call = own.number, .family = own.family };
}

void tare_control_end(void) {
    tare_file_lost_end(tare_control_reader());
    tare_control_join((struct tare_call){ 0 });
}

/* The name of a lost file that concerns the call; NULL: none. */
static const char *lost(void) {
    const int64_t count = tare_file_lost_count();
    const char *name;
    if (count == lost_seen) return NULL;
    name = tare_file_lost_for(tare_control_reader());
    if (!name) lost_seen = count;
    return name;
}

const char *tare_control_reason(void) {
    const bool has_reason = call.control && call.control->has_reason;
    switch (has_reason ? __atomic_load_n(call.control->cancelled, __ATOMIC_RELAXED) : TARE_STOP_NONE) {
    case TARE_STOP_TIME:
        return "the time limit has passed";
    case TARE_STOP_PROCESSOR:
        return "the processor time limit has passed";
    default:
        return "interrupted";
    }
}

static tare_status stopped(void) {
    return TARE_FAIL(TARE_INTERRUPTED, "%s", tare_control_reason());
}

tare_status tare_flag_check(const volatile sig_atomic_t *flag) {
    return tare_flag_is_set(flag) ? stopped() : TARE_OK;
}

void tare_control_set_patience(int64_t ns) {
    patience_ns = ns;
    stop_seen_ns = 0;
}

struct tare_control *tare_control_suspend(void) {
    struct tare_control *block = call.control;
    call.control = NULL;
    return block;
}

void tare_control_resume(struct tare_control *block) {
    call.control = block;
}

static bool is_patient(void) {
    if (!patience_ns) return false;
    if (!stop_seen_ns) stop_seen_ns = tare_clock_ns();
    return tare_clock_ns() - stop_seen_ns < patience_ns;
}

tare_status tare_control_check(void) {
    const char *name = lost();
    if (name) return tare_file_lost_error(name);
    if (!call.control || !tare_flag_is_set(call.control->cancelled)) return TARE_OK;
    if (!atomic_load(&call.control->stopped) && is_patient()) return TARE_OK;
    atomic_store(&call.control->stopped, 1);
    return stopped();
}

bool tare_control_is_stopped(void) {
    return tare_control_check() != TARE_OK;
}

/* As the allocator says it, whose text is lost; 0: not known. */
static tare_status allocation_failed(size_t bytes) {
    if (!bytes) return TARE_FAIL(TARE_NO_MEMORY, "out of memory");
    if (!tare_alloc_limit()) return TARE_FAIL(TARE_NO_MEMORY, "out of memory (expected %zu bytes)", bytes);
    return TARE_FAIL(TARE_NO_MEMORY, "%zu bytes more than the memory limit allows (expected at most %zu)", bytes,
                     tare_alloc_limit());
}

tare_status tare_control_verify(void) {
    const char *name;
    tare_file_compare_sizes();
    name = lost();
    if (name) return tare_file_lost_error(name);
    if (!call.control) return TARE_OK;
    if (atomic_load(&call.control->stopped)) return stopped();
    if (atomic_load(&call.control->short_stack))
        return tare_control_fail_stack(atomic_load(&call.control->short_stack));
    if (atomic_load(&call.control->failed_allocations) != call.failed_before)
        return allocation_failed(atomic_load(&call.control->failed_size));
    return TARE_OK;
}

tare_status tare_control_conclude(tare_status status) {
    const char *name = lost();
    const int64_t stack = call.control ? atomic_load(&call.control->short_stack) : 0;
    if (name) return tare_file_lost_error(name);
    return stack ? tare_control_fail_stack(stack) : status;
}

tare_status tare_control_fail_stack(int64_t kilobytes) {
    if (call.control) atomic_store(&call.control->short_stack, kilobytes);
    return TARE_FAIL(TARE_NO_MEMORY,
                     "functions nest too deep for the stack of this thread (%" PRId64
                     " KB; use a larger one: ulimit -s, or another thread)",
                     kilobytes);
}

void tare_control_note_commit(void) {
    if (call.control) atomic_store(&call.control->committed, 1);
}

bool tare_control_has_committed(void) {
    return call.control && atomic_load(&call.control->committed);
}

void tare_control_note_failed_allocation(size_t bytes) {
    failures++;
    if (!call.control) return;
    atomic_fetch_add(&call.control->failed_allocations, 1);
    atomic_store(&call.control->failed_size, bytes);
}

int64_t tare_control_failures(void) {
    return failures;
}

void tare_control_forgive(int64_t mark) {
    if (call.control) atomic_fetch_sub(&call.control->failed_allocations, failures - mark);
    failures = mark;
}
