/* Option rows: parsing, messages, help, nearest names. */
#include "base/option.h"
#include "base/strbuf.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

struct values {
    bool json, color;
    const char *output;
    int threads;
    int64_t limit, seed, skip, step;
    double p;
    int method;
    struct tare_option_list data;
    const char *model;
    struct tare_option_list rest;
};

#define AT(member) offsetof(struct values, member)
static const char *const methods[] = { "static", "dynamic", "weight_only", NULL };
static const struct tare_option rows[] = {
    { .name = "json", .offset = AT(json), .help = "print JSON" },
    { .name = "color", .offset = AT(color), .fallback = "true", .help = "use colors" },
    { .name = "output",
      .letter = 'o',
      .kind = TARE_OPTION_STRING,
      .offset = AT(output),
      .placeholder = "FILE",
      .help = "where the result goes, which can be a rather long explanation that has to be wrapped",
      .flags = TARE_OPTION_REQUIRED },
    { .name = "threads",
      .letter = 't',
      .kind = TARE_OPTION_INT,
      .offset = AT(threads),
      .fallback = "2",
      .min = 1,
      .max = 64,
      .help = "worker threads" },
    { .name = "limit", .kind = TARE_OPTION_INT64, .offset = AT(limit), .help = "records to read" },
    { .name = "seed",
      .kind = TARE_OPTION_INT64,
      .offset = AT(seed),
      .needs = "limit elsewhere",
      .flags = TARE_OPTION_HIDDEN },
    { .name = "skip",
      .kind = TARE_OPTION_INT64,
      .offset = AT(skip),
      .needs = "limit seed",
      .flags = TARE_OPTION_HIDDEN },
    { .name = "step",
      .kind = TARE_OPTION_INT64,
      .offset = AT(step),
      .needs = "elsewhere",
      .flags = TARE_OPTION_HIDDEN },
    { .name = "percentile",
      .kind = TARE_OPTION_DOUBLE,
      .offset = AT(p),
      .fallback = "99.9",
      .max = 100,
      .help = "share of values kept" },
    { .name = "quantization_method",
      .kind = TARE_OPTION_CHOICE,
      .offset = AT(method),
      .choices = methods,
      .fallback = "dynamic",
      .help = "method" },
    { .name = "data", .kind = TARE_OPTION_LIST, .offset = AT(data), .fallback = "default", .help = "input" },
    { 0 },
};
static const struct tare_argument arguments[] = {
    { .name = "MODEL", .offset = AT(model), .help = "folder of the model", .flags = TARE_OPTION_REQUIRED },
    { .name = "FILE", .offset = AT(rest), .help = "more files", .flags = TARE_OPTION_REPEATABLE },
    { 0 },
};
static const char *const examples[] = { "tare test m -o x", NULL };
static const struct tare_option_set set = { "tare test", "Does a test.", rows, arguments, examples };

static struct values values;
static struct tare_option_outcome outcome;

static tare_status parse(const char *line) {
    static char text[512];
    static char *argv[32];
    int argc = 0;
    tare_options_free(&values, &set);
    snprintf(text, sizeof text, "%s", line);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    return tare_options_parse(&values, &outcome, &set, argc, argv);
}

static void assert_usage_error(const char *line, const char *text) {
    assert_int_equal(parse(line), TARE_USAGE);
    assert_string_equal(tare_error_text(), text);
}

static void parse__takes_all_forms(void **state) {
    (void)state;
    assert_int_equal(parse("--json m --limit=7 -o out -t8 --quantization-method weight_only --data a --data=b f g"),
                     TARE_OK);
    assert_true(values.json && values.color);
    assert_string_equal(values.model, "m");
    assert_string_equal(values.output, "out");
    assert_int_equal(values.limit, 7);
    assert_int_equal(values.threads, 8);
    assert_int_equal(values.method, 2);
    assert_int_equal(values.data.count, 2);
    assert_string_equal(values.data.items[1], "b");
    assert_int_equal(values.rest.count, 2);
    assert_true(tare_option_was_given(&set, &outcome, "limit"));
    assert_false(tare_option_was_given(&set, &outcome, "percentile"));
}

