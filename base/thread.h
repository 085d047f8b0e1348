/* Threads: running a function on N of them, thread pools, and a bounded queue between producers and consumers. */
#ifndef TARE_BASE_THREAD_H
#define TARE_BASE_THREAD_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Processors that this process may use (its affinity mask), at least 1. */
int tare_cpu_count(void);

/* A part of the work: `worker` is 0 … count-1. 0 runs on the calling thread, which then also takes the parts of threads
 * that have not begun. */
typedef tare_status (*tare_worker_fn)(void *arg, int worker);

/* Runs fn(arg, worker) once for each worker on up to `count` threads (at least 1) and waits for all. If several fail,
 * returns the status and text of the lowest worker number, which makes the message as deterministic as the work. */
tare_status tare_threads_run(int count, tare_worker_fn fn, void *arg) TARE_WARN_UNUSED;

/* Threads that are reused for many short runs. One run at a time. */
struct tare_pool;
/* `count` workers, including the calling thread. NULL with the error text set on failure. */
struct tare_pool *tare_pool_new(int count);
int tare_pool_size(const struct tare_pool *pool); /* 1 for NULL */
/* Like tare_threads_run, on the pool's threads; NULL runs only worker 0. */
tare_status tare_pool_run(struct tare_pool *pool, tare_worker_fn fn, void *arg) TARE_WARN_UNUSED;
/* Nanoseconds that a run takes beside its work: the least of some runs without work, measured on the first call and
 * again after many runs, since threads move to other processors. INT64_MAX if there are more workers than processors.
 */
int64_t tare_pool_cost_ns(struct tare_pool *pool);
/* The cost is taken as given from now on and not measured, so that what is divided between threads does not depend on
 * the machine: for tests. */
void tare_pool_assume_cost(struct tare_pool *pool, int64_t nanoseconds);
void tare_pool_free(struct tare_pool *pool);

/* A bounded FIFO queue of pointers for any number of producers and consumers. */
struct tare_queue;
struct tare_queue *tare_queue_new(size_t capacity);
/* Waits while the queue is full; a waiting producer resumes once it is half empty. False if the queue is closed: the
 * item was not added. */
bool tare_queue_push(struct tare_queue *queue, void *item);
/* Waits for an item. False if the queue is closed and empty. */
bool tare_queue_pop(struct tare_queue *queue, void **item);
/* Wakes all waiting threads; items in the queue can still be popped. */
void tare_queue_close(struct tare_queue *queue);
/* No thread may use the queue any more. Remaining items are not freed: pop them first. */
void tare_queue_free(struct tare_queue *queue);

/* A single thread. */
struct tare_thread;
/* NULL with the error text set on failure. */
struct tare_thread *tare_thread_start(tare_status (*fn)(void *arg), void *arg);
/* Waits for the thread, frees it, and returns its status with its error text. TARE_OK for NULL. */
tare_status tare_thread_join(struct tare_thread *thread);

#endif
