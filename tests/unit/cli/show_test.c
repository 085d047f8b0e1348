/* tare calibrate and tare show from end to end, on a model with an If that is made here: branches that no record takes,
 * a NaN by its record, an outlier. */
#include "base/alloc.h"
#include "base/file.h"
#include "convert/saved_model.h"
#include "datasets/sample.h"
#include "datasets/tfrecord.h"
#include "support/draw.h"
#include "support/mini_model.h"
#include "support/process.h"
#include "support/sample_file.h"
#include "support/temp.h"

#include <jansson.h>
#include <math.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WIDTH = 4, HIDDEN = 6, RECORDS = 220, NAN_RECORD = 17, LARGE_RECORD = 40 };
static char model_path[512], data_path[512], calibration_path[512];

/* ---- the model ---- */

static struct tare_edge weight(struct tare_graph *graph, const char *name, int rows, uint64_t seed) {
    struct tare_shape shape = tare_shape_make(2, rows, HIDDEN);
    struct tare_tensor value;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    draw_fill(value.data, (size_t)value.elements, DRAW_NORMAL, seed);
    struct tare_node *node = tare_graph_add_const(graph, name, &value);
    tare_tensor_reset(&value);
    assert_non_null(node);
    return (struct tare_edge){ node, 0 };
}

static void add_branch(struct tare_graph_model *model, const char *name, uint64_t seed) {
    struct tare_graph *function = tare_model_add_function(model, name);
    struct tare_edge v = mini_arg(function, "v", TARE_DT_FLOAT);
    mini_return(function, "r", mini_node(function, "MatMul", "dense", 2, v, weight(function, "w", HIDDEN, seed)));
}

/* dense, then one of two further products, by whether the greatest value is above a million. */
static void export_model(void) {
    static const int32_t axes[] = { 0, 1 };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    int type = TARE_DT_FLOAT;
    add_branch(model, "when_huge", 2);
    add_branch(model, "as_usual", 3);
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    struct tare_edge y = mini_node(g, "MatMul", "first", 2, x, weight(g, "w", WIDTH, 1));
    struct tare_edge top = mini_done(mini_open(g, "Max", "top", 2, y, mini_ints(g, "axes", 2, axes)));
    struct tare_edge huge = mini_node(g, "Greater", "is_huge", 2, top, mini_float(g, "limit", 1e6f));
    struct tare_node *choice = mini_open(g, "StatelessIf", "choice", 2, huge, y);
    mini_ok(tare_node_set_type_list(choice, "Tout", &type, 1));
    mini_ok(tare_node_set_func(choice, "then_branch", "when_huge"));
    mini_ok(tare_node_set_func(choice, "else_branch", "as_usual"));
    y = mini_done(choice);
    struct tare_signature *s = model->signatures = TARE_NEW(&model->arena, struct tare_signature);
    model->n_signatures = 1;
    s->key = "serving_default";
    s->method_name = "tensorflow/serving/predict";
    s->inputs = TARE_NEW(&model->arena, struct tare_binding);
    s->outputs = TARE_NEW(&model->arena, struct tare_binding);
    s->n_inputs = s->n_outputs = 1;
    *s->inputs =
        (struct tare_binding){ .key = "x", .dtype = TARE_DT_FLOAT, .shape = tare_shape_make(2, -1, WIDTH), .edge = x };
    *s->outputs = (struct tare_binding){ .key = "y", .dtype = TARE_DT_FLOAT, .shape = tare_shape_unknown(), .edge = y };
    mini_ok(tare_saved_model_export(model, model_path, NULL));
    tare_model_free(model);
}

static void write_records(void) {
    struct tare_tfrecord_writer *writer;
    mini_ok(tare_tfrecord_create(&writer, data_path));
    for (int r = 0; r < RECORDS; r++) {
        float values[WIDTH];
        struct tare_shape shape = tare_shape_make(2, 1, WIDTH);
        draw_fill(values, WIDTH, DRAW_TWO, (uint64_t)r); /* -1 and 3: no record stands out by itself */
        if (r == NAN_RECORD) values[2] = NAN;
        if (r == LARGE_RECORD) values[0] = 500;
        write_float_sample(writer, "x", &shape, values);
    }
    mini_ok(tare_tfrecord_commit(writer));
}

static struct process calibration; /* the run of tare calibrate */

static int set_up(void **state) {
    (void)state;
    snprintf(model_path, sizeof model_path, "%s", temp_path("model"));
    snprintf(data_path, sizeof data_path, "%s", temp_path("samples.tfrecord"));
    snprintf(calibration_path, sizeof calibration_path, "%s", temp_path("model.calib"));
    export_model();
    write_records();
    const char *const argv[] = { process_tare(), "calibrate", model_path,       "--data",
                                 data_path,      "-o",        calibration_path, NULL };
    process_run(&calibration, argv);
    return calibration.status;
}
static int tear_down(void **state) {
    (void)state;
    process_free(&calibration);
    return 0;
}

static struct process show(const char *option, const char *value) {
    const char *const argv[] = { process_tare(), "show", calibration_path, option, value, NULL };
    struct process process;
    process_run(&process, argv);
    return process;
}

/* ---- what is said ---- */

static const char *const expected[] = {
    "no record took the then of StatelessIf 'choice' (function 'when_huge'): its 2 observed tensors have no range",
    "NaN in record 17 of '%s', the first in",
    "record 40 of '%s' alone sets the range of",
};

static void assert_warnings(const char *text, const char *who) {
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        char line[1024];
        snprintf(line, sizeof line, expected[i], data_path);
        if (!strstr(text, line)) fail_msg("%s does not say '%s' but: %s", who, line, text);
    }
    if (strstr(text, "records of signature")) fail_msg("%s calls %d records few: %s", who, RECORDS, text);
    if (strstr(text, "took the else")) fail_msg("%s misses a branch that was taken: %s", who, text);
}

