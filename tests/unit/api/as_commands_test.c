/* tare_comparison_open, tare_model_diff, tare_diff, tare_model_export, tare_model_unwrap and tare_validate give the
 * bytes that the commands give, and refuse what they refuse. */
#include "include/tare/tare.h"

#include "support/api_check.h"
#include "support/folders.h"
#include "support/process.h"
#include "support/temp.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define MODULES TARE_SOURCE_DIR "/tests/golden/stablehlo/"

/* Runs `tare` with up to six arguments. */
static void command(struct process *process, const char *a, const char *b, const char *c, const char *d, const char *e,
                    const char *f) {
    const char *const argv[] = { process_tare(), a, b, c, d, e, f, NULL };
    process_run(process, argv);
}

static void check_printed(char *text, const struct process *process) {
    assert_string_equal(text, process->out);
    tare_text_free(text);
}

static tare_model *open_at(const char *path) {
    tare_model *model;
    OK(tare_model_open(&model, NULL, path));
    return model;
}

static tare_model *weight_only(const tare_model *model) {
    tare_model *made;
    OK(tare_model_quantize(&made, model, "weight_only", NULL, NULL));
    return made;
}

/* ---- differences ---- */

static void diff__is_that_of_the_command(void **state) {
    static const char *const float_path = GLYPHS "saved_model";
    const char *const path = temp_path("small");
    tare_model *model = open_at(float_path), *made = weight_only(model), *opened;
    struct process json, text;
    char *found;
    (void)state;
    OK(tare_model_write(made, path, TARE_WRITE_OVERWRITE));
    opened = open_at(path);
    command(&json, "diff", float_path, path, "--json", NULL, NULL);
    command(&text, "diff", float_path, path, "--all", NULL, NULL);
    OK(tare_model_diff(&found, model, opened, NULL));
    check_printed(found, &json);
    OK(tare_diff(&found, NULL, float_path, path, ""));
    check_printed(found, &json);
    OK(tare_diff(&found, NULL, float_path, path, "text all"));
    assert_true(strlen(found) > 1000);
    check_printed(found, &text);
    OK(tare_model_diff(&found, model, made, "html"));
    assert_non_null(strstr(found, "<!doctype html>"));
    assert_non_null(strstr(found, "second")); /* has no path */
    tare_text_free(found);
    process_free(&json);
    process_free(&text);
    tare_model_close(opened);
    tare_model_close(made);
    tare_model_close(model);
}

static void diff__of_a_model_with_itself_is_empty(void **state) {
    tare_model *model = open_at(GLYPHS "saved_model");
    char *found;
    (void)state;
    OK(tare_model_diff(&found, model, model, "text"));
    assert_non_null(strstr(found, "are the same"));
    tare_text_free(found);
    tare_model_close(model);
}

static void diff__refuses_what_is_not_of_one_kind(void **state) {
    tare_model *model = open_at(GLYPHS "saved_model");
    const char *const report = temp_file("report.json", "{\"results\": []}", 15), *const folder = temp_path("arrays");
    char *found = (char *)"";
    (void)state;
    REFUSED(tare_model_diff(&found, model, model, "html text"), TARE_ERROR_USAGE, "exclude");
    assert_null(found);
    REFUSED(tare_model_diff(&found, model, model, "hmtl"), TARE_ERROR_USAGE, "html");
    REFUSED(tare_diff(&found, NULL, GLYPHS "saved_model", "/nowhere", NULL), TARE_ERROR_NOT_FOUND, "/nowhere");
    assert_null(found);
    OK(tare_diff(&found, NULL, report, report, NULL));
    tare_text_free(found);
    assert_int_equal(mkdir(folder, 0700), 0);
    char path[4096];
    snprintf(path, sizeof path, "%s/a.npy", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    REFUSED(tare_diff(&found, NULL, GLYPHS "saved_model", folder, NULL), TARE_ERROR_USAGE, "of one kind");
    assert_null(found);
    tare_model_close(model);
}

/* ---- modules ---- */

static void export__is_that_of_the_command(void **state) {
    static const char *const float_path = GLYPHS "saved_model";
    tare_model *model = open_at(float_path);
    struct process process;
    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *const container = i ? "container=jax batch=3" : "batch=3";
        const char *const mine = temp_path("mine.mlirbc"), *const theirs = temp_path("theirs.mlirbc");
        command(&process, "export", float_path, theirs, "--batch=3", i ? "--container=jax" : "--quiet", NULL);
        assert_int_equal(process.status, 0);
        process_free(&process);
        OK(tare_model_export(model, mine, container));
        assert_true(same_files(mine, theirs));
    }
    tare_model_close(model);
}

