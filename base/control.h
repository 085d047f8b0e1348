/* The control block of a call: cancellation, and whether an allocation failed.
 *
 * A program or a public function sets the block of its thread, threads that it starts inherit it, and work that can
 * take long polls it with tare_control_check. Two failures must not be lost even where an analysis treats any failure
 * as "unknown" and continues: a cancellation that was reported once, and a failed allocation. The block remembers both,
 * and tare_control_verify returns them; it is called before an output is moved to its place and at the end of a
 * command. Code that survives a failed allocation without a change to its results forgives it. */
#ifndef TARE_BASE_CONTROL_H
#define TARE_BASE_CONTROL_H

#include "base/file_lost.h"
#include "base/status.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Whether a flag is set that another thread or a signal handler may set at any time; NULL: never. */
static inline bool tare_flag_is_set(const volatile sig_atomic_t *flag) {
    return flag && __atomic_load_n(flag, __ATOMIC_RELAXED);
}

/* TARE_INTERRUPTED with the reason (tare_control_reason) if the flag is set. */
tare_status tare_flag_check(const volatile sig_atomic_t *flag) TARE_WARN_UNUSED;

/* Values of *cancelled where it has a reason. */
enum tare_stop {
    TARE_STOP_NONE,
    TARE_STOP_INTERRUPTED, /* a signal, or tare_context_cancel */
    TARE_STOP_TIME,        /* --max-seconds has passed */
    TARE_STOP_PROCESSOR,   /* the processor time limit has passed */
};

struct tare_control {
    const volatile sig_atomic_t *cancelled; /* not 0: cancelled; NULL: never */
    bool has_reason;                    /* *cancelled is an enum tare_stop; otherwise a caller's flag of any value */
    _Atomic int stopped;                /* tare_control_check has reported the cancellation */
    _Atomic int committed;              /* outputs moved to their places */
    _Atomic int64_t failed_allocations; /* not forgiven */
    _Atomic size_t failed_size;         /* bytes of the last one */
    _Atomic int64_t short_stack;        /* KB of a stack on which functions nested too deep (base/stack.h) */
};

/* What each thread of a call knows of it. */
struct tare_call {
    struct tare_control *control; /* NULL: none, or suspended */
    uint64_t number;              /* unique in the process; 0: not numbered yet */
    uint64_t family;              /* the number of the call that began it (base/file_lost.h) */
    int64_t failed_before;        /* failed allocations of the block when the call began */
};
/* Begins a call with this block (NULL: none) on this thread. The block must outlive the threads that inherit it.
 * Failures of allocations before this call do not count. */
void tare_control_set(struct tare_control *control);
/* The same for a call of this family; 0: the call begins one. */
void tare_control_begin(struct tare_control *control, uint64_t family);
/* Ends the call of this thread, whose other threads have ended: files that are still mapped concern later calls of its
 * family. */
void tare_control_end(void);
/* The call of this thread, and makes this thread work for a call: a new thread for that of the thread that started it,
 * and a thread again for its earlier call, after one within it. */
struct tare_call tare_control_call(void);
void tare_control_join(struct tare_call call);
/* The call of this thread as a reader of mapped files. */
struct tare_file_reader tare_control_reader(void);

/* TARE_INTERRUPTED once the call is cancelled, TARE_IO once a mapped file that concerns it became shorter
 * (base/file_lost.h). Takes about a nanosecond. */
tare_status tare_control_check(void) TARE_WARN_UNUSED;
/* "interrupted", or what else stopped the call. */
const char *tare_control_reason(void);
/* For kernels, which return nothing: whether to stop. The caller's next tare_control_check then fails as well, so that
 * incomplete results are never used. */
bool tare_control_is_stopped(void);
/* TARE_INTERRUPTED if tare_control_check reported a cancellation in any thread, TARE_NO_MEMORY if an allocation failed
 * since tare_control_set and was not forgiven, or a stack was too small, TARE_IO if a mapped file that concerns the
 * call became shorter. The last one needs no block. */
tare_status tare_control_verify(void) TARE_WARN_UNUSED;
/* The status of a call: TARE_IO with the name of the file if a mapped file that concerns it became shorter, and
 * TARE_NO_MEMORY if a stack was too small, because that explains any other failure, and forbids success; else `status`
 * with its text. */
tare_status tare_control_conclude(tare_status status) TARE_WARN_UNUSED;

/* Makes tare_control_check of this thread succeed until `ns` nanoseconds after it first saw the cancellation, so that
 * what is nearly complete is completed; 0: not at all. For a unit of work that cannot be continued later. */
void tare_control_set_patience(int64_t ns);
/* Between the two, the thread has no control block: for output that must be written although the call is cancelled.
 * `block` is what tare_control_suspend returned. */
struct tare_control *tare_control_suspend(void);
void tare_control_resume(struct tare_control *block);

/* Called when an output was moved to its place, and whether that has happened since tare_control_set: what fails then
 * does so after (a part of) the outputs is complete. */
void tare_control_note_commit(void);
bool tare_control_has_committed(void);

/* For base/stack.h: remembers and returns the failure. */
tare_status tare_control_fail_stack(int64_t kilobytes) TARE_WARN_UNUSED;
/* Called by the allocator when it fails. `bytes`: 0 if not known. */
void tare_control_note_failed_allocation(size_t bytes);
/* Failed allocations of this thread. The difference of two calls is what tare_control_forgive takes. */
int64_t tare_control_failures(void);
/* The failures of this thread since `mark` = tare_control_failures() had no effect on results. */
void tare_control_forgive(int64_t mark);

#endif
