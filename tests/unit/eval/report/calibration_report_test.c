/* The report of a calibration: text, JSON and page say the same, and the page stands alone. */
#include "eval/report/calibration_report.h"

#include "base/alloc.h"
#include "base/strbuf.h"
#include "calib/format/file.h"
#include "calib/hash.h"
#include "calib/tally.h"
#include "eval/report/page.h"
#include "support/draw.h"

#include <jansson.h>
#include <math.h>
#include <regex.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

enum { RECORDS = 40, WIDTH = 500 };
static const uint64_t fingerprint[2] = { 0xabc, 0x123 };
static const struct tare_calibration_report_options all_of_it = { .tensors = NULL };

static void see(struct tare_calibration *c, struct tare_tally *tally, const char *function, const char *node,
                int64_t record, float *values) {
    struct tare_calibration_tensor *tensor;
    const struct tare_place place = { record % 2 ? 1 : 0, record / 2, record };
    struct tare_shape shape = tare_shape_make(2, WIDTH / 5, 5);
    struct tare_tensor value;
    assert_int_equal(tare_calibration_add_tensor(c, function, node, 0, &tensor), TARE_OK);
    assert_int_equal(tare_tensor_wrap(&value, TARE_DT_FLOAT, &shape, values, NULL, NULL), TARE_OK);
    assert_int_equal(tare_statistics_add(&tensor->statistics, tally, &value, &place, 1, TARE_BATCH_SPLIT), TARE_OK);
    tare_tensor_reset(&value);
}

/* Tensors of every distribution; a NaN in record 17 of the second file; a branch that nothing took; a name with markup.
 */
static struct tare_calibration *make(void) {
    struct tare_calibration *c = tare_calibration_new(fingerprint, "observe=quantizable", true);
    struct tare_tally *tally = tare_tally_new();
    struct tare_calibration_function *function;
    float values[WIDTH];
    assert_non_null(c);
    assert_non_null(tally);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tare_calibration_add_input(c, "serving_default", i ? "b.tfrecord" : "a.tfrecord", NULL),
                         TARE_OK);
        assert_int_equal(tare_record_set_add(&c->inputs[i].records, 0, RECORDS / 2), TARE_OK);
    }
    for (int64_t r = 0; r < RECORDS; r++) {
        for (int kind = 0; kind < DRAW_KINDS; kind++) {
            draw_fill(values, WIDTH, (enum draw_kind)kind, (uint64_t)(1000 * kind + r));
            if (kind == DRAW_NORMAL && r == 35) values[3] = NAN;
            see(c, tally, kind == DRAW_RELU ? "fn" : "", draw_name((enum draw_kind)kind), r, values);
        }
        memset(values, 0, sizeof values);
        see(c, tally, "", "<b>&zero\"s</b>", r, values);
    }
    assert_int_equal(tare_calibration_add_tensor(c, "f_else", "conv", 0, NULL), TARE_OK);
    assert_int_equal(tare_calibration_add_function(c, "fn", &function), TARE_OK);
    function->records = RECORDS;
    assert_int_equal(tare_calibration_add_function(c, "f_else", NULL), TARE_OK);
    assert_int_equal(tare_coverage_add(&c->coverage, "", "cond", "If", 0, "fn"), TARE_OK);
    assert_int_equal(tare_coverage_add(&c->coverage, "", "cond", "If", 1, "f_else"), TARE_OK);
    tare_coverage_count(&c->coverage, "", "cond", 0, RECORDS);
    tare_tally_free(tally);
    return c;
}

struct shown {
    struct tare_calibration *calibration;
    struct tare_calibration_report report;
    struct tare_strbuf text, json, html;
    json_t *root;
};

static struct shown show(const struct tare_calibration_report_options *options) {
    struct shown s = { .calibration = make() };
    assert_int_equal(tare_calibration_report_make(&s.report, s.calibration, "my.calib", options), TARE_OK);
    tare_calibration_report_text(&s.text, &s.report, false);
    assert_int_equal(tare_calibration_report_json(&s.json, &s.report), TARE_OK);
    tare_calibration_report_html(&s.html, &s.report);
    s.root = json_loads(tare_strbuf_text(&s.json), 0, NULL);
    assert_non_null(s.root);
    return s;
}