/* The outputs of the first row. */
static void run_row(float out[10], const tare_model *model, const char *input) {
    static float pixels[28 * 28];
    for (int i = 0; i < 28 * 28; i++)
        pixels[i] = (float)(i % 17) / 16.0f;
    const tare_array image = {
        .name = input, .dtype = TARE_DTYPE_FLOAT, .rank = 4, .dims = { 1, 28, 28, 1 }, .data = pixels
    };
    const tare_array *outputs;
    tare_runner *runner;
    size_t count;
    OK(tare_runner_open(&runner, model, NULL));
    OK(tare_runner_run(runner, &image, 1, &outputs, &count));
    assert_int_equal(outputs[0].dims[1], 10);
    memcpy(out, outputs[0].data, 10 * sizeof *out);
    tare_runner_close(runner);
}

static void export__of_a_model_in_memory_runs_as_it_does(void **state) {
    tare_model *model = open_at(GLYPHS "saved_model"), *made = weight_only(model), *module;
    float expected[10], found[10];
    (void)state;
    run_row(expected, made, "image");
    OK(tare_model_export(made, temp_path("made.mlirbc"), NULL));
    module = open_at(temp_path("made.mlirbc"));
    run_row(found, module, "arg0");
    for (int i = 0; i < 10; i++)
        assert_true(fabsf(expected[i] - found[i]) < 1e-5f);
    tare_model_close(module);
    tare_model_close(made);
    tare_model_close(model);
}

static void keep_log(void *arg, enum tare_log_level level, const char *text) {
    if (level == TARE_LOG_NOTE) snprintf(arg, 256, "%s", text);
}

static void export__refuses_and_logs(void **state) {
    const char *const path = temp_path("refused.mlirbc");
    tare_context *context;
    tare_model *model;
    char text[256] = "", both[4096];
    struct stat unused;
    (void)state;
    OK(tare_context_open(&context));
    tare_context_on_log(context, TARE_LOG_NOTE, keep_log, text);
    OK(tare_model_open(&model, context, GLYPHS "saved_model"));
    REFUSED(tare_model_export(model, path, "batches=3"), TARE_ERROR_USAGE, "batch");
    REFUSED(tare_model_export(model, path, "signature=none"), TARE_ERROR_NOT_FOUND, "none");
    REFUSED(tare_model_export(model, path, "signature=none vhlo-version=99.0.0"), TARE_ERROR_USAGE, "VHLO version");
    REFUSED(tare_model_export(model, path, "container=saved_model weights=w"), TARE_ERROR_USAGE, "mutually exclusive");
    snprintf(both, sizeof both, "weights=%s", path);
    REFUSED(tare_model_export(model, path, both), TARE_ERROR_USAGE, "a file of its own");
    assert_int_not_equal(stat(path, &unused), 0);
    tare_context_cancel(context, 1);
    REFUSED(tare_model_export(model, path, NULL), TARE_ERROR_INTERRUPTED, "interrupted");
    tare_context_cancel(context, 0);
    assert_int_not_equal(stat(path, &unused), 0);
    assert_string_equal(text, "");
    OK(tare_model_export(model, path, "container=saved_model"));
    assert_non_null(strstr(text, "1 arguments, 1 results"));
    REFUSED(tare_model_export(model, path, "container=saved_model"), TARE_ERROR_INVALID_ARGUMENT, "exists");
    tare_model_close(model);
    tare_context_close(context);
}

/* ---- calibrations ---- */

static void calibration__of_a_function_is_that_of_the_command(void **state) {
    static const char *const path = GLYPHS "saved_model", *const samples = GLYPHS "calibration.tfrecord.gz";
    static const char options[] = "function=tpu_func limit=50";
    const char *const mine = temp_path("mine.calib"), *const theirs = temp_path("theirs.calib");
    const char *const argv[] = { process_tare(), "calibrate", path, "--data", samples,   "--function", "tpu_func",
                                 "--limit",      "50",        "-o", theirs,   "--quiet", NULL };
    tare_model *model = open_at(path), *made;
    tare_calibration *calibration;
    tare_calibrator *calibrator;
    struct process process;
    (void)state;
    process_run(&process, argv);
    assert_int_equal(process.status, 0);
    process_free(&process);
    OK(tare_model_calibrate(&calibration, model, &samples, 1, options));
    OK(tare_calibration_write(calibration, mine));
    assert_true(same_files(mine, theirs));
    tare_calibration_close(calibration);
    OK(tare_model_calibrate(&calibration, model, &samples, 1, "function=tpu_func limit=50 hessians"));
    OK(tare_model_quantize(&made, model, "static", calibration, "passes=gptq"));
    tare_model_close(made);
    tare_calibration_close(calibration);
    REFUSED(tare_calibrator_open(&calibrator, model, options), TARE_ERROR_UNSUPPORTED, "a function is selected by");
    REFUSED(tare_model_calibrate(&calibration, model, &samples, 1, "function=tpu_func signature=serving_default"),
            TARE_ERROR_USAGE, "--signature and --function are mutually exclusive");
    REFUSED(tare_model_calibrate(&calibration, model, &samples, 1, "function=none"), TARE_ERROR_NOT_FOUND,
            "there is no function 'none'");
    tare_model_close(model);
}

