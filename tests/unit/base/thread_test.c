/* Workers, their failures, and the bounded queue. */
#include "base/thread.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static tare_status count_up(void *arg, int worker) {
    atomic_fetch_add((_Atomic int *)arg, 1 << worker * 4);
    return TARE_OK;
}

static void run__calls_each_worker_once(void **state) {
    _Atomic int calls = 0;
    (void)state;
    assert_int_equal(tare_threads_run(5, count_up, &calls), TARE_OK);
    assert_int_equal(calls, 0x11111);
}

static tare_status fail_some(void *arg, int worker) {
    (void)arg;
    return worker >= 2 ? TARE_FAIL(TARE_CORRUPT, "worker %d failed", worker) : TARE_OK;
}

static tare_status fail_second(void *arg, int worker) {
    (void)arg;
    return worker == 1 ? TARE_FAIL(TARE_CORRUPT, "worker %d failed", worker) : TARE_OK;
}

static void run__carries_over_the_failure_of_the_lowest_worker(void **state) {
    (void)state;
    tare_error_clear();
    assert_int_equal(tare_threads_run(6, fail_some, NULL), TARE_CORRUPT);
    assert_string_equal(tare_error_text(), "worker 2 failed");
    assert_int_equal(tare_threads_run(2, fail_some, NULL), TARE_OK);
}

static void pool__runs_again_and_again(void **state) {
    struct tare_pool *pool = tare_pool_new(3);
    _Atomic int calls = 0;
    (void)state;
    assert_int_equal(tare_pool_size(pool), 3);
    for (int i = 0; i < 15; i++)
        assert_int_equal(tare_pool_run(pool, count_up, &calls), TARE_OK);
    assert_int_equal(calls, 0xfff);
    assert_int_equal(tare_pool_run(pool, fail_some, NULL), TARE_CORRUPT);
    assert_int_equal(tare_pool_run(pool, count_up, &calls), TARE_OK);
    tare_pool_free(pool);
    assert_int_equal(tare_pool_size(NULL), 1);
}

/* ---- threads that do not begin ---- */

static pthread_t second_thread;
static pid_t second_id;
static atomic_int is_held, may_go;

static void hold(int number) {
    (void)number;
    is_held = 1;
    while (!may_go)
        sched_yield();
    is_held = 0;
}

static tare_status tell_thread(void *arg, int worker) {
    if (worker == 1) {
        second_thread = pthread_self();
        second_id = gettid();
    }
    atomic_int *begun = arg;
    (*begun)++;
    while (worker == 0 && *begun < 2) /* worker 1 has a thread of its own */
        sched_yield();
    return TARE_OK;
}

/* Whether the second thread waits for a run: it holds no lock then. */
static bool second_sleeps(void) {
    char path[64], line[128] = "";
    const char *state;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)second_id);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    if (!fgets(line, sizeof line, file)) *line = 0;
    fclose(file);
    state = strrchr(line, ')');
    return state && state[2] == 'S';
}

static void pool__ends_a_run_although_a_thread_does_not_begin(void **state) {
    struct tare_pool *pool = tare_pool_new(2);
    _Atomic int calls = 0;
    atomic_int begun = 0;
    (void)state;
    signal(SIGUSR1, hold);
    assert_int_equal(tare_pool_run(pool, tell_thread, &begun), TARE_OK);
    while (!second_sleeps())
        sched_yield();
    assert_int_equal(pthread_kill(second_thread, SIGUSR1), 0);
    while (!is_held)
        sched_yield();
    for (int i = 0; i < 7; i++)
        assert_int_equal(tare_pool_run(pool, count_up, &calls), TARE_OK);
    assert_int_equal(calls, 0x77);
    assert_int_equal(tare_pool_run(pool, fail_second, NULL), TARE_CORRUPT);
    assert_string_equal(tare_error_text(), "worker 1 failed");
    may_go = 1;
    while (is_held)
        sched_yield();
    for (int i = 0; i < 7; i++) /* it takes no part of a run that is over */
        assert_int_equal(tare_pool_run(pool, count_up, &calls), TARE_OK);
    assert_int_equal(calls, 0xee);
    tare_pool_free(pool);
}

