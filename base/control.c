/* Control blocks. Each thread has a pointer to the block of its call; the block itself is shared by the call's threads.
 */
#include "base/control.h"
#include "base/clock.h"
#include "base/file_lost.h"

#include <stdatomic.h>
#include <stddef.h>

static _Thread_local struct tare_control *current;
static _Thread_local int64_t patience_ns, stop_seen_ns;
static _Thread_local int64_t failures;      /* of this thread */
static _Thread_local int64_t failed_before; /* current->failed_allocations when this thread set the block */
static _Thread_local int64_t lost_before;   /* files lost until then */

struct tare_control *tare_control_set(struct tare_control *control) {
    struct tare_control *previous = current;
    current = control;
    failed_before = control ? atomic_load(&control->failed_allocations) : 0;
    lost_before = tare_file_lost_count();
    return previous;
}

struct tare_control *tare_control_current(void) {
    return current;
}

const char *tare_control_reason(void) {
    if (current && current->cancelled && *current->cancelled == TARE_STOP_TIME) return "the time limit has passed";
    return "interrupted";
}

static tare_status stopped(void) {
    return TARE_FAIL(TARE_INTERRUPTED, "%s", tare_control_reason());
}

void tare_control_set_patience(int64_t ns) {
    patience_ns = ns;
    stop_seen_ns = 0;
}

struct tare_control *tare_control_suspend(void) {
    struct tare_control *block = current;
    current = NULL;
    return block;
}

void tare_control_resume(struct tare_control *block) {
    current = block;
}

static bool is_patient(void) {
    if (!patience_ns) return false;
    if (!stop_seen_ns) stop_seen_ns = tare_clock_ns();
    return tare_clock_ns() - stop_seen_ns < patience_ns;
}

int64_t tare_control_lost_before(void) {
    return lost_before;
}

void tare_control_set_lost_before(int64_t count) {
    lost_before = count;
}

tare_status tare_control_check(void) {
    if (tare_file_lost_count() != lost_before) return tare_file_lost_error();
    if (!current || !current->cancelled || !*current->cancelled) return TARE_OK;
    if (!atomic_load(&current->stopped) && is_patient()) return TARE_OK;
    atomic_store(&current->stopped, 1);
    return stopped();
}

bool tare_control_is_stopped(void) {
    return tare_control_check() != TARE_OK;
}

tare_status tare_control_verify(void) {
    tare_file_compare_sizes();
    if (tare_file_lost_count() != lost_before) return tare_file_lost_error();
    if (!current) return TARE_OK;
    if (atomic_load(&current->stopped)) return stopped();
    if (atomic_load(&current->failed_allocations) != failed_before) return TARE_FAIL(TARE_NO_MEMORY, "out of memory");
    return TARE_OK;
}

tare_status tare_control_conclude(tare_status status) {
    return tare_file_lost_count() != lost_before ? tare_file_lost_error() : status;
}

void tare_control_note_commit(void) {
    if (current) atomic_store(&current->committed, 1);
}

bool tare_control_has_committed(void) {
    return current && atomic_load(&current->committed);
}

void tare_control_note_failed_allocation(void) {
    failures++;
    if (current) atomic_fetch_add(&current->failed_allocations, 1);
}

int64_t tare_control_failures(void) {
    return failures;
}

void tare_control_forgive(int64_t mark) {
    if (current) atomic_fetch_sub(&current->failed_allocations, failures - mark);
    failures = mark;
}