static void parse__sets_defaults(void **state) {
    (void)state;
    assert_int_equal(parse("-o - m"), TARE_OK);
    assert_int_equal(values.threads, 2);
    assert_true(values.p == 99.9);
    assert_int_equal(values.method, 1);
    assert_string_equal(values.data.items[0], "default");
    assert_string_equal(values.output, "-");
    assert_int_equal(values.limit, 0);
}

static void parse__no_and_double_dash(void **state) {
    (void)state;
    assert_int_equal(parse("--no-color --no_json -o x -- --json -z"), TARE_OK);
    assert_false(values.color);
    assert_false(values.json);
    assert_string_equal(values.model, "--json");
    assert_string_equal(values.rest.items[0], "-z");
}

static void parse__says_what_is_wrong(void **state) {
    (void)state;
    assert_usage_error("m --thread=3", "unknown option '--thread' (did you mean '--threads'?)");
    assert_usage_error("m --zzzzzz", "unknown option '--zzzzzz'");
    assert_usage_error("m -q", "unknown option '-q'");
    assert_usage_error("m -o", "option '--output' needs a value");
    assert_usage_error("m -o --json",
                       "option '--output' needs a value (got '--json'; write --output=--json if that is the value)");
    assert_usage_error("m -o x --threads=0", "option '--threads': invalid value (expected 1 to 64, got '0')");
    assert_usage_error("m -o x --threads=3x", "option '--threads': invalid value (expected an integer, got '3x')");
    assert_usage_error("m -o x --threads=99999999999",
                       "option '--threads': invalid value (expected an integer, got '99999999999')");
    assert_usage_error("m -o x --percentile=nan",
                       "option '--percentile': invalid value (expected a number, got 'nan')");
    assert_usage_error(
        "m -o x --quantization_method=q",
        "option '--quantization_method': invalid value (expected static, dynamic or weight_only, got 'q')");
    assert_usage_error("-o x", "missing argument MODEL");
    assert_usage_error("m", "missing option '--output'");
}

static void parse__an_option_without_effect_is_an_error(void **state) {
    (void)state;
    assert_usage_error("m -o x --seed=1", "option '--seed' has no effect without --limit");
    assert_usage_error("m -o x --skip=1", "option '--skip' has no effect without --limit or --seed");
    assert_int_equal(parse("m -o x --seed=1 --limit=2"), TARE_OK);
    assert_int_equal(parse("m -o x --limit=2 --skip=1"), TARE_OK);
    assert_int_equal(parse("m -o x --step=1"), TARE_OK); /* the set has no such option */
}

static void parse__help_needs_nothing_else(void **state) {
    (void)state;
    assert_int_equal(parse("--help"), TARE_OK);
    assert_true(outcome.help);
    assert_int_equal(parse("m -h --nonsense"), TARE_OK);
    assert_true(outcome.help);
}

static void help__shows_the_rows(void **state) {
    struct tare_strbuf out = { 0 };
    (void)state;
    tare_options_help(&out, &set, NULL);
    assert_string_equal(tare_strbuf_text(&out),
                        "Usage: tare test [options] --output=FILE MODEL [FILE…]\n"
                        "\n"
                        "Does a test.\n"
                        "\n"
                        "Arguments:\n"
                        "  MODEL               folder of the model\n"
                        "  FILE                more files\n"
                        "\n"
                        "Options:\n"
                        "      --json          print JSON\n"
                        "      --[no-]color    use colors (default: on)\n"
                        "  -o, --output FILE   where the result goes, which can be a rather long\n"
                        "                      explanation that has to be wrapped (required)\n"
                        "  -t, --threads N     worker threads (default: 2)\n"
                        "      --limit N       records to read\n"
                        "      --percentile X  share of values kept (default: 99.9)\n"
                        "      --quantization_method NAME\n"
                        "                      method: static, dynamic or weight_only (default: dynamic)\n"
                        "      --data TEXT     input (may be repeated)\n"
                        "  -h, --help          show this help\n"
                        "\n"
                        "Examples:\n"
                        "  tare test m -o x\n");
    tare_strbuf_free(&out);
}

