/* Progress lines and log lines, by a clock of our own. */
#include "base/log.h"
#include "base/progress.h"
#include "base/alloc.h"
#include "base/strbuf.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static double now;
static double test_clock(void) {
    return now;
}

static char *text;
static size_t text_size;

static struct tare_progress *start(int64_t total, bool terminal, FILE *out) {
    struct tare_progress_options options = {
        .label = "reading", .unit = "records", .total = total, .out = out, .terminal = terminal, .clock = test_clock
    };
    now = 100;
    return tare_progress_new(&options);
}

static void plain__is_silent_for_two_seconds_then_speaks_every_five(void **state) {
    FILE *out = open_memstream(&text, &text_size);
    struct tare_progress *progress = start(100, false, out);
    (void)state;
    now = 101.9;
    tare_progress_advance(progress, 10);
    assert_int_equal(fflush(out), 0);
    assert_string_equal(text, "");
    now = 104;
    tare_progress_advance(progress, 10);
    now = 108.9;
    tare_progress_advance(progress, 10);
    now = 110;
    tare_progress_advance(progress, 10);
    tare_progress_free(progress);
    fclose(out);
    assert_string_equal(text, "reading 20/100 records, 5.00/s, 0:16 left\n"
                              "reading 40/100 records, 4.00/s, 0:15 left\n"
                              "reading 40/100 records, 4.00/s, in 0:10\n");
    free(text);
}

static void short_work__shows_nothing(void **state) {
    FILE *out = open_memstream(&text, &text_size);
    struct tare_progress *progress = start(100, true, out);
    (void)state;
    now = 101;
    tare_progress_advance(progress, 100);
    tare_progress_free(progress);
    fclose(out);
    assert_string_equal(text, "");
    free(text);
}

static void terminal__draws_a_bar(void **state) {
    FILE *out = open_memstream(&text, &text_size);
    struct tare_progress *progress = start(8, true, out);
    (void)state;
    now = 104;
    tare_progress_advance(progress, 4);
    fflush(out);
    assert_string_equal(text, "\rreading [############............] 4/8 records, 1.00/s, 0:04 left\033[K");
    tare_progress_free(progress);
    fclose(out);
    free(text);
}

static void unknown_total__shows_the_time_so_far(void **state) {
    FILE *out = open_memstream(&text, &text_size);
    struct tare_progress *progress = start(-1, false, out);
    (void)state;
    now = 100 + 4000;
    tare_progress_advance(progress, 4000000);
    fflush(out);
    assert_string_equal(text, "reading 4000000 records, 1000/s, 1:06:40 so far\n");
    tare_progress_free(progress);
    fclose(out);
    free(text);
}

static void total__may_come_while_the_work_goes_on(void **state) {
    FILE *out = open_memstream(&text, &text_size);
    struct tare_progress *progress = start(-1, false, out);
    (void)state;
    tare_progress_set_total(progress, 8);
    now = 104;
    tare_progress_advance(progress, 4);
    fflush(out);
    assert_string_equal(text, "reading 4/8 records, 1.00/s, 0:04 left\n");
    tare_progress_free(progress);
    tare_progress_set_total(NULL, 8);
    fclose(out);
    free(text);
}

static void skipped_units__count_but_not_for_the_rate(void **state) {
    FILE *out = open_memstream(&text, &text_size);
    struct tare_progress *progress = start(108, false, out);
    (void)state;
    tare_progress_skip(progress, 100);
    now = 104;
    tare_progress_advance(progress, 4);
    fflush(out);
    assert_string_equal(text, "reading 104/108 records, 1.00/s, 0:04 left\n");
    tare_progress_free(progress);
    tare_progress_skip(NULL, 1);
    fclose(out);
    free(text);
}

static void quiet__gives_nothing_to_free(void **state) {
    struct tare_progress_options options = { .label = "x", .unit = "y", .quiet = true };
    (void)state;
    assert_null(tare_progress_new(&options));
    tare_progress_advance(NULL, 1);
    tare_progress_free(NULL);
}

static void collect(void *arg, enum tare_log_level level, const char *line) {
    tare_strbuf_printf(arg, "%d %s|", (int)level, line);
}

struct received {
    int calls;
    int64_t done, total;
};

static void note(void *arg, const char *label, int64_t done, int64_t total) {
    struct received *received = arg;
    assert_string_equal(label, "reading");
    received->calls++;
    received->done = done;
    received->total = total;
}

static void callback__is_called_ten_times_per_second_and_at_the_end_even_if_quiet(void **state) {
    struct received received = { 0 };
    struct tare_progress_options options = { .label = "reading",
                                             .unit = "records",
                                             .total = 5,
                                             .quiet = true,
                                             .clock = test_clock,
                                             .on_progress = note,
                                             .progress_arg = &received };
    struct tare_progress *progress;
    (void)state;
    now = 100;
    progress = tare_progress_new(&options);
    assert_non_null(progress);
    tare_progress_advance(progress, 1);
    assert_int_equal(received.calls, 1);
    now = 100.05;
    tare_progress_advance(progress, 1);
    assert_int_equal(received.calls, 1);
    now = 100.11;
    tare_progress_advance(progress, 1);
    assert_int_equal(received.calls, 2);
    assert_int_equal(received.done, 3);
    tare_progress_free(progress);
    assert_int_equal(received.calls, 3);
    assert_int_equal(received.total, 5);
}

static void log__drops_messages_above_its_level(void **state) {
    struct tare_strbuf lines = { 0 };
    struct tare_log log = { TARE_LOG_NOTE, collect, &lines };
    (void)state;
    tare_warn(&log, "few samples (got %d)", 3);
    tare_note(&log, "done");
    tare_log_write(&log, TARE_LOG_DETAIL, "not shown");
    tare_warn(NULL, "discarded");
    assert_string_equal(tare_strbuf_text(&lines), "1 few samples (got 3)|2 done|");
    tare_strbuf_free(&lines);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain__is_silent_for_two_seconds_then_speaks_every_five),
        cmocka_unit_test(short_work__shows_nothing),
        cmocka_unit_test(terminal__draws_a_bar),
        cmocka_unit_test(unknown_total__shows_the_time_so_far),
        cmocka_unit_test(total__may_come_while_the_work_goes_on),
        cmocka_unit_test(skipped_units__count_but_not_for_the_rate),
        cmocka_unit_test(quiet__gives_nothing_to_free),
        cmocka_unit_test(callback__is_called_ten_times_per_second_and_at_the_end_even_if_quiet),
        cmocka_unit_test(log__drops_messages_above_its_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
