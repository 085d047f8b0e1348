/* Threads, pools and queues on top of POSIX threads. */
#include "base/thread.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/control.h"
#include "base/format.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum { MOST_WORKERS = 4096 };

int tare_cpu_count(void) {
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return count > 0 ? count : 1;
}

/* ---- a thread ---- */

struct tare_thread {
    pthread_t id;
    tare_status (*fn)(void *arg);
    void *arg;
    struct tare_call call; /* of the thread that started it */
    tare_status status;
    char *text;
};

static void *thread_main(void *arg) {
    struct tare_thread *thread = arg;
    tare_control_join(thread->call);
    thread->status = thread->fn(thread->arg);
    if (thread->status != TARE_OK) thread->text = tare_strdup(tare_error_text());
    return NULL;
}

struct tare_thread *tare_thread_start(tare_status (*fn)(void *arg), void *arg) {
    struct tare_thread *thread = tare_calloc(1, sizeof *thread);
    int error;
    if (!thread) return NULL;
    thread->fn = fn;
    thread->arg = arg;
    thread->call = tare_control_call();
    error = pthread_create(&thread->id, NULL, thread_main, thread);
    if (error) {
        TARE_FAIL(TARE_INTERNAL, "cannot start a thread: %s", tare_system_error(error));
        tare_free(thread);
        return NULL;
    }
    return thread;
}

tare_status tare_thread_join(struct tare_thread *thread) {
    tare_status status;
    if (!thread) return TARE_OK;
    pthread_join(thread->id, NULL);
    status = thread->status;
    if (status != TARE_OK) tare_error_set(thread->text ? thread->text : tare_status_name(status));
    tare_free(thread->text);
    tare_free(thread);
    return status;
}

/* ---- a pool ---- */

struct pool_worker {
    struct tare_pool *pool;
    struct tare_thread *thread; /* NULL for worker 0 */
    int number;
    atomic_uint taken; /* the last run whose part was taken, by this worker's thread or by the caller */
    tare_status status;
    char *text; /* error text of a failure; NULL if there was no memory for it */
};

struct tare_pool {
    pthread_mutex_t lock;
    pthread_cond_t start, finished;
    int count;
    bool may_spin;      /* each worker has a processor */
    atomic_int running; /* workers that have not finished the run */
    atomic_uint round;  /* counts the runs: a worker that sees a new number has work; changed under the lock */
    bool ending;
    unsigned measured; /* the round after which cost_ns was measured; 0: it was not */
    int64_t cost_ns;
    bool is_assumed; /* cost_ns was given */
    tare_worker_fn fn;
    void *arg;
    struct tare_call call; /* of the thread that called tare_pool_run */
    struct pool_worker workers[];
};

static inline void pause_processor(void) {
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#endif
}

/* Whether this thread may execute the worker's part of a run: no thread has taken it before. Each part of each run is
 * taken once, so that a thread that wakes late does not take the part of a later run. */
static bool take(struct pool_worker *worker, unsigned round) {
    unsigned before = round - 1;
    return atomic_compare_exchange_strong_explicit(&worker->taken, &before, round, memory_order_acq_rel,
                                                   memory_order_relaxed);
}

static void work(struct pool_worker *worker, tare_worker_fn fn, void *arg) {
    worker->status = fn(arg, worker->number);
    worker->text = worker->status != TARE_OK ? tare_strdup(tare_error_text()) : NULL;
}

/* Runs of a pool often follow each other within microseconds, while waking a thread takes tens of them: a thread that
 * waits first looks for a while whether the wait is over. If it is, the thread needs no lock, which others may hold. */
static bool spin(bool (*is_over)(const void *arg), const void *arg) {
    enum { NANOSECONDS = 100000, LOOKS = 32 };
    const int64_t end = tare_clock_ns() + NANOSECONDS;
    do {
        for (int i = 0; i < LOOKS; i++) {
            if (is_over(arg)) return true;
            pause_processor();
        }
    } while (tare_clock_ns() < end);
    return false;
}

struct next_run {
    const struct tare_pool *pool;
    unsigned seen; /* the run before */
};

static bool has_begun(const void *arg) {
    const struct next_run *run = arg;
    return atomic_load_explicit(&run->pool->round, memory_order_acquire) != run->seen;
}

static bool is_finished(const void *arg) {
    const struct tare_pool *pool = arg;
    return atomic_load_explicit(&pool->running, memory_order_acquire) == 0;
}