/* Rows in the order of the headings; what no heading has comes first; a heading without rows is left out. */
static void help__has_headings_for_many_options(void **state) {
    static const struct tare_option many[] = {
        { .name = "a1" }, { .name = "b1" },
        { .name = "a2" }, { .name = "c1" },
        { .name = "c2" }, { .name = "c3" },
        { .name = "c4" }, { .name = "c5" },
        { .name = "c6" }, { .name = "c7" },
        { .name = "c8" }, { .name = "c9" },
        { .name = "x" },  { 0 },
    };
    static const struct tare_option_heading headings[] = {
        { "Second", "a2 a1" }, { "None", "a" }, { "Third", "b1" }, { "Last", "c1 c2 c3 c4 c5 c6 c7 c8 c9" }, { 0 }
    };
    const struct tare_option_set large = { .program = "tare test", .options = many };
    struct tare_strbuf out = { 0 };
    (void)state;
    tare_options_help(&out, &large, headings);
    assert_string_equal(tare_strbuf_text(&out), "Usage: tare test [options]\n"
                                                "\nOptions:\n      --x     \n"
                                                "\nSecond:\n      --a2    \n      --a1    \n"
                                                "\nThird:\n      --b1    \n"
                                                "\nLast:\n      --c1    \n      --c2    \n      --c3    \n"
                                                "      --c4    \n      --c5    \n      --c6    \n      --c7    \n"
                                                "      --c8    \n      --c9    \n  -h, --help  show this help\n");
    tare_strbuf_free(&out);
}

static void distance__counts_edits(void **state) {
    (void)state;
    assert_int_equal(tare_edit_distance("", ""), 0);
    assert_int_equal(tare_edit_distance("abc", ""), 3);
    assert_int_equal(tare_edit_distance("kitten", "sitting"), 3);
    assert_int_equal(tare_edit_distance("limit", "limti"), 1);
    assert_int_equal(tare_edit_distance("ca", "abc"), 3);
}

static void nearest__gives_up_on_far_names(void **state) {
    static const char *const names[] = { "serve", "serving_default", NULL };
    (void)state;
    assert_string_equal(tare_nearest_name("serving_defualt", names), "serving_default");
    assert_null(tare_nearest_name("predict", names));
}

/* ---- groups: tables within tables ---- */

struct inner {
    int bits;
    bool symmetric;
};
struct middle {
    struct inner layers;
    const char *algorithm;
};
struct outer {
    bool json;
    struct middle how;
    struct tare_option_list data;
};

static const char *const bit_widths[] = { "4", "8", NULL };
static const struct tare_option inner_rows[] = {
    { .name = "bits",
      .kind = TARE_OPTION_INT,
      .offset = offsetof(struct inner, bits),
      .fallback = "8",
      .choices = bit_widths,
      .help = "bit width" },
    { .name = "symmetric", .offset = offsetof(struct inner, symmetric), .help = "use symmetric ranges" },
    { 0 },
};
static const struct tare_option middle_rows[] = {
    TARE_OPTION_NESTED(struct middle, layers, inner_rows),
    { .name = "algorithm",
      .kind = TARE_OPTION_STRING,
      .offset = offsetof(struct middle, algorithm),
      .fallback = "min_max",
      .help = "calibration algorithm" },
    { 0 },
};
static const struct tare_option outer_rows[] = {
    { .name = "json", .offset = offsetof(struct outer, json), .help = "print JSON" },
    TARE_OPTION_NESTED(struct outer, how, middle_rows),
    { .name = "data", .kind = TARE_OPTION_LIST, .offset = offsetof(struct outer, data), .help = "input" },
    { 0 },
};
static const struct tare_option_set outer_set = { .program = "tare nested", .options = outer_rows };

