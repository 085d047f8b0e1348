/* A model from its file to a converted one, through the functions of libtare: opened, described, run and calibrated
 * with one sample, quantized, converted, written, and opened again. File 1 of the input is saved_model.pb, 2 and 3 are
 * the checkpoint.
 *
 * A model may compute for ever, so a timer cancels what still runs; what does not stop then is a finding of the
 * fuzzer's own time limit. Sizes that inputs leave open are 2. A model that was written must open again. */
#include "base/alloc.h"
#include "base/file.h"
#include "fuzz/target.h"
#include "tare/tare.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { MOST_INPUTS = 8, MOST_BYTES = 1 << 20, MILLISECONDS = 400 };

/* ---- the time budget ---- */

static tare_context *running;

static void on_timer(int number) {
    (void)number;
    if (running) tare_context_cancel(running, 1);
}

static void set_timer(long milliseconds) {
    static timer_t timer;
    static bool made;
    struct itimerspec time = { .it_value = { milliseconds / 1000, milliseconds % 1000 * 1000000 } };
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
    if (!made) {
        signal(SIGRTMIN, on_timer);
        if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) abort();
        made = true;
    }
    if (timer_settime(timer, 0, &time, NULL) != 0) abort();
}

/* ---- one sample ---- */

struct sample {
    tare_array arrays[MOST_INPUTS];
    size_t count;
};

/* Elements 0, 1, 2, … as bytes, so that dtypes get different values, valid as numbers of any of them. */
static bool fill(tare_array *array) {
    size_t elements = 1, bytes;
    const size_t item = tare_element_size(array->dtype);
    uint8_t *data;
    if (array->rank == TARE_ARRAY_UNKNOWN) {
        array->rank = 1;
        array->dims[0] = TARE_ARRAY_UNKNOWN;
    }
    for (int32_t i = 0; i < array->rank; i++) {
        if (array->dims[i] < 0) array->dims[i] = 2;
        if (!tare_mul_size(&elements, elements, (size_t)array->dims[i]) || elements > MOST_BYTES) return false;
    }
    if (!item || !tare_mul_size(&bytes, elements, item) || bytes > MOST_BYTES) return false;
    array->data = data = calloc(elements + 1, item);
    if (!data) abort();
    for (size_t i = 0; array->dtype != TARE_DTYPE_STRING && i < elements; i++)
        data[i * item] = array->dtype == TARE_DTYPE_BOOL ? i & 1 : (uint8_t)i;
    for (size_t i = 0; array->dtype == TARE_DTYPE_FLOAT && i < elements; i++)
        memcpy(data + i * item, &(float){ (float)(i % 17) * 0.25f - 2 }, item);
    return true;
}

static bool make_sample(struct sample *out, const tare_model *model) {
    const size_t count = tare_model_input_count(model, NULL);
    out->count = 0;
    if (count > MOST_INPUTS) return false;
    for (; out->count < count; out->count++)
        if (tare_model_input(&out->arrays[out->count], model, NULL, out->count) != TARE_OK ||
            !fill(&out->arrays[out->count]))
            return false;
    return true;
}

static void free_sample(struct sample *sample) {
    for (size_t i = 0; i < sample->count; i++)
        free((void *)(uintptr_t)sample->arrays[i].data);
}

/* ---- the steps ---- */

static bool run(const tare_model *model, const struct sample *sample) {
    const tare_array *outputs;
    size_t count;
    tare_runner *runner;
    bool done;
    if (tare_runner_open(&runner, model, NULL) != TARE_OK) return false;
    done = tare_runner_run(runner, sample->arrays, sample->count, &outputs, &count) == TARE_OK;
    tare_runner_close(runner);
    return done;
}

static tare_calibration *calibrate(const tare_model *model, const struct sample *sample) {
    tare_calibrator *calibrator;
    tare_calibration *calibration = NULL;
    if (tare_calibrator_open(&calibrator, model, "threads=1") != TARE_OK) return NULL;
    if (tare_calibrator_push(calibrator, sample->arrays, sample->count) != TARE_OK ||
        tare_calibrator_finish(&calibration, calibrator) != TARE_OK)
        calibration = NULL;
    tare_calibrator_close(calibrator);
    return calibration;
}

/* Written, opened again, and removed. */
static void write_and_open(tare_context *context, const tare_model *model) {
    const char *folder = fuzz_path("out");
    tare_model *again;
    tare_status status;
    if (tare_model_write(model, folder, TARE_WRITE_OVERWRITE) != TARE_OK) return;
    status = tare_model_open(&again, context, folder);
    if (status == TARE_OK) {
        tare_model_close(again);
    } else if (status != TARE_ERROR_INTERRUPTED && status != TARE_ERROR_NO_MEMORY) {
        fprintf(stderr, "a model that was written does not open: %s\n", tare_error_text());
        abort();
    }
    if (tare_file_remove_tree(folder) != TARE_OK) abort();
}

static bool quantize_and_convert(tare_context *context, const tare_model *model, const tare_calibration *calibration) {
    const unsigned flags = TARE_CONVERT_FIND_FUNCTIONS | TARE_CONVERT_ALLOW_INCOMPATIBLE;
    tare_model *quantized, *converted;
    char *report;
    if (tare_model_quantize_report(&quantized, &report, model, calibration ? "static" : "weight_only", calibration,
                                   NULL) != TARE_OK)
        return false;
    tare_text_free(report);
    write_and_open(context, quantized);
    if (tare_model_convert(&converted, &report, quantized, "", NULL, flags) == TARE_OK) {
        write_and_open(context, converted);
        tare_text_free(report);
        tare_model_close(converted);
    }
    tare_model_close(quantized);
    return true;
}

static enum fuzz_depth use(tare_context *context, const tare_model *model) {
    struct sample sample;
    tare_calibration *calibration = NULL;
    char *text;
    bool used;
    if (tare_model_describe(&text, model) == TARE_OK) tare_text_free(text);
    used = make_sample(&sample, model) && run(model, &sample);
    if (used) calibration = calibrate(model, &sample);
    free_sample(&sample);
    quantize_and_convert(context, model, calibration);
    tare_calibration_close(calibration);
    return used ? FUZZ_USED : FUZZ_READ;
}

static void write_model(const uint8_t *data, size_t size) {
    static const char *const names[] = { "in/saved_model.pb", "in/variables/variables.index",
                                         "in/variables/variables.data-00000-of-00001" };
    (void)mkdir(fuzz_path("in"), 0700);
    (void)mkdir(fuzz_path("in/variables"), 0700);
    for (uint32_t i = 0; i < 3; i++) {
        const struct fuzz_part part = fuzz_part(data, size, i + 1);
        if (part.size)
            fuzz_file(names[i], part.data, part.size);
        else
            remove(fuzz_path(names[i]));
    }
}

enum fuzz_depth fuzz_execute(const uint8_t *data, size_t size) {
    enum fuzz_depth depth = FUZZ_REFUSED;
    tare_context *context;
    tare_model *model;
    write_model(data, size);
    if (tare_context_open(&context) != TARE_OK) abort();
    tare_context_set_threads(context, 1);
    running = context;
    set_timer(MILLISECONDS);
    if (tare_model_open(&model, context, fuzz_path("in")) == TARE_OK) {
        depth = use(context, model);
        tare_model_close(model);
    }
    set_timer(0);
    running = NULL;
    tare_context_close(context);
    tare_error_clear();
    return depth;
}