static void end(struct shown *s) {
    json_decref(s->root);
    tare_strbuf_free(&s->text);
    tare_strbuf_free(&s->json);
    tare_strbuf_free(&s->html);
    tare_calibration_report_free(&s->report);
    tare_calibration_free(s->calibration);
}

static double real(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    if (json_is_null(value) && strcmp(key, "sqnr_db") == 0) return HUGE_VAL;
    if (!json_is_number(value)) fail_msg("no number '%s'", key);
    return json_number_value(value);
}

static const json_t *tensor_of(const struct shown *s, const char *node) {
    size_t i;
    json_t *tensor;
    json_array_foreach(json_object_get(s->root, "tensors"), i, tensor) {
        if (strcmp(json_string_value(json_object_get(tensor, "node")), node) == 0) return tensor;
    }
    fail_msg("no tensor '%s'", node);
    return NULL;
}

/* The text of the page without its tags, "|" for each of them. */
static struct tare_strbuf plain_text(const struct tare_strbuf *html) {
    struct tare_strbuf text = { 0 };
    bool in_tag = false;
    for (const char *at = strstr(tare_strbuf_text(html), "<body>"); *at; at++) {
        if (*at == '<') tare_strbuf_putc(&text, '|');
        in_tag = *at == '<' || (in_tag && *at != '>');
        if (!in_tag && *at != '>' && *at != '\n') tare_strbuf_putc(&text, *at);
    }
    return text;
}

static const char *after(const char *from, const char *expected) {
    const char *at = strstr(from, expected);
    if (!at) fail_msg("no '%s' after: %.200s", expected, from);
    return at + strlen(expected);
}

static void page__has_the_numbers_of_the_json(void **state) {
    (void)state;
    struct shown s = show(&all_of_it);
    struct tare_strbuf page = plain_text(&s.html);
    const char *at = after(tare_strbuf_text(&page), "|Histograms and ranges|");
    size_t i, k, rows = 0;
    json_t *tensor, *range;
    json_array_foreach(json_object_get(s.root, "tensors"), i, tensor) {
        char cell[128];
        struct tare_strbuf name = { 0 };
        const char *function = json_string_value(json_object_get(tensor, "function"));
        if (!json_object_get(tensor, "ranges")) continue;
        tare_strbuf_putc(&name, '|');
        tare_page_printf(&name, "%s%s%s:0", function, *function ? "/" : "",
                         json_string_value(json_object_get(tensor, "node")));
        tare_strbuf_putc(&name, '|');
        at = after(at, tare_strbuf_text(&name));
        tare_strbuf_free(&name);
        json_array_foreach(json_object_get(tensor, "ranges"), k, range) {
            snprintf(cell, sizeof cell, "|%s||", json_string_value(json_object_get(range, "algorithm")));
            at = after(at, cell);
            char sqnr[32];
            snprintf(sqnr, sizeof sqnr, "%.2f", real(range, "sqnr_db"));
            snprintf(cell, sizeof cell, "%s||%.5g||%.5g||%.3g%%|", isinf(real(range, "sqnr_db")) ? "exact" : sqnr,
                     real(range, "low"), real(range, "high"), 100 * real(range, "clipped"));
            if (strncmp(at, cell, strlen(cell)) != 0)
                fail_msg("range %zu of tensor %zu: the page has '%.60s' (JSON has '%s')", k, i, at, cell);
            rows++;
        }
    }
    assert_int_equal(rows, 6 * (DRAW_KINDS + 1));
    tare_strbuf_free(&page);
    end(&s);
}