/* ---- comparisons ---- */

static void comparison__with_auto_is_that_of_the_command(void **state) {
    static const char *const path = GLYPHS "saved_model", *const records = GLYPHS "eval.tfrecord.gz",
                             *const samples = GLYPHS "calibration.tfrecord.gz";
    const char *const csv = temp_path("theirs.csv");
    const char *const argv[] = { process_tare(), "compare", path,       "--data",    samples,
                                 "--eval",       records,   "--auto",   "--methods", "static",
                                 "--limit",      "20",      "--report", csv,         NULL };
    tare_comparison_task task = { .struct_size = sizeof task,
                                  .paths = &records,
                                  .n_paths = 1,
                                  .options = "auto methods=static limit=20",
                                  .samples = &samples,
                                  .n_samples = 1 };
    tare_model *model = open_at(path);
    tare_comparison *comparison;
    struct process process;
    char *text;
    (void)state;
    process_run(&process, argv);
    assert_int_equal(process.status, 0);
    OK(tare_comparison_open(&comparison, model, &task));
    OK(tare_comparison_report(&text, comparison, TARE_COMPARISON_CSV));
    assert_true(same_files(temp_file("mine.csv", text, strlen(text)), csv));
    tare_text_free(text);
    OK(tare_comparison_report(&text, comparison, TARE_COMPARISON_TEXT));
    assert_memory_equal(text, process.out, strstr(process.out, "next: ") - process.out);
    tare_text_free(text);
    tare_comparison_close(comparison);
    task.samples = NULL;
    task.n_samples = 0;
    REFUSED(tare_comparison_open(&comparison, model, &task), TARE_ERROR_USAGE, "--auto needs representative samples");
    process_free(&process);
    tare_model_close(model);
}

/* ---- models from JAX ---- */

static void unwrap__is_that_of_the_command(void **state) {
    static const char *const path = MODULES "mlp.mlirbc";
    const char *const mine = temp_path("mine"), *const theirs = temp_path("theirs");
    tare_model *model = open_at(path);
    struct process process;
    (void)state;
    command(&process, "unwrap", path, theirs, "--quiet", NULL, NULL);
    assert_int_equal(process.status, 0);
    process_free(&process);
    OK(tare_model_unwrap(model, mine, 0));
    assert_true(same_folders(mine, theirs));
    REFUSED(tare_model_unwrap(model, mine, 0), TARE_ERROR_INVALID_ARGUMENT, "exists");
    REFUSED(tare_model_unwrap(model, mine, 2), TARE_ERROR_INVALID_ARGUMENT, "unknown flags");
    OK(tare_model_unwrap(model, mine, TARE_WRITE_OVERWRITE));
    OK(tare_model_write(model, mine, TARE_WRITE_OVERWRITE));
    assert_true(same_folders(mine, theirs));
    tare_model_close(model);
}

static void unwrap__refuses_a_model_without_modules(void **state) {
    tare_model *model = open_at(GLYPHS "saved_model");
    struct stat unused;
    (void)state;
    REFUSED(tare_model_unwrap(model, temp_path("none"), 0), TARE_ERROR_NOT_FOUND, "no XlaCallModule op");
    assert_int_not_equal(stat(temp_path("none"), &unused), 0);
    tare_model_close(model);
}

/* ---- models without a checkpoint ---- */

static void keep_warning(void *arg, enum tare_log_level level, const char *text) {
    if (level == TARE_LOG_WARNING && strstr(text, "no checkpoint")) snprintf(arg, 256, "%s", text);
}