enum { WORKERS = 4, RUNS = 20000 };

static tare_status note_part(void *arg, int worker) {
    _Atomic int *parts = arg;
    for (volatile int wait = 0; wait < worker * 7 % 30; wait++)
        continue;
    parts[worker]++;
    return TARE_OK;
}

/* Whoever takes a part, it is taken once in each run. */
static void pool__takes_each_part_once(void **state) {
    struct tare_pool *pool = tare_pool_new(WORKERS);
    (void)state;
    for (int i = 0; i < RUNS; i++) {
        _Atomic int parts[WORKERS] = { 0 };
        assert_int_equal(tare_pool_run(pool, note_part, parts), TARE_OK);
        for (int w = 0; w < WORKERS; w++)
            if (parts[w] != 1) fail_msg("run %d: part %d was taken %d times", i, w, parts[w]);
    }
    tare_pool_free(pool);
}

/* What it costs to run a pool decides what is worth dividing. */
static void pool__measures_what_a_run_costs(void **state) {
    const int cpus = tare_cpu_count();
    struct tare_pool *pool = tare_pool_new(cpus > 2 ? 2 : cpus), *crowded = tare_pool_new(cpus + 1);
    _Atomic int calls = 0;
    (void)state;
    assert_int_equal(tare_pool_cost_ns(NULL), 0);
    assert_int_equal(tare_pool_cost_ns(crowded), INT64_MAX);
    const int64_t cost = tare_pool_cost_ns(pool);
    assert_true(cost > 0 && cost < INT64_MAX);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(tare_pool_cost_ns(pool), cost); /* it is not measured again at once */
        assert_int_equal(tare_pool_run(pool, count_up, &calls), TARE_OK);
    }
    tare_pool_assume_cost(crowded, 7);
    assert_int_equal(tare_pool_cost_ns(crowded), 7);
    tare_pool_free(pool);
    tare_pool_free(crowded);
}

enum { ITEMS = 2000 };

static tare_status produce(void *arg) {
    struct tare_queue *queue = arg;
    for (uintptr_t i = 1; i <= ITEMS; i++)
        if (!tare_queue_push(queue, (void *)i)) return TARE_FAIL(TARE_INTERRUPTED, "closed at %d", (int)i);
    tare_queue_close(queue);
    return TARE_OK;
}

static void queue__keeps_order_and_ends(void **state) {
    struct tare_queue *queue = tare_queue_new(3);
    struct tare_thread *producer = tare_thread_start(produce, queue);
    void *item;
    uintptr_t next = 1;
    (void)state;
    while (tare_queue_pop(queue, &item))
        assert_int_equal((uintptr_t)item, next++);
    assert_int_equal(next, ITEMS + 1);
    assert_int_equal(tare_thread_join(producer), TARE_OK);
    tare_queue_free(queue);
}

static void queue__close_wakes_a_waiting_producer(void **state) {
    struct tare_queue *queue = tare_queue_new(1);
    struct tare_thread *producer = tare_thread_start(produce, queue);
    void *item;
    (void)state;
    assert_true(tare_queue_pop(queue, &item));
    tare_queue_close(queue);
    assert_int_equal(tare_thread_join(producer), TARE_INTERRUPTED);
    while (tare_queue_pop(queue, &item))
        continue;
    assert_false(tare_queue_push(queue, item));
    tare_queue_free(queue);
}

static void cpu_count__is_positive(void **state) {
    (void)state;
    assert_true(tare_cpu_count() >= 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run__calls_each_worker_once),
        cmocka_unit_test(run__carries_over_the_failure_of_the_lowest_worker),
        cmocka_unit_test(pool__runs_again_and_again),
        cmocka_unit_test(pool__ends_a_run_although_a_thread_does_not_begin),
        cmocka_unit_test(pool__takes_each_part_once),
        cmocka_unit_test(pool__measures_what_a_run_costs),
        cmocka_unit_test(queue__keeps_order_and_ends),
        cmocka_unit_test(queue__close_wakes_a_waiting_producer),
        cmocka_unit_test(cpu_count__is_positive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