static void text__has_the_numbers_of_the_json(void **state) {
    (void)state;
    struct shown s = show(&all_of_it);
    const char *at = after(tare_strbuf_text(&s.text), "Ranges on the int8 grid (asymmetric)");
    size_t i, k;
    json_t *tensor, *range;
    json_array_foreach(json_object_get(s.root, "tensors"), i, tensor) {
        json_array_foreach(json_object_get(tensor, "ranges"), k, range) {
            char algorithm[64], low[32], high[32], scale[32], zero_point[32], clipped[32], sqnr[32], expected[32];
            const char *line = strstr(at, json_string_value(json_object_get(range, "algorithm")));
            assert_non_null(line);
            assert_int_equal(sscanf(line, "%63s %31s %31s %31s %31s %31s %31s", algorithm, low, high, scale, zero_point,
                                    clipped, sqnr),
                             7);
            snprintf(expected, sizeof expected, "%.5g", real(range, "low"));
            assert_string_equal(low, expected);
            snprintf(expected, sizeof expected, "%.5g", real(range, "high"));
            assert_string_equal(high, expected);
            snprintf(expected, sizeof expected, "%.5g", real(range, "scale"));
            assert_string_equal(scale, expected);
            snprintf(expected, sizeof expected, "%.0f", real(range, "zero_point"));
            assert_string_equal(zero_point, expected);
            snprintf(expected, sizeof expected, "%.2f", real(range, "sqnr_db"));
            assert_string_equal(sqnr, isinf(real(range, "sqnr_db")) ? "exact" : expected);
            at = strchr(line, '\n');
        }
    }
    end(&s);
}

static void page__marks_what_one_record_makes_wide_and_what_none_reached(void **state) {
    (void)state;
    struct shown s = show(&all_of_it);
    size_t i, marked = 0;
    json_t *tensor;
    json_array_foreach(json_object_get(s.root, "tensors"), i, tensor) {
        const json_t *without = json_object_get(tensor, "without");
        char note[128];
        if (!without) continue;
        snprintf(note, sizeof note,
                 "Record %.0f:%.0f alone sets this range; without it the values go from %.5g to %.5g.",
                 real(without, "input") + 1, real(without, "record"), real(without, "low"), real(without, "high"));
        bool is_marked = strstr(tare_strbuf_text(&s.html), note);
        assert_int_equal(is_marked, real(without, "share") <= tare_warning_outlier_share);
        marked += is_marked;
    }
    assert_true(marked > 0); /* the heavy-tailed one */
    assert_non_null(strstr(tare_strbuf_text(&s.html), "<td>never: 0</td>"));
    end(&s);
}

static void page__stands_alone(void **state) {
    (void)state;
    struct shown s = show(&all_of_it);
    regex_t outside;
    const char *const pattern =
        "(src|data|action|xmlns)=|href=\"[^#]|https?:|//|@import|url\\(|<script |<(link|img|iframe|object)";
    assert_int_equal(regcomp(&outside, pattern, REG_EXTENDED | REG_ICASE | REG_NOSUB), 0);
    assert_int_equal(regexec(&outside, tare_strbuf_text(&s.html), 0, NULL, 0), REG_NOMATCH);
    assert_null(strstr(tare_strbuf_text(&s.html), "<b>"));
    assert_non_null(strstr(tare_strbuf_text(&s.html), "<summary>&lt;b&gt;&amp;zero&quot;s&lt;/b&gt;:0</summary>"));
    regfree(&outside);
    end(&s);
}

/* Every element that is opened is closed, in order. */
static void page__is_well_formed(void **state) {
    (void)state;
    struct shown s = show(&all_of_it);
    char open[64][16];
    int depth = 0;
    for (const char *at = tare_strbuf_text(&s.html); (at = strchr(at, '<')); at++) {
        char name[16];
        const char *close = strchr(at, '>');
        bool ends = at[1] == '/';
        if (at[1] == '!' || !close || sscanf(at + 1 + ends, "%15[a-z0-9]", name) != 1) continue;
        if (strcmp(name, "meta") == 0 || close[-1] == '/') continue;
        if (ends) {
            assert_true(depth > 0);
            depth--;
            assert_string_equal(open[depth], name);
        } else {
            assert_true(depth < 64);
            snprintf(open[depth++], sizeof open[0], "%s", name);
        }
    }
    assert_int_equal(depth, 0);
    end(&s);
}