static void groups__are_walked_in_order_with_their_offsets(void **state) {
    static const struct {
        const char *name;
        size_t offset;
    } expected[] = { { "json", offsetof(struct outer, json) },
                     { "bits", offsetof(struct outer, how.layers.bits) },
                     { "symmetric", offsetof(struct outer, how.layers.symmetric) },
                     { "algorithm", offsetof(struct outer, how.algorithm) },
                     { "data", offsetof(struct outer, data) } };
    struct tare_option_walk walk = tare_option_walk(outer_rows);
    const struct tare_option *row;
    size_t count = 0;
    (void)state;
    for (; (row = tare_option_next(&walk)); count++) {
        assert_true(count < 5);
        assert_string_equal(row->name, expected[count].name);
        assert_int_equal(walk.offset, expected[count].offset);
        assert_int_equal(walk.index, count);
    }
    assert_int_equal(count, 5);
    assert_null(tare_option_next(&walk));
}

static void groups__are_parsed_like_other_rows(void **state) {
    char *argv[] = { "--bits=4", "--symmetric", "--data", "a", "--data", "b", "--json" };
    struct tare_option_outcome met;
    struct outer v;
    (void)state;
    assert_int_equal(tare_options_parse(&v, &met, &outer_set, 7, argv), TARE_OK);
    assert_int_equal(v.how.layers.bits, 4);
    assert_true(v.how.layers.symmetric && v.json);
    assert_string_equal(v.how.algorithm, "min_max");
    assert_int_equal(v.data.count, 2);
    assert_true(tare_option_was_given(&outer_set, &met, "symmetric"));
    assert_false(tare_option_was_given(&outer_set, &met, "algorithm"));
    tare_options_free(&v, &outer_set);
    assert_null(v.data.items);
}

static void integers__accept_their_choices_alone(void **state) {
    char *wrong[] = { "--bits=3" }, *near[] = { "--symmetrc" };
    struct tare_option_outcome met;
    struct outer v;
    (void)state;
    assert_int_equal(tare_options_parse(&v, &met, &outer_set, 1, wrong), TARE_USAGE);
    assert_string_equal(tare_error_text(), "option '--bits': invalid value (expected 4 or 8, got '3')");
    assert_int_equal(tare_options_parse(&v, &met, &outer_set, 1, near), TARE_USAGE);
    assert_non_null(strstr(tare_error_text(), "did you mean '--symmetric'?"));
}

static void help__shows_the_rows_of_groups(void **state) {
    struct tare_strbuf text = { 0 };
    (void)state;
    tare_options_help(&text, &outer_set, NULL);
    assert_non_null(strstr(tare_strbuf_text(&text), "--bits N          bit width: 4 or 8 (default: 8)\n"));
    assert_non_null(strstr(tare_strbuf_text(&text), "--algorithm TEXT  calibration algorithm (default: min_max)\n"));
    tare_strbuf_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups__are_walked_in_order_with_their_offsets),
        cmocka_unit_test(groups__are_parsed_like_other_rows),
        cmocka_unit_test(integers__accept_their_choices_alone),
        cmocka_unit_test(help__shows_the_rows_of_groups),
        cmocka_unit_test(parse__takes_all_forms),
        cmocka_unit_test(parse__sets_defaults),
        cmocka_unit_test(parse__no_and_double_dash),
        cmocka_unit_test(parse__says_what_is_wrong),
        cmocka_unit_test(parse__an_option_without_effect_is_an_error),
        cmocka_unit_test(parse__help_needs_nothing_else),
        cmocka_unit_test(help__shows_the_rows),
        cmocka_unit_test(help__has_headings_for_many_options),
        cmocka_unit_test(distance__counts_edits),
        cmocka_unit_test(nearest__gives_up_on_far_names),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tare_options_free(&values, &set);
    return failed;
}
