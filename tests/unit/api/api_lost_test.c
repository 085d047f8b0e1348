/* Models and data files that become shorter or lose a folder while a program has them open: calls on them fail and
 * name the file. Calls on another model of the same context, in another thread, and on other data do not. */
#include "include/tare/tare.h"

#include "support/api_check.h"
#include "support/temp.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { RUNS = 50, PADDING = 2 << 20 };

static const char *checkpoint_of(const char *name) {
    char inner[128];
    snprintf(inner, sizeof inner, "%s/variables/variables.data-00000-of-00001", name);
    return temp_path(inner);
}

/* The example model with a checkpoint that is large enough to be mapped. */
static tare_model *open_large(tare_context *context, const char *name) {
    tare_model *small, *model;
    FILE *file;
    static char zeros[PADDING];
    OK(tare_model_open(&small, NULL, GLYPHS "saved_model"));
    OK(tare_model_write(small, temp_path(name), TARE_WRITE_OVERWRITE));
    tare_model_close(small);
    file = fopen(checkpoint_of(name), "ab");
    assert_non_null(file);
    assert_int_equal(fwrite(zeros, 1, sizeof zeros, file), sizeof zeros);
    assert_int_equal(fclose(file), 0);
    OK(tare_model_open(&model, context, temp_path(name)));
    return model;
}

static tare_status run(tare_runner *runner) {
    static const float pixels[28 * 28];
    const tare_array image = {
        .name = "image", .dtype = TARE_DTYPE_FLOAT, .rank = 4, .dims = { 1, 28, 28, 1 }, .data = pixels
    };
    const tare_array *outputs;
    size_t count;
    return tare_runner_run(runner, &image, 1, &outputs, &count);
}

struct user {
    tare_runner *runner;
    tare_status statuses[RUNS];
    char text[700]; /* of the last run */
};

static void *run_often(void *arg) {
    struct user *user = arg;
    for (int i = 0; i < RUNS; i++)
        user->statuses[i] = run(user->runner);
    snprintf(user->text, sizeof user->text, "%s", tare_error_text());
    return NULL;
}

static void a_lost_checkpoint__fails_the_calls_on_its_model_alone(void **state) {
    struct user users[2] = { 0 };
    pthread_t threads[2];
    tare_context *context;
    tare_model *models[2], *made;
    (void)state;
    OK(tare_context_open(&context));
    models[0] = open_large(context, "lost");
    models[1] = open_large(context, "whole");
    for (int i = 0; i < 2; i++) {
        OK(tare_runner_open(&users[i].runner, models[i], NULL));
        OK(run(users[i].runner));
    }
    assert_int_equal(truncate(checkpoint_of("lost"), 0), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_often, &users[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < RUNS; i++) {
        assert_int_equal(users[0].statuses[i], TARE_ERROR_IO);
        assert_int_equal(users[1].statuses[i], TARE_OK);
    }
    assert_non_null(strstr(users[0].text, checkpoint_of("lost")));
    assert_non_null(strstr(users[0].text, "became shorter"));
    assert_int_equal(tare_model_write(models[0], temp_path("copy"), 0), TARE_ERROR_IO);
    OK(tare_model_quantize(&made, models[1], "weight_only", NULL, NULL));
    tare_model_close(made);
    for (int i = 0; i < 2; i++) {
        tare_runner_close(users[i].runner);
        tare_model_close(models[i]);
    }
    models[0] = open_large(context, "lost"); /* written again */
    tare_model_close(models[0]);
    tare_context_close(context);
}

/* Calls that make something return NULL, although what they made was complete but for the lost values. */
static void after_a_loss__nothing_is_handed_out(void **state) {
    static const char *const samples = GLYPHS "calibration.tfrecord.gz";
    static char some;
    const tare_comparison_task task = {
        .struct_size = sizeof task, .paths = &samples, .n_paths = 1, .options = "methods=weight_only limit=4"
    };
    tare_model *model = open_large(NULL, "lost"), *made;
    tare_calibration *calibration;
    tare_calibrator *calibrator;
    tare_comparison *comparison;
    tare_runner *runner;
    char *text;
    (void)state;
    assert_int_equal(truncate(checkpoint_of("lost"), 0), 0);
    OK(tare_runner_open(&runner, model, NULL)); /* reads nothing yet */
    assert_int_equal(run(runner), TARE_ERROR_IO);
    tare_runner_close(runner);
#define LOST(out, call)                                                                                                \
    do {                                                                                                               \
        (out) = (void *)&some;                                                                                         \
        const tare_status status = (call);                                                                             \
        if (status == TARE_OK || (out)) fail_msg("%s: %s", #call, tare_status_name(status));                           \
    } while (0)
    LOST(runner, tare_runner_open(&runner, model, NULL));
    LOST(runner, tare_runner_open_function(&runner, model, "tpu_func", NULL, 0));
    LOST(text, tare_model_describe(&text, model));
    LOST(text, tare_model_diff(&text, model, model, NULL));
    LOST(text, tare_model_check(&text, model, "estimate"));
    LOST(text, tare_model_compare(&text, model, &samples, 1, NULL, "methods=weight_only limit=4"));
    LOST(comparison, tare_comparison_open(&comparison, model, &task));
    LOST(calibration, tare_model_calibrate(&calibration, model, &samples, 1, "limit=4"));
    LOST(calibrator, tare_calibrator_open(&calibrator, model, NULL));
    LOST(made, tare_model_quantize(&made, model, "weight_only", NULL, NULL));
    LOST(made, tare_model_convert(&made, NULL, model, NULL, NULL, 0));
#undef LOST
    tare_model_close(model);
}

/* ---- data files ---- */

enum { ROWS = 1500, ROW_BYTES = 2048 };

/* float32[ROWS, 512], all zero: 3 MB. */
static tare_reader *open_array(const char *name) {
    static const char row[ROW_BYTES];
    char header[119];
    tare_reader *reader;
    const char *path = temp_path(name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    memset(header, ' ', sizeof header);
    const int size =
        snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 512), }", ROWS);
    header[size] = ' ';
    header[117] = '\n';
    assert_int_equal(fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file), 10);
    assert_int_equal(fwrite(header, 1, 118, file), 118);
    for (int i = 0; i < ROWS; i++)
        assert_int_equal(fwrite(row, 1, sizeof row, file), sizeof row);
    assert_int_equal(fclose(file), 0);
    OK(tare_reader_open(&reader, NULL, &path, 1, NULL));
    return reader;
}