static void warnings__are_in_every_form(void **state) {
    (void)state;
    struct shown s = show(&all_of_it);
    size_t i;
    json_t *warning;
    const char *const kinds[] = { "unreached_side", "nan", "few_records", "constant" };
    int found = 0;
    json_array_foreach(json_object_get(s.root, "warnings"), i, warning) {
        const char *kind = json_string_value(json_object_get(warning, "kind"));
        for (int k = 0; k < 4; k++)
            found += strcmp(kind, kinds[k]) == 0;
        assert_non_null(strstr(tare_strbuf_text(&s.text), json_string_value(json_object_get(warning, "text"))));
        if (strcmp(kind, "nan") != 0) continue;
        assert_string_equal(json_string_value(json_object_get(warning, "text")),
                            "NaN in record 17 of 'b.tfrecord', the first in 1 tensor: 'normal:0'");
        assert_int_equal(json_integer_value(json_object_get(warning, "record")), 17);
        assert_int_equal(json_integer_value(json_object_get(warning, "input")), 1);
        assert_int_equal(json_array_size(json_object_get(warning, "tensors")), 1);
        assert_non_null(strstr(tare_strbuf_text(&s.html), "NaN in record 17 of &#39;b.tfrecord&#39;"));
    }
    assert_int_equal(found, 4);
    end(&s);
}

static void json__tells_what_the_statistics_have(void **state) {
    (void)state;
    struct shown s = show(&all_of_it);
    const json_t *heavy = tensor_of(&s, draw_name(DRAW_HEAVY)), *normal = tensor_of(&s, draw_name(DRAW_NORMAL));
    const struct tare_statistics *have =
        &tare_calibration_find(s.calibration, "", draw_name(DRAW_HEAVY), 0)->statistics;
    assert_true(real(json_object_get(heavy, "max"), "value") == (double)have->highest[0].value);
    assert_true(real(json_object_get(heavy, "max"), "record") == (double)have->highest[0].record);
    assert_true(real(heavy, "elements") == RECORDS * WIDTH);
    assert_true(real(normal, "nan") == 1);
    assert_true(real(json_object_get(normal, "first_nan"), "record") == 17);
    assert_int_equal(json_array_size(json_object_get(json_object_get(heavy, "channels"), "low")), 5);
    const json_t *points = json_object_get(heavy, "convergence");
    const json_t *last = json_array_get(points, json_array_size(points) - 1);
    assert_true(real(last, "records") == 64 && real(last, "share") == 1);
    assert_string_equal(json_string_value(json_object_get(s.root, "fingerprint")), "0000000000000abc0000000000000123");
    const json_t *sides = json_object_get(s.root, "branches");
    assert_string_equal(json_string_value(json_object_get(json_array_get(sides, 1), "side")), "else");
    assert_true(real(json_array_get(sides, 1), "records") == 0 && real(json_array_get(sides, 0), "records") == RECORDS);
    assert_null(json_object_get(tensor_of(&s, "conv"), "ranges"));
    end(&s);
}

static void json__escapes_names_that_are_no_utf8(void **state) {
    (void)state;
    struct tare_calibration *c = make();
    struct tare_calibration_report report;
    struct tare_strbuf text = { 0 };
    assert_int_equal(tare_calibration_add_input(c, "serving_default", "caf\351.tfrecord", NULL), TARE_OK);
    assert_int_equal(tare_calibration_report_make(&report, c, "", &all_of_it), TARE_OK);
    assert_int_equal(tare_calibration_report_json(&text, &report), TARE_OK);
    assert_non_null(strstr(tare_strbuf_text(&text), "\"file\": \"caf\\\\351.tfrecord\""));
    tare_strbuf_free(&text);
    tare_calibration_report_free(&report);
    tare_calibration_free(c);
}

