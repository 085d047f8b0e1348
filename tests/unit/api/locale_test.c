/* The library reads and prints numbers with a point, and knows the letters of ASCII, whatever the locale of its host:
 * results in a locale with a decimal comma, which the test builds, are those in the locale "C". */
#include "include/tare/tare.h"

#include "support/api_check.h"
#include "support/temp.h"

#include <ctype.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const samples = GLYPHS "calibration.tfrecord.gz", *const records = GLYPHS "eval.tfrecord.gz";

/* A locale with a decimal comma and groups of thousands, in which I and i are no pair, as in Turkish. localedef needs
 * no file of the package `locales`; it warns, and fails, because other categories are missing, but what it writes is
 * complete. */
static void build_locale(const char *name, const char *point) {
    static const char characters[] = "<code_set_name> PLAIN\n<comment_char> %\n<escape_char> /\n<mb_cur_min> 1\n"
                                     "<mb_cur_max> 2\nCHARMAP\n<U0000>..<U007F> /x00\n<U066B> /xd9/xab\nEND CHARMAP\n";
    static const char source[] = "LC_CTYPE\nupper <U0041>..<U005A>\nlower <U0061>..<U007A>\ndigit <U0030>..<U0039>\n"
                                 "space <U0020>;<U0009>..<U000D>\nblank <U0020>;<U0009>\n"
                                 "tolower (<U0041>,<U0061>)\ntoupper (<U0061>,<U0041>)\nEND LC_CTYPE\n"
                                 "LC_NUMERIC\ndecimal_point \"%s\"\nthousands_sep \".\"\ngrouping 3;3\n"
                                 "END LC_NUMERIC\n";
    char command[4096], text[sizeof source + 16];
    const int size = snprintf(text, sizeof text, source, point);
    (void)temp_file("characters", characters, sizeof characters - 1);
    (void)temp_file("source", text, (size_t)size);
    snprintf(command, sizeof command,
             "cd '%s' && localedef --force --no-archive -f ./characters -i ./source ./%s >/dev/null 2>&1",
             temp_folder(), name);
    (void)!system(command);
    setenv("LOCPATH", temp_folder(), 1);
}

static void check_point(const char *point) {
    char text[32], expected[32];
    snprintf(text, sizeof text, "%g %'d", 0.5, 1234567);
    snprintf(expected, sizeof expected, "0%s5 1.234.567", point);
    assert_string_equal(text, expected);
}

static void check_locale(void) {
    check_point(",");
    assert_true(strtod("0.5", NULL) == 0);
    assert_int_equal(tolower('I'), 'I'); /* strcasecmp of the sanitizers has no locale */
}

static void use_comma(void) {
    build_locale("comma", ",");
    assert_non_null(setlocale(LC_ALL, "comma"));
    check_locale();
}

static tare_model *open_glyphs(void) {
    tare_model *model;
    OK(tare_model_open(&model, NULL, GLYPHS "saved_model"));
    return model;
}

/* Texts with numbers that are read and printed, none of which depends on the time. */
struct texts {
    char *described, *ranges, *page, *layers, *report, *error;
};

static void make_texts(struct texts *out) {
    static const char converter[] = "tpu_functions { function_alias: 'tpu_func' } batch_options { "
                                    "num_batch_threads: 2 max_batch_size: 8 batch_timeout_micros: 5000 "
                                    "allowed_batch_sizes: 8 max_enqueued_batches: 10 }";
    static const char text[] = "input { name: \"image\" scale: 0.5 mean: 0.25 std: 1.5 }";
    const char *spec = temp_file("spec.pbtxt", text, sizeof text - 1);
    tare_model *model = open_glyphs(), *made;
    tare_calibration *calibration;
    char options[4096];
    OK(tare_model_describe(&out->described, model));
    snprintf(options, sizeof options, "limit=30 channels spec=%s", spec);
    OK(tare_model_calibrate(&calibration, model, &samples, 1, options));
    OK(tare_calibration_report(&out->ranges, calibration, "algorithms=percentile:p=99.9,mse"));
    OK(tare_calibration_report(&out->page, calibration, "algorithms=percentile:p=99.9 html"));
    OK(tare_model_quantize_report(NULL, &out->layers, model, "static", calibration,
                                  "algorithm=percentile:p=99.9 passes=smooth_quant:alpha=0.4"));
    OK(tare_model_convert(&made, &out->report, model, converter, calibration, 0));
    REFUSED(tare_model_quantize(NULL, model, "static", calibration, "algorithm=percentile:p=0.25"), TARE_ERROR_USAGE,
            "from 50 to 100");
    out->error = strdup(tare_error_text());
    tare_model_close(made);
    tare_calibration_close(calibration);
    tare_model_close(model);
}

static void check_equal(char *point, char *comma) {
    assert_non_null(strstr(point, "."));
    assert_string_equal(point, comma);
    tare_text_free(point);
    tare_text_free(comma);
}

static void check_same(struct texts *point, struct texts *comma) {
    check_equal(point->described, comma->described);
    check_equal(point->ranges, comma->ranges);
    check_equal(point->page, comma->page);
    check_equal(point->layers, comma->layers);
    check_equal(point->report, comma->report);
    assert_string_equal(point->error, comma->error);
    free(point->error);
    free(comma->error);
}

static void texts__are_the_same_with_a_decimal_comma(void **state) {
    struct texts point, comma;
    (void)state;
    make_texts(&point);
    use_comma();
    make_texts(&comma);
    setlocale(LC_ALL, "C");
    check_same(&point, &comma);
}

