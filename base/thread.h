/* Threads: the same function on N of them, and a bounded queue between a producer and its consumers. */
#ifndef TARE_BASE_THREAD_H
#define TARE_BASE_THREAD_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* Processors that this process may use (its affinity mask), at least 1. */
int tare_cpu_count(void);

/* `worker` is 0 … count-1; 0 runs on the calling thread. */
typedef tare_status (*tare_worker_fn)(void *arg, int worker);

/* Runs fn(arg, worker) on `count` threads (at least 1) and waits for all. When several fail, the status and text of the
 * lowest worker number come back, so that the message does not depend on timing more than the work itself does. */
tare_status tare_threads_run(int count, tare_worker_fn fn, void *arg) TARE_WARN_UNUSED;

/* Threads kept for many short runs. One run at a time. */
struct tare_pool;
/* `count` workers, the caller's thread among them. NULL with the error text set on failure. */
struct tare_pool *tare_pool_new(int count);
int tare_pool_size(const struct tare_pool *pool); /* 1 for NULL */
/* As tare_threads_run, on the pool's threads; a NULL pool runs worker 0 alone. */
tare_status tare_pool_run(struct tare_pool *pool, tare_worker_fn fn, void *arg) TARE_WARN_UNUSED;
void tare_pool_free(struct tare_pool *pool);

/* A bounded first-in first-out queue of pointers, any number of threads at both ends. */
struct tare_queue;
struct tare_queue *tare_queue_new(size_t capacity);
/* Waits while the queue is full, and then until it is half empty. False when it is closed: the item was not taken. */
bool tare_queue_push(struct tare_queue *queue, void *item);
/* Waits for an item. False when the queue is closed and empty. */
bool tare_queue_pop(struct tare_queue *queue, void **item);
/* Wakes all that wait; what is in the queue can still be popped. */
void tare_queue_close(struct tare_queue *queue);
/* Nobody may use the queue any more; items in it are the caller's business (pop them first). */
void tare_queue_free(struct tare_queue *queue);

/* One thread beside the caller's. */
struct tare_thread;
/* NULL with the error text set on failure. */
struct tare_thread *tare_thread_start(tare_status (*fn)(void *arg), void *arg);
/* Waits, releases the thread, and carries its failure over. TARE_OK for NULL. */
tare_status tare_thread_join(struct tare_thread *thread);

#endif