/* Waits for a run other than `seen`; false if the pool ends. */
static bool wait_for_run(struct tare_pool *pool, unsigned seen) {
    const struct next_run run = { pool, seen };
    if (pool->may_spin && spin(has_begun, &run)) return true;
    pthread_mutex_lock(&pool->lock);
    while (!has_begun(&run) && !pool->ending)
        pthread_cond_wait(&pool->start, &pool->lock);
    const bool ending = pool->ending;
    pthread_mutex_unlock(&pool->lock);
    return !ending;
}

/* `fn`, `arg` and `call` do not change while a part of the run is taken and not finished. */
static tare_status worker_main(void *arg) {
    struct pool_worker *worker = arg;
    struct tare_pool *pool = worker->pool;
    for (unsigned seen = 0; wait_for_run(pool, seen);) {
        seen = atomic_load_explicit(&pool->round, memory_order_acquire);
        if (!take(worker, seen)) continue;
        tare_control_join(pool->call);
        work(worker, pool->fn, pool->arg);
        if (atomic_fetch_sub_explicit(&pool->running, 1, memory_order_acq_rel) > 1) continue;
        pthread_mutex_lock(&pool->lock); /* the caller may be about to wait */
        pthread_cond_signal(&pool->finished);
        pthread_mutex_unlock(&pool->lock);
    }
    return TARE_OK;
}

struct tare_pool *tare_pool_new(int count) {
    struct tare_pool *pool;
    if (count < 1) count = 1;
    if (count > MOST_WORKERS) count = MOST_WORKERS;
    pool = tare_calloc(1, sizeof *pool + (size_t)count * sizeof pool->workers[0]);
    if (!pool) return NULL;
    pool->may_spin = count <= tare_cpu_count();
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->start, NULL);
    pthread_cond_init(&pool->finished, NULL);
    for (pool->count = 0; pool->count < count; pool->count++) {
        struct pool_worker *worker = &pool->workers[pool->count];
        worker->pool = pool;
        worker->number = pool->count;
        if (pool->count == 0) continue;
        worker->thread = tare_thread_start(worker_main, worker);
        if (!worker->thread) {
            tare_pool_free(pool);
            return NULL;
        }
    }
    return pool;
}

int tare_pool_size(const struct tare_pool *pool) {
    return pool ? pool->count : 1;
}

static tare_status collect(struct tare_pool *pool) {
    tare_status status = TARE_OK;
    for (int i = 0; i < pool->count; i++) {
        struct pool_worker *worker = &pool->workers[i];
        if (worker->status != TARE_OK && status == TARE_OK) {
            status = worker->status;
            tare_error_set(worker->text ? worker->text : tare_status_name(status));
        }
        tare_free(worker->text);
        worker->text = NULL;
        worker->status = TARE_OK;
    }
    return status;
}

/* The parts of threads that have not begun, which may get a processor only after milliseconds on a busy machine. */
static void work_for_others(struct tare_pool *pool, unsigned round) {
    for (int i = 1; i < pool->count; i++) {
        if (!take(&pool->workers[i], round)) continue;
        work(&pool->workers[i], pool->fn, pool->arg);
        atomic_fetch_sub_explicit(&pool->running, 1, memory_order_acq_rel);
    }
}