static void options__choose_tensors_and_algorithms(void **state) {
    (void)state;
    struct shown s = show(&(struct tare_calibration_report_options){ .tensors = "^fn/|heav.*:0$",
                                                                     .algorithms = "percentile:p=99.9,min_max" });
    assert_int_equal(json_array_size(json_object_get(s.root, "tensors")), 2);
    const json_t *ranges = json_object_get(tensor_of(&s, draw_name(DRAW_HEAVY)), "ranges");
    assert_int_equal(json_array_size(ranges), 2);
    assert_string_equal(json_string_value(json_object_get(json_array_get(ranges, 0), "algorithm")),
                        "percentile:p=99.9");
    assert_non_null(strstr(tare_strbuf_text(&s.text), "40 records, 2 of 9 tensors"));
    assert_null(strstr(tare_strbuf_text(&s.html), "laplace"));
    end(&s);
    struct tare_calibration *c = make();
    struct tare_calibration_report report;
    const struct tare_calibration_report_options bad = { .tensors = "(" }, unknown = { .algorithms = "mean" };
    assert_int_equal(tare_calibration_report_make(&report, c, "", &bad), TARE_USAGE);
    assert_non_null(strstr(tare_error_text(), "bad regular expression '('"));
    tare_calibration_report_free(&report);
    assert_int_equal(tare_calibration_report_make(&report, c, "", &unknown), TARE_USAGE);
    tare_calibration_report_free(&report);
    tare_calibration_free(c);
}

static void colour__is_the_only_difference(void **state) {
    (void)state;
    struct shown s = show(&all_of_it);
    struct tare_strbuf coloured = { 0 }, plain = { 0 };
    tare_calibration_report_text(&coloured, &s.report, true);
    for (const char *at = tare_strbuf_text(&coloured); *at; at++) {
        if (*at == '\033')
            at = strchr(at, 'm');
        else
            tare_strbuf_putc(&plain, *at);
    }
    assert_true(coloured.size > plain.size);
    assert_string_equal(tare_strbuf_text(&plain), tare_strbuf_text(&s.text));
    tare_strbuf_free(&coloured);
    tare_strbuf_free(&plain);
    end(&s);
}

static void numbers__are_written_for_people(void **state) {
    (void)state;
    char text[TARE_CALIBRATION_NUMBER];
    assert_string_equal(tare_calibration_count_text(text, 0), "0");
    assert_string_equal(tare_calibration_count_text(text, 999), "999");
    assert_string_equal(tare_calibration_count_text(text, 1204224), "1,204,224");
    assert_string_equal(tare_calibration_count_text(text, INT64_MAX), "9,223,372,036,854,775,807");
    assert_string_equal(tare_calibration_value_text(text, -0.0), "0");
    assert_string_equal(tare_calibration_value_text(text, 1.0 / 3), "0.33333");
    assert_string_equal(tare_calibration_sqnr_text(text, HUGE_VAL), "exact");
    assert_string_equal(tare_calibration_share_text(text, 0.00013), "0.013%");
}

/* Every allocation fails once: a status or a failed buffer says so, and nothing leaks (which the sanitizers see). */
static void report__survives_every_failing_allocation(void **state) {
    (void)state;
    const struct tare_calibration_report_options few = { .algorithms = "min_max,percentile:p=99", .tensors = "e" };
    struct tare_calibration *c = make();
    struct tare_strbuf whole = { 0 };
    for (int64_t n = 0;; n++) {
        struct tare_calibration_report report;
        struct tare_strbuf text = { 0 };
        tare_error_clear();
        tare_alloc_fail_at(n); /* 0: none, for what is expected */
        tare_status status = tare_calibration_report_make(&report, c, "my.calib", &few);
        if (status == TARE_OK) tare_calibration_report_text(&text, &report, false);
        if (status == TARE_OK) status = tare_calibration_report_json(&text, &report);
        if (status == TARE_OK) tare_calibration_report_html(&text, &report);
        int64_t allocations = tare_alloc_count();
        tare_alloc_fail_at(0);
        tare_calibration_report_free(&report);
        bool done = n > 0 && allocations < n;
        if (n == 0) {
            assert_int_equal(status, TARE_OK);
            whole = text;
            continue;
        }
        if (!done && status == TARE_OK && !text.failed) fail_msg("allocation %d failed and nobody said so", (int)n);
        if (status != TARE_OK) assert_string_not_equal(tare_error_text(), "");
        if (done) assert_string_equal(tare_strbuf_text(&text), tare_strbuf_text(&whole));
        tare_strbuf_free(&text);
        if (done) break;
    }
    tare_strbuf_free(&whole);
    tare_calibration_free(c);
}