/* As in Pashto. */
static void texts__are_the_same_with_a_decimal_point_of_two_bytes(void **state) {
    struct texts point, other;
    (void)state;
    make_texts(&point);
    build_locale("pashto", "<U066B>");
    assert_non_null(setlocale(LC_ALL, "pashto"));
    check_point("\xd9\xab");
    make_texts(&other);
    setlocale(LC_ALL, "C");
    check_same(&point, &other);
}

/* A locale of one thread, and what it made. */
struct in_thread {
    locale_t locale;
    struct texts texts;
};

/* As setlocale, but of one thread, whose calls start workers in the locale of the process. */
static void *make_in_thread(void *arg) {
    struct in_thread *t = arg;
    const locale_t before = uselocale(t->locale);
    check_locale();
    make_texts(&t->texts);
    check_locale();
    uselocale(before);
    return NULL;
}

static void texts__are_the_same_in_a_thread_with_a_locale_of_its_own(void **state) {
    struct texts point;
    struct in_thread comma;
    pthread_t thread;
    (void)state;
    make_texts(&point);
    use_comma();
    comma.locale = duplocale(LC_GLOBAL_LOCALE); /* newlocale leaks the path of locales */
    setlocale(LC_ALL, "C");
    assert_int_equal(pthread_create(&thread, NULL, make_in_thread, &comma), 0);
    pthread_join(thread, NULL);
    freelocale(comma.locale);
    check_same(&point, &comma.texts);
}

/* In a locale without the pair I and i, the column would be text. */
static void letters__are_those_of_ascii(void **state) {
    static const char table[] = "high\n0.5\nINF\n", spec[] = "input { name: \"high\" shape: 1 type: FLOAT32 }";
    const char *path = temp_file("table.CSV", table, sizeof table - 1);
    tare_reader *reader;
    const tare_array *arrays;
    size_t count;
    (void)state;
    use_comma();
    OK(tare_reader_open(&reader, NULL, &path, 1, temp_file("high.spec", spec, sizeof spec - 1)));
    for (int i = 0; i < 2; i++) {
        OK(tare_reader_next(reader, &arrays, &count));
        assert_int_equal(count, 1);
        assert_true(*(const float *)arrays[0].data == (i ? INFINITY : 0.5f));
    }
    tare_reader_close(reader);
    setlocale(LC_ALL, "C");
}

/* Every line has as many cells as the first one. */
static void check_cells(const char *csv) {
    size_t expected = 0;
    for (const char *line = csv; *line; line += strcspn(line, "\n") + 1) {
        size_t cells = 1;
        for (const char *at = line; *at && *at != '\n'; at++)
            cells += *at == ',';
        if (!expected) expected = cells;
        if (cells != expected) print_error("%.*s\n", (int)strcspn(line, "\n"), line);
        assert_int_equal(cells, expected);
    }
    assert_true(expected > 5);
}

static void check_no_comma(const char *text) {
    for (const char *at = text; (at = strchr(at, ',')); at++)
        if (at > text && at[-1] >= '0' && at[-1] <= '9' && at[1] >= '0' && at[1] <= '9') fail_msg("%.40s", at - 1);
}

static void comparison__has_points_with_a_decimal_comma(void **state) {
    const tare_comparison_task task = { .struct_size = sizeof task,
                                        .paths = &records,
                                        .n_paths = 1,
                                        .options = "methods=dynamic,weight_only limit=10 max-drop=0.5" };
    tare_model *model;
    tare_comparison *comparison;
    char *text;
    (void)state;
    use_comma();
    model = open_glyphs();
    OK(tare_comparison_open(&comparison, model, &task));
    OK(tare_comparison_report(&text, comparison, TARE_COMPARISON_CSV));
    check_cells(text);
    tare_text_free(text);
    OK(tare_comparison_report(&text, comparison, TARE_COMPARISON_TEXT));
    check_no_comma(text);
    tare_text_free(text);
    tare_comparison_close(comparison);
    tare_model_close(model);
    setlocale(LC_ALL, "C");
}

static const char *write_report(const char *name, const char *methods) {
    const tare_comparison_task task = {
        .struct_size = sizeof task, .paths = &records, .n_paths = 1, .options = methods
    };
    tare_model *model = open_glyphs();
    tare_comparison *comparison;
    char *text;
    OK(tare_comparison_open(&comparison, model, &task));
    OK(tare_comparison_report(&text, comparison, TARE_COMPARISON_JSON));
    const char *path = temp_file(name, text, strlen(text));
    tare_text_free(text);
    tare_comparison_close(comparison);
    tare_model_close(model);
    return path;
}

static void reports__are_read_with_any_decimal_point(void **state) {
    const char *first = write_report("first.json", "methods=dynamic limit=10");
    const char *second = write_report("second.json", "methods=dynamic limit=20");
    static const char *const points[][2] = { { "comma", "," }, { "pashto", "<U066B>" } };
    tare_context *context;
    char *expected, *text;
    (void)state;
    OK(tare_context_open(&context));
    OK(tare_diff(&expected, context, first, second, ""));
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        build_locale(points[i][0], points[i][1]);
        assert_non_null(setlocale(LC_ALL, points[i][0]));
        OK(tare_diff(&text, context, first, second, ""));
        setlocale(LC_ALL, "C");
        assert_string_equal(text, expected);
        tare_text_free(text);
    }
    tare_text_free(expected);
    tare_context_close(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts__are_the_same_with_a_decimal_comma),
        cmocka_unit_test(texts__are_the_same_with_a_decimal_point_of_two_bytes),
        cmocka_unit_test(reports__are_read_with_any_decimal_point),
        cmocka_unit_test(texts__are_the_same_in_a_thread_with_a_locale_of_its_own),
        cmocka_unit_test(letters__are_those_of_ascii),
        cmocka_unit_test(comparison__has_points_with_a_decimal_comma),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