static void calibrate__warns_at_its_end(void **state) {
    (void)state;
    assert_warnings(calibration.err, "tare calibrate");
}

static void show__warns_as_calibrate_did(void **state) {
    (void)state;
    struct process process = show(NULL, NULL);
    assert_int_equal(process.status, 0);
    assert_warnings(process.out, "tare show");
    if (strchr(process.out, '\033')) fail_msg("colour without a terminal: %s", process.out);
    process_free(&process);
}

/* What `tare show` writes to a terminal with these settings (NULL: not set). */
static void show_on_terminal(char *out, size_t room, const char *terminal, const char *no_colour) {
    int master;
    size_t used = 0;
    pid_t child = forkpty(&master, NULL, NULL, NULL);
    if (child < 0) { /* a chroot without devpts */
        print_message("skipped: no pseudo terminal\n");
        skip();
    }
    if (child == 0) {
        unsetenv("NO_COLOR");
        if (no_colour) setenv("NO_COLOR", no_colour, 1);
        setenv("TERM", terminal, 1);
        execl(process_tare(), "tare", "show", calibration_path, (char *)NULL);
        _exit(127);
    }
    for (ssize_t size; used + 1 < room && (size = read(master, out + used, room - used - 1)) > 0;)
        used += (size_t)size;
    out[used] = '\0';
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    close(master);
    assert_int_equal(status, 0);
}

/* Whether there is a sequence that sets a color; "\033[K" clears a line. */
static bool has_colour(const char *text) {
    for (; (text = strstr(text, "\033[")); text += 2)
        if (text[2 + strspn(text + 2, "0123456789;")] == 'm') return true;
    return false;
}

static void show__has_colour_on_a_terminal_that_wants_it(void **state) {
    (void)state;
    static char text[1 << 20];
    const struct {
        const char *terminal, *no_colour;
        bool coloured;
    } cases[] = { { "xterm", NULL, true }, { "xterm", "1", false }, { "xterm", "", true }, { "dumb", NULL, false } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        show_on_terminal(text, sizeof text, cases[i].terminal, cases[i].no_colour);
        assert_non_null(strstr(text, "Ranges on the int8 grid"));
        if (has_colour(text) != cases[i].coloured)
            fail_msg("TERM=%s NO_COLOR=%s: %s", cases[i].terminal,
                     cases[i].no_colour ? cases[i].no_colour : "(not set)", cases[i].coloured ? "no colour" : "colour");
    }
}

static void show_json__has_branches_and_warnings(void **state) {
    (void)state;
    struct process process = show("--json", NULL);
    json_t *root = json_loads(process.out, 0, NULL);
    size_t i;
    json_t *side;
    assert_non_null(root);
    assert_int_equal(json_integer_value(json_object_get(root, "records")), RECORDS);
    const json_t *sides = json_object_get(root, "branches");
    assert_int_equal(json_array_size(sides), 2);
    json_array_foreach(sides, i, side) {
        assert_string_equal(json_string_value(json_object_get(side, "node")), "choice");
        assert_string_equal(json_string_value(json_object_get(side, "side")), i ? "else" : "then");
        assert_int_equal(json_integer_value(json_object_get(side, "records")), i ? RECORDS : 0);
    }
    const json_t *first = json_array_get(json_object_get(root, "warnings"), 0);
    assert_string_equal(json_string_value(json_object_get(first, "kind")), "unreached_side");
    json_decref(root);
    process_free(&process);
}

static void show_html__is_written_beside_the_tables(void **state) {
    (void)state;
    struct process process = show("--html", temp_path("page.html"));
    struct tare_mapping page = { 0 };
    assert_int_equal(process.status, 0);
    assert_non_null(strstr(process.out, "Ranges on the int8 grid"));
    mini_ok(tare_file_map(&page, temp_path("page.html")));
    assert_true(page.size > 1000 && memcmp(page.data, "<!doctype html>", 15) == 0);
    tare_file_unmap(&page);
    process_free(&process);
}

static void show__adds_files_up_as_merge_does(void **state) {
    (void)state;
    const char *const twice[] = { process_tare(), "show", calibration_path, calibration_path, NULL };
    struct process process;
    process_run(&process, twice);
    assert_int_equal(process.status, 1);
    if (!strstr(process.err, "is in both (is a shard given twice?)")) fail_msg("%s", process.err);
    process_free(&process);
}

static void show__says_what_is_wrong(void **state) {
    (void)state;
    const struct {
        const char *option, *value, *text;
        int status;
    } cases[] = {
        { "--tensor", "(", "bad regular expression '('", 2 },
        { "--tensor", "nothing_like_it", "no tensor name matches 'nothing_like_it'", 1 },
        { "--algorithms", "percentil", "did you mean 'percentile'?", 2 },
        { "--html", "/nowhere/at/all.html", "/nowhere/at", 1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct process process = show(cases[i].option, cases[i].value);
        if (process.status != cases[i].status || !strstr(process.err, cases[i].text))
            fail_msg("%s %s: status %d (expected %d): %s", cases[i].option, cases[i].value, process.status,
                     cases[i].status, process.err);
        assert_string_equal(process.out, "");
        process_free(&process);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calibrate__warns_at_its_end),
        cmocka_unit_test(show__warns_as_calibrate_did),
        cmocka_unit_test(show__has_colour_on_a_terminal_that_wants_it),
        cmocka_unit_test(show_json__has_branches_and_warnings),
        cmocka_unit_test(show_html__is_written_beside_the_tables),
        cmocka_unit_test(show__adds_files_up_as_merge_does),
        cmocka_unit_test(show__says_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