/* Reads to the end or a failure; *rows counts the rows. */
static tare_status read_all(tare_reader *reader, int *rows) {
    const tare_array *arrays;
    size_t count;
    tare_status status;
    for (*rows = 0; (status = tare_reader_next(reader, &arrays, &count)) == TARE_OK && arrays;)
        ++*rows;
    return status;
}

static void a_lost_data_file__fails_its_reader_alone(void **state) {
    const long sizes[] = { 0, 2000000, 128 + (long)ROWS * ROW_BYTES - 10 }; /* the last one cuts no page */
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        tare_reader *lost = open_array("lost.npy"), *whole = open_array("whole.npy");
        const tare_array *arrays;
        size_t count;
        int rows;
        OK(tare_reader_next(lost, &arrays, &count));
        OK(tare_reader_next(whole, &arrays, &count));
        assert_int_equal(count, 1);
        assert_int_equal(truncate(temp_path("lost.npy"), sizes[i]), 0);
        assert_int_equal(read_all(lost, &rows), TARE_ERROR_IO);
        assert_non_null(strstr(tare_error_text(), "lost.npy"));
        OK(read_all(whole, &rows));
        assert_int_equal(rows, ROWS - 1);
        tare_reader_close(lost);
        tare_reader_close(whole);
    }
}

/* A command whose last argument is FOLDER/NAME. */
static void shell(const char *command, const char *folder, const char *name) {
    char text[4096];
    snprintf(text, sizeof text, "%s '%s/%s'", command, folder, name);
    assert_int_equal(system(text), 0);
}

static void a_lost_folder__fails_the_writing(void **state) {
    static const char *const folders[] = { "assets", "assets.extra" };
    for (int i = 0; i < 2; i++) {
        const char *const path = temp_path(i ? "a" : "b"), *const out = temp_path("out");
        tare_model *model, *made;
        (void)state;
        shell("cp -rL '" GLYPHS "saved_model'", path, "");
        shell("mkdir", path, folders[i]);
        OK(tare_model_open(&model, NULL, path));
        OK(tare_model_quantize(&made, model, "weight_only", NULL, NULL));
        shell("rmdir", path, folders[i]);
        REFUSED(tare_model_write(model, out, 0), TARE_ERROR_IO, "which the model had when it was opened");
        assert_non_null(strstr(tare_error_text(), folders[i]));
        REFUSED(tare_model_write(made, out, 0), TARE_ERROR_IO, "which the model had when it was opened");
        assert_int_not_equal(access(out, F_OK), 0);
        tare_model_close(made);
        tare_model_close(model);
    }
}

static void a_made_model__keeps_the_folders_of_one_that_is_closed(void **state) {
    const char *const path = temp_path("with_assets"), *const out = temp_path("kept");
    tare_model *model, *quantized, *converted;
    (void)state;
    shell("cp -rL '" GLYPHS "saved_model'", path, "");
    shell("mkdir", path, "assets");
    shell("echo a >", path, "assets/words.txt");
    OK(tare_model_open(&model, NULL, path));
    OK(tare_model_quantize(&quantized, model, "weight_only", NULL, NULL));
    OK(tare_model_convert(&converted, NULL, quantized, NULL, NULL, 0));
    tare_model_close(quantized);
    tare_model_close(model);
    OK(tare_model_write(converted, out, 0));
    tare_model_close(converted);
    assert_int_equal(access(temp_path("kept/assets/words.txt"), F_OK), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lost_checkpoint__fails_the_calls_on_its_model_alone),
        cmocka_unit_test(after_a_loss__nothing_is_handed_out),
        cmocka_unit_test(a_lost_folder__fails_the_writing),
        cmocka_unit_test(a_made_model__keeps_the_folders_of_one_that_is_closed),
        cmocka_unit_test(a_lost_data_file__fails_its_reader_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
