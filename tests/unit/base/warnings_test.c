/* Warnings that a log passes on and keeps for a report. */
#include "base/warnings.h"
#include "base/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* What a log has shown: a letter of the level and the text, a line each. */
struct shown {
    char text[512];
};

static void show(void *arg, enum tare_log_level level, const char *text) {
    struct shown *shown = arg;
    const size_t used = strlen(shown->text);
    snprintf(shown->text + used, sizeof shown->text - used, "%c %s\n", "?WND"[level], text);
}

static void warnings__are_shown_and_kept_once(void **state) {
    struct shown shown = { 0 };
    const struct tare_log next = { .most = TARE_LOG_NOTE, .write = show, .arg = &shown };
    struct tare_warnings warnings = { 0 };
    const struct tare_log log = tare_warnings_log(&warnings, &next);
    (void)state;
    tare_warn(&log, "few");
    tare_note(&log, "few");
    tare_detail(&log, "few");
    tare_warn(&log, "static: layer %d", 1);
    tare_warn(&log, "few");
    tare_warn(&log, "layer 1"); /* known, after a name */
    tare_warn(&log, "ayer 1");  /* not after a name */
    tare_warn(&log, "dynamic: layer 1");
    assert_string_equal(shown.text, "W few\nN few\nW static: layer 1\nW ayer 1\nW dynamic: layer 1\n");
    assert_int_equal(warnings.count, 4);
    assert_string_equal(warnings.texts[1], "static: layer 1");
    tare_warnings_free(&warnings);
    assert_int_equal(warnings.count, 0);
}

static void warnings__are_kept_where_nobody_listens(void **state) {
    struct shown shown = { 0 };
    const struct tare_log next = { .most = TARE_LOG_NOTE, .write = show, .arg = &shown };
    struct tare_warnings warnings = { 0 };
    const struct tare_log none = tare_warnings_log(&warnings, NULL), silent = tare_warnings_silent(&warnings);
    (void)state;
    tare_warn(&none, "a");
    tare_warn(&silent, "b");
    tare_note(&silent, "c");
    const struct tare_log log = tare_warnings_log(&warnings, &next);
    tare_warn(&log, "b");
    tare_warn(&log, "d");
    assert_int_equal(warnings.count, 3);
    assert_string_equal(shown.text, "W d\n");
    tare_warnings_free(&warnings);
}

static tare_status warn_in_thread(void *arg, int worker) {
    struct tare_warnings *warnings = arg;
    const struct tare_log log = tare_warnings_silent(warnings);
    (void)worker;
    for (int i = 0; i < 100; i++)
        tare_warn(&log, "number %d", i);
    return TARE_OK;
}

static void warnings__come_from_any_thread(void **state) {
    struct tare_warnings warnings = { 0 };
    (void)state;
    assert_int_equal(tare_threads_run(4, warn_in_thread, &warnings), TARE_OK);
    assert_int_equal(warnings.count, 100);
    assert_false(warnings.failed);
    tare_warnings_free(&warnings);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warnings__are_shown_and_kept_once),
        cmocka_unit_test(warnings__are_kept_where_nobody_listens),
        cmocka_unit_test(warnings__come_from_any_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