/* Bytes changed, and the checksum made to fit. */
static void forge(struct tare_strbuf *bytes, const struct tare_strbuf *good, uint64_t *seed) {
    struct tare_hash hash;
    uint64_t sum[2];
    size_t body = good->size - 8;
    tare_strbuf_append(bytes, good->data, good->size);
    for (uint64_t changes = 1 + draw_bits(seed) % 3; changes > 0; changes--)
        bytes->data[9 + draw_bits(seed) % (body - 9)] = (char)(draw_bits(seed) % 3 ? draw_bits(seed) : 0xff);
    tare_hash_begin(&hash);
    tare_hash_add(&hash, bytes->data, body);
    tare_hash_end(&hash, sum);
    for (int i = 0; i < 8; i++)
        bytes->data[body + (size_t)i] = (char)(sum[0] >> (8 * i));
}

/* What a forged file says may be wrong, but it is shown. */
static void report__shows_any_calibration_that_can_be_read(void **state) {
    (void)state;
    const struct tare_calibration_report_options options = { .algorithms =
                                                                 "min_max,average_min_max,percentile,mse_symmetric" };
    struct tare_calibration *c = make(), *read;
    struct tare_strbuf good = { 0 };
    uint64_t seed = 5;
    int shown = 0;
    /* Two tensors are enough, and leave most of the bytes to what is not a histogram. */
    while (c->n_tensors > 2) {
        struct tare_calibration_tensor *last = c->tensors[--c->n_tensors];
        tare_statistics_reset(&last->statistics);
        tare_free(last->function);
        tare_free(last->node);
        tare_free(last);
    }
    assert_int_equal(tare_calibration_encode(&good, c), TARE_OK);
    for (int turn = 0; turn < 2000; turn++) {
        struct tare_strbuf bytes = { 0 }, text = { 0 };
        struct tare_calibration_report report;
        forge(&bytes, &good, &seed);
        if (tare_calibration_decode(&read, bytes.data, bytes.size) == TARE_OK) {
            assert_int_equal(tare_calibration_report_make(&report, read, "forged", &options), TARE_OK);
            tare_calibration_report_text(&text, &report, true);
            size_t start = text.size;
            assert_int_equal(tare_calibration_report_json(&text, &report), TARE_OK);
            json_t *root = json_loads(tare_strbuf_text(&text) + start, 0, NULL);
            assert_true(json_object_size(root) == 12 && json_is_string(json_object_get(root, "settings")));
            json_decref(root);
            tare_calibration_report_html(&text, &report);
            assert_false(text.failed);
            tare_calibration_report_free(&report);
            tare_calibration_free(read);
            shown++;
        }
        tare_strbuf_free(&text);
        tare_strbuf_free(&bytes);
    }
    assert_true(shown > 100);
    tare_strbuf_free(&good);
    tare_calibration_free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(page__has_the_numbers_of_the_json),
        cmocka_unit_test(text__has_the_numbers_of_the_json),
        cmocka_unit_test(page__marks_what_one_record_makes_wide_and_what_none_reached),
        cmocka_unit_test(page__stands_alone),
        cmocka_unit_test(page__is_well_formed),
        cmocka_unit_test(warnings__are_in_every_form),
        cmocka_unit_test(json__tells_what_the_statistics_have),
        cmocka_unit_test(json__escapes_names_that_are_no_utf8),
        cmocka_unit_test(options__choose_tensors_and_algorithms),
        cmocka_unit_test(colour__is_the_only_difference),
        cmocka_unit_test(numbers__are_written_for_people),
        cmocka_unit_test(report__shows_any_calibration_that_can_be_read),
        cmocka_unit_test(report__survives_every_failing_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