tare_status tare_pool_run(struct tare_pool *pool, tare_worker_fn fn, void *arg) {
    if (!pool) return fn(arg, 0);
    pthread_mutex_lock(&pool->lock);
    pool->fn = fn;
    pool->arg = arg;
    pool->call = tare_control_call();
    pool->running = pool->count - 1;
    const unsigned round = atomic_fetch_add_explicit(&pool->round, 1, memory_order_release) + 1;
    pthread_cond_broadcast(&pool->start);
    pthread_mutex_unlock(&pool->lock);
    work(&pool->workers[0], fn, arg);
    work_for_others(pool, round);
    if (pool->may_spin && spin(is_finished, pool)) return collect(pool);
    pthread_mutex_lock(&pool->lock);
    while (!is_finished(pool))
        pthread_cond_wait(&pool->finished, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
    return collect(pool);
}

struct gathering {
    const struct tare_pool *pool;
    atomic_int others; /* workers that have begun */
};

static bool all_are_here(const void *arg) {
    const struct gathering *gathering = arg;
    return atomic_load_explicit(&gathering->others, memory_order_acquire) == gathering->pool->count - 1;
}

/* The caller waits until each other thread has begun. */
static tare_status gather(void *arg, int worker) {
    struct gathering *gathering = arg;
    if (worker > 0) {
        atomic_fetch_add_explicit(&gathering->others, 1, memory_order_acq_rel);
    } else {
        spin(all_are_here, gathering);
    }
    return TARE_OK;
}

int64_t tare_pool_cost_ns(struct tare_pool *pool) {
    enum { TIMES = 16, VALID_ROUNDS = 1 << 14 };
    if (pool && pool->is_assumed) return pool->cost_ns;
    if (!pool || !pool->may_spin) return pool ? INT64_MAX : 0;
    if (pool->measured && pool->round - pool->measured < VALID_ROUNDS) return pool->cost_ns;
    pool->cost_ns = INT64_MAX;
    for (int i = 0; i < TIMES; i++) {
        struct gathering gathering = { .pool = pool };
        const int64_t start = tare_clock_ns();
        if (tare_pool_run(pool, gather, &gathering) != TARE_OK) break;
        const int64_t took = tare_clock_ns() - start;
        if (took < pool->cost_ns) pool->cost_ns = took;
    }
    pool->measured = pool->round;
    return pool->cost_ns;
}

void tare_pool_assume_cost(struct tare_pool *pool, int64_t nanoseconds) {
    pool->is_assumed = true;
    pool->cost_ns = nanoseconds;
}

void tare_pool_free(struct tare_pool *pool) {
    if (!pool) return;
    pthread_mutex_lock(&pool->lock);
    pool->ending = true;
    pthread_cond_broadcast(&pool->start);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 1; i < pool->count; i++)
        tare_thread_join(pool->workers[i].thread);
    pthread_cond_destroy(&pool->start);
    pthread_cond_destroy(&pool->finished);
    pthread_mutex_destroy(&pool->lock);
    tare_free(pool);
}

tare_status tare_threads_run(int count, tare_worker_fn fn, void *arg) {
    struct tare_pool *pool;
    tare_status status;
    if (count <= 1) return fn(arg, 0);
    pool = tare_pool_new(count);
    if (!pool) return TARE_NO_MEMORY;
    status = tare_pool_run(pool, fn, arg);
    tare_pool_free(pool);
    return status;
}

/* ---- a queue ---- */

struct tare_queue {
    pthread_mutex_t lock;
    pthread_cond_t has_item, has_room;
    size_t capacity, count, first;
    bool closed;
    void *items[];
};

struct tare_queue *tare_queue_new(size_t capacity) {
    struct tare_queue *queue;
    size_t bytes;
    if (!capacity) capacity = 1;
    if (!tare_mul_size(&bytes, capacity, sizeof(void *)) || !tare_add_size(&bytes, bytes, sizeof *queue))
        bytes = SIZE_MAX; /* fails and sets the error text */
    queue = tare_malloc(bytes);
    if (!queue) return NULL;
    memset(queue, 0, sizeof *queue);
    queue->capacity = capacity;
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->has_item, NULL);
    pthread_cond_init(&queue->has_room, NULL);
    return queue;
}

bool tare_queue_push(struct tare_queue *queue, void *item) {
    bool taken;
    pthread_mutex_lock(&queue->lock);
    while (!queue->closed && queue->count == queue->capacity)
        pthread_cond_wait(&queue->has_room, &queue->lock);
    taken = !queue->closed;
    if (taken) {
        queue->items[(queue->first + queue->count) % queue->capacity] = item;
        queue->count++;
        pthread_cond_signal(&queue->has_item);
    }
    pthread_mutex_unlock(&queue->lock);
    return taken;
}

bool tare_queue_pop(struct tare_queue *queue, void **item) {
    bool found;
    pthread_mutex_lock(&queue->lock);
    while (!queue->closed && queue->count == 0)
        pthread_cond_wait(&queue->has_item, &queue->lock);
    found = queue->count > 0;
    if (found) {
        *item = queue->items[queue->first];
        queue->first = (queue->first + 1) % queue->capacity;
        queue->count--;
        /* A waiting producer is woken when the queue is half empty, not for each item: waking a thread costs more than
         * processing most items. */
        if (queue->count <= queue->capacity / 2) pthread_cond_signal(&queue->has_room);
    }
    pthread_mutex_unlock(&queue->lock);
    return found;
}

void tare_queue_close(struct tare_queue *queue) {
    pthread_mutex_lock(&queue->lock);
    queue->closed = true;
    pthread_cond_broadcast(&queue->has_item);
    pthread_cond_broadcast(&queue->has_room);
    pthread_mutex_unlock(&queue->lock);
}

void tare_queue_free(struct tare_queue *queue) {
    if (!queue) return;
    pthread_cond_destroy(&queue->has_item);
    pthread_cond_destroy(&queue->has_room);
    pthread_mutex_destroy(&queue->lock);
    tare_free(queue);
}
