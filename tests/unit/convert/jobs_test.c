/* The defaults of a job file: they are those of single fields, and each keeps its own value, whatever its size. */
#include "convert/jobs.h"

#include "support/mini_model.h"
#include "support/temp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct tare_jobs read_jobs(struct tare_arena *arena, const char *text) {
    struct tare_jobs jobs;
    mini_ok(tare_jobs_read(&jobs, arena, temp_file("jobs.txt", text, strlen(text))));
    return jobs;
}

/* keep_rejected has four bytes, and the pointer behind it, target, is the job's own. */
static void scalars__are_copied_with_their_size(void **state) {
    struct tare_arena arena = { 0 };
    (void)state;
    const struct tare_jobs jobs =
        read_jobs(&arena, "defaults { model: '/m' method: 'dynamic' output: '/o/{name}' keep_rejected: true "
                          "target: 'common' evaluation_limit: 7 evaluation: '/e' }\n"
                          "job { name: 'a' } job { name: 'b' evaluation_limit: 9 target: "
                          "'own' } job { name: 'c' keep_rejected: false }\n");
    static const int64_t limits[] = { 7, 9, 7 };
    static const bool kept[] = { true, true, false };
    static const char *const targets[] = { "common", "own", "common" };
    assert_int_equal(jobs.count, 3);
    for (size_t i = 0; i < jobs.count; i++) {
        assert_int_equal(jobs.jobs[i].evaluation_limit, limits[i]);
        assert_int_equal(jobs.jobs[i].keep_rejected, kept[i]);
        assert_int_equal(jobs.jobs[i].name[0], 'a' + (int)i);
        assert_string_equal(jobs.jobs[i].target, targets[i]);
    }
    tare_arena_free(&arena);
}

static void limits__have_defaults_one_by_one(void **state) {
    struct tare_arena arena = { 0 };
    (void)state;
    const struct tare_jobs jobs =
        read_jobs(&arena, "defaults { model: '/m' method: 'dynamic' output: '/o/{name}' evaluation: '/e' "
                          "limits { max_size_bytes: 1000 chip: 'v6e' } }\n"
                          "job { name: 'a' limits { max_drop: 90.5 } } job { name: 'b' }"
                          "job { name: 'c' limits { max_size_bytes: 7 } }\n");
    static const int64_t sizes[] = { 1000, 1000, 7 };
    static const double drops[] = { 90.5, -1, -1 };
    for (size_t i = 0; i < jobs.count; i++) {
        assert_int_equal(jobs.jobs[i].limits.max_size_bytes, sizes[i]);
        assert_float_equal(jobs.jobs[i].limits.max_drop, drops[i], 0);
        assert_int_equal(jobs.jobs[i].limits.chip, jobs.jobs[1].limits.chip);
    }
    assert_int_not_equal(jobs.jobs[1].limits.chip, 0);
    tare_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(scalars__are_copied_with_their_size),
                                        cmocka_unit_test(limits__have_defaults_one_by_one) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