static void missing_variables__are_refused_as_by_the_commands(void **state) {
    static const char missing[] = "57 variables but no checkpoint";
    const char *const path = temp_path("bare"), *const out = temp_path("bare_out");
    tare_context *context;
    tare_model *model, *made;
    struct process process;
    char text[4096], *json;
    (void)state;
    snprintf(text, sizeof text, "mkdir -p '%s' && cp '" GLYPHS "saved_model/saved_model.pb' '%s'", path, path);
    assert_int_equal(system(text), 0);
    OK(tare_context_open(&context));
    tare_context_on_log(context, TARE_LOG_WARNING, keep_warning, text);
    OK(tare_model_open(&model, context, path));
    command(&process, "convert", path, out, "--quiet", NULL, NULL);
    REFUSED(tare_model_convert(&made, NULL, model, NULL, NULL, 0), TARE_ERROR_NOT_FOUND, missing);
    assert_non_null(strstr(process.err, tare_error_text()));
    REFUSED(tare_model_quantize(&made, model, "weight_only", NULL, NULL), TARE_ERROR_NOT_FOUND, missing);
    REFUSED(tare_model_unwrap(model, out, 0), TARE_ERROR_NOT_FOUND, missing);
    OK(tare_model_describe(&json, model));
    tare_text_free(json);
    OK(tare_model_write(model, out, 0)); /* as `tare copy` */
    *text = '\0';
    tare_context_allow_missing_variables(context, 1);
    OK(tare_model_convert(&made, NULL, model, NULL, NULL, 0));
    assert_non_null(strstr(text, missing));
    tare_model_close(made);
    tare_model_close(model);
    tare_context_close(context);
    process_free(&process);
}

/* ---- validity ---- */

static void validate__is_that_of_the_command(void **state) {
    static const char *const path = GLYPHS "saved_model";
    struct process process;
    char *found;
    int valid;
    (void)state;
    command(&process, "validate", path, "--json", NULL, NULL, NULL);
    OK(tare_validate(&found, &valid, NULL, path, NULL));
    assert_int_equal(valid, 1);
    check_printed(found, &process);
    process_free(&process);
}

static void validate__lists_the_damage(void **state) {
    const char *const path = temp_path("damaged");
    tare_model *model = open_at(GLYPHS "saved_model");
    struct process process;
    char file_name[4096], *found;
    int valid = 1;
    (void)state;
    OK(tare_model_write(model, path, TARE_WRITE_OVERWRITE));
    tare_model_close(model);
    snprintf(file_name, sizeof file_name, "%s/variables/variables.data-00000-of-00001", path);
    FILE *file = fopen(file_name, "r+");
    assert_non_null(file);
    fseek(file, 100, SEEK_SET);
    const int byte = fgetc(file);
    fseek(file, 100, SEEK_SET);
    fputc(byte ^ 1, file);
    fclose(file);
    REFUSED(tare_model_open(&model, NULL, path), TARE_ERROR_CORRUPT, "Checksum");
    command(&process, "validate", path, "--json", NULL, NULL, NULL);
    assert_int_equal(process.status, 1);
    OK(tare_validate(&found, &valid, NULL, path, NULL));
    assert_int_equal(valid, 0);
    assert_non_null(strstr(found, "Checksum"));
    check_printed(found, &process);
    process_free(&process);
    valid = 1;
    REFUSED(tare_validate(&found, &valid, NULL, "/nowhere", NULL), TARE_ERROR_NOT_FOUND, "/nowhere");
    assert_null(found);
    assert_int_equal(valid, 0);
    REFUSED(tare_validate(&found, NULL, NULL, path, "serve,tpu"), TARE_ERROR_NOT_FOUND, "serve");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(diff__is_that_of_the_command),
        cmocka_unit_test(diff__of_a_model_with_itself_is_empty),
        cmocka_unit_test(diff__refuses_what_is_not_of_one_kind),
        cmocka_unit_test(export__is_that_of_the_command),
        cmocka_unit_test(export__of_a_model_in_memory_runs_as_it_does),
        cmocka_unit_test(export__refuses_and_logs),
        cmocka_unit_test(calibration__of_a_function_is_that_of_the_command),
        cmocka_unit_test(comparison__with_auto_is_that_of_the_command),
        cmocka_unit_test(unwrap__is_that_of_the_command),
        cmocka_unit_test(unwrap__refuses_a_model_without_modules),
        cmocka_unit_test(missing_variables__are_refused_as_by_the_commands),
        cmocka_unit_test(validate__is_that_of_the_command),
        cmocka_unit_test(validate__lists_the_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
