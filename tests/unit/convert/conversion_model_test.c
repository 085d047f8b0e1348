/* Every signature of every real model that a TPU can compile goes through the whole conversion, with the default
 * options, without bfloat16, with batching and quantized; what is written is loaded again, has no fault, and runs: bit
 * for bit as the original without bfloat16, near it with. Those that a TPU refuses in part are split, and run as they
 * did. */
#include "base/alloc.h"
#include "base/file.h"
#include "convert/pipeline.h"
#include "convert/prepared_model.h"
#include "convert/saved_model.h"
#include "eval/model_inputs.h"
#include "eval/runner.h"
#include "interpreter/validation/validate.h"
#include "workflow/calibrate.h"
#include "support/models.h"
#include "support/temp.h"
#include "tpu/functions.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define PLACE "tpu_functions { signature_name: \"%s\" } "
#define BATCH                                                                                                          \
    "batch_options { num_batch_threads: 2 max_batch_size: 8 batch_timeout_micros: 5000 allowed_batch_sizes: 2 "        \
    "allowed_batch_sizes: 4 allowed_batch_sizes: 8 max_enqueued_batches: 10 } "
#define QUANTIZE "external_feature_configs { quantization_options { signature_keys: \"%s\" } } "

/* One bfloat16 rounding is 2^-9 of a value; a few dozen layers add up to percents of the largest output. */
static const double TOLERANCE_BFLOAT16 = 0.06;
/* basic-pitch takes the logarithm of a spectrogram, where small values become large. */
static const double TOLERANCE_BFLOAT16_LOG_SPECTROGRAM = 0.15;
/* A gradient is a difference of nearly equal numbers. */
static const double TOLERANCE_BFLOAT16_TRAINING = 0.15;
/* int8 weights and activations: 2^-8 of the range each, a few dozen layers. */
static const double TOLERANCE_INT8 = 0.12;
/* basic-pitch again: the filters of its spectrogram are int8, too, below the logarithm. */
static const double TOLERANCE_INT8_LOG_SPECTROGRAM = 0.3;

/* Its function returns nothing, though its callers take two tensors of it. */
static const char BROKEN[] = "tf-batchfunction";

static const char *model_name; /* the case at hand, for messages */
static int failures, converted, compared, batched, quantized, split;

static void complain(const char *variant, const char *signature, const char *what) {
    print_error("%s, signature %s, %s: %s\n", model_name, signature, variant, what);
    failures++;
}

/* ---- running ---- */

/* The outputs of a few records, one after the other. */
struct answers {
    struct tare_tensor *items;
    size_t count, capacity;
};

static tare_status keep(void *arg, const struct tare_sample *sample, const struct tare_record *where,
                        const struct tare_tensor *outputs) {
    struct answers *answers = arg;
    const size_t n = answers->capacity;
    (void)sample;
    (void)where;
    answers->items = tare_realloc(answers->items, answers->count + n, sizeof *answers->items);
    if (!answers->items) return TARE_NO_MEMORY;
    for (size_t i = 0; i < n; i++)
        tare_tensor_share(&answers->items[answers->count++], &outputs[i]);
    return TARE_OK;
}

static void free_answers(struct answers *answers) {
    for (size_t i = 0; i < answers->count; i++)
        tare_tensor_reset(&answers->items[i]);
    tare_free(answers->items);
    memset(answers, 0, sizeof *answers);
}

/* capacity is the number of the signature's outputs. */
static tare_status run(struct answers *out, const struct tare_graph_model *model, const char *key, const char *inputs) {
    struct tare_runner_options options = { .paths = &inputs, .n_paths = 1, .limit = 3 };
    const struct tare_signature *signature;
    struct tare_session *session = NULL;
    tare_status status;
    TARE_TRY(tare_pick_signature(&signature, model, key));
    out->capacity = signature->n_outputs;
    TARE_CHECK(tare_session_new(&session, model, NULL));
    status = tare_run_records(session, signature, &options, keep, out);
done:
    tare_session_free(session);
    return status;
}

static bool same_bits(const struct tare_tensor *a, const struct tare_tensor *b) {
    if (a->dtype != b->dtype || a->elements != b->elements || !tare_shape_equal(&a->shape, &b->shape)) return false;
    for (int64_t i = 0; i < a->elements; i++) {
        double x = tare_tensor_get_f64(a, i), y = tare_tensor_get_f64(b, i);
        if (x != y && !(isnan(x) && isnan(y))) return false;
    }
    return true;
}

/* Largest difference in parts of the largest magnitude. */
static double distance(const struct tare_tensor *a, const struct tare_tensor *b) {
    double largest = 0, worst = 0;
    if (a->dtype != b->dtype || a->elements != b->elements) return INFINITY;
    for (int64_t i = 0; i < a->elements; i++) {
        double x = tare_tensor_get_f64(a, i), y = tare_tensor_get_f64(b, i);
        if (isnan(x) && isnan(y)) continue;
        largest = fmax(largest, fabs(x));
        if (!(fabs(x - y) <= worst)) worst = fabs(x - y);
    }
    return worst == 0 ? 0 : worst / largest;
}

/* tolerance 0: bit for bit. */
static void check_answers(const char *variant, const char *key, const struct answers *want, const struct answers *got,
                          double tolerance) {
    char text[160];
    if (want->count != got->count) {
        complain(variant, key, "another number of outputs");
        return;
    }
    compared++;
    for (size_t i = 0; i < want->count; i++) {
        bool exact = tolerance == 0 || !tare_dtype_is_floating(want->items[i].dtype);
        double far = distance(&want->items[i], &got->items[i]);
        if (exact ? same_bits(&want->items[i], &got->items[i]) : far <= tolerance) continue;
        snprintf(text, sizeof text, "output %zu of %zu is %g away (expected %g)", i, want->count, far, tolerance);
        complain(variant, key, text);
        return;
    }
}

/* ---- one conversion ---- */

static tare_status quantize(struct tare_graph_model *model, struct tare_arena *arena,
                            const struct tare_quantization *options, const char *inputs) {
    struct tare_calibration *calibration;
    struct tare_quant_report report;
    tare_status status;
    TARE_TRY(tare_pipeline_prepare(model, NULL));
    const struct tare_calibrate_options calibrating = { .signature = options->signatures[0],
                                                        .data = &inputs,
                                                        .n_data = 1 };
    TARE_TRY(tare_workflow_calibrate(&calibration, model, &calibrating));
    status = tare_pipeline_quantize(&report, arena, model, &options->plan, calibration);
    tare_calibration_free(calibration);
    return status;
}

static tare_status convert(struct tare_graph_model **out, struct tare_arena *arena, const char *path, const char *text,
                           const char *inputs) {
    struct tare_export_options export = { .overwrite = true };
    const char *written = temp_path("converted");
    struct tare_converter_options options;
    struct tare_conversion conversion;
    struct tare_graph_model *model = NULL;
    tare_status status;
    TARE_TRY(tare_converter_options_parse(&options, arena, text, strlen(text), NULL));
    options.automatic = options.n_functions == 0;
    TARE_TRY(tare_saved_model_load(&model, path, NULL));
    if (options.has_quantization) TARE_CHECK(quantize(model, arena, &options.quantization, inputs));
    TARE_CHECK(tare_pipeline_place(&conversion, arena, model, &options, NULL));
    TARE_CHECK(tare_saved_model_export(model, written, &export));
    status = tare_saved_model_load(out, written, NULL);
done:
    tare_model_free(model);
    return status;
}

static size_t check_faults(const char *variant, const char *key, const struct tare_graph_model *model, size_t allowed) {
    struct tare_faults faults = { 0 };
    size_t count;
    assert_int_equal(tare_model_validate(&faults, model, NULL), TARE_OK);
    count = faults.count;
    if (count > allowed) complain(variant, key, faults.items[0]);
    tare_faults_free(&faults);
    return count;
}

/* What batching cannot do for reasons of shape: said in the runtime's words. */
static bool is_refused_shape(const char *text) {
    static const char *const reasons[] = { "Batching input tensors must have at least one dimension",
                                           "Dimensions of inputs should match", "must have equal 0th-dimension size",
                                           "Batched output tensor", "it has no input to batch" };
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (strstr(text, reasons[i])) return true;
    return false;
}

/* What a split cannot do, by the model. */
static bool is_unsplittable(const char *text) {
    return strstr(text, "nothing can be placed on the TPU") || strstr(text, "does not support TensorFlow 1 models") ||
           strstr(text, "has been converted for TPU before");
}

struct original {
    const char *path, *key, *inputs; /* inputs NULL: nothing recorded to run on */
    size_t faults;
    struct answers answers;
};

static bool try_variant(const struct original *original, const char *variant, const char *options, double tolerance) {
    struct tare_arena arena = { 0 };
    struct tare_graph_model *model = NULL;
    struct answers got = { 0 };
    char text[1024];
    bool done = false;
    snprintf(text, sizeof text, options, original->key, original->key);
    if (convert(&model, &arena, original->path, text, original->inputs) != TARE_OK) {
        if (!(strstr(options, "batch_options") && is_refused_shape(tare_error_text())) &&
            !(!strstr(options, "tpu_functions") && is_unsplittable(tare_error_text())))
            complain(variant, original->key, tare_error_text());
    } else {
        done = true;
        check_faults(variant, original->key, model, original->faults);
        if (original->inputs && run(&got, model, original->key, original->inputs) != TARE_OK)
            complain(variant, original->key, tare_error_text());
        else if (original->inputs)
            check_answers(variant, original->key, &original->answers, &got, tolerance);
    }
    tare_error_clear();
    free_answers(&got);
    tare_model_free(model);
    tare_arena_free(&arena);
    return done;
}

/* ---- one signature ---- */

static bool is_compilable(const struct tare_graph_model *model, const char *key) {
    struct tare_graph *function = tare_signature_function(tare_model_find_signature(model, key));
    struct tare_arena arena = { 0 };
    struct tare_tpu_finding *findings;
    size_t count, errors = 0;
    if (!function) return false;
    assert_int_equal(tare_tpu_check(&findings, &count, &arena, model, &function, 1), TARE_OK);
    for (size_t i = 0; i < count; i++)
        errors += tare_tpu_finding_is_error(findings[i].kind);
    tare_arena_free(&arena);
    return errors == 0;
}

static void try_signature(struct tare_graph_model *model, const char *path, const char *key, bool compiles) {
    const double bfloat16 = strcmp(model_name, "basic-pitch") == 0 ? TOLERANCE_BFLOAT16_LOG_SPECTROGRAM
                            : strcmp(key, "train") == 0            ? TOLERANCE_BFLOAT16_TRAINING
                                                                   : TOLERANCE_BFLOAT16;
    const double int8 = strcmp(model_name, "basic-pitch") == 0 ? TOLERANCE_INT8_LOG_SPECTROGRAM : TOLERANCE_INT8;
    struct original original = { .path = path, .key = key };
    char inputs[2048];
    snprintf(inputs, sizeof inputs, "%s/../references/%s/%s/inputs.tfrecord.gz", models_folder(), model_name, key);
    if (tare_file_kind_of(inputs) == TARE_FILE_REGULAR) original.inputs = inputs;
    original.faults = check_faults("original", key, model, SIZE_MAX);
    if (original.inputs && run(&original.answers, model, key, inputs) != TARE_OK) {
        complain("original", key, tare_error_text());
        return;
    }
    if (!compiles) {
        split += try_variant(&original, "split", "disable_default_optimizations: true", 0);
        free_answers(&original.answers);
        return;
    }
    converted += try_variant(&original, "as it is", PLACE "disable_default_optimizations=True", 0);
    try_variant(&original, "without bfloat16", PLACE "bfloat16_optimization: DISABLED", 0);
    try_variant(&original, "default", PLACE, bfloat16);
    batched += try_variant(&original, "batched", PLACE BATCH "bfloat16_optimization: DISABLED", 0);
    if (original.inputs)
        quantized += try_variant(&original, "quantized", PLACE QUANTIZE "bfloat16_optimization: DISABLED", int8);
    free_answers(&original.answers);
}

static void real_models__convert_and_run(void **state) {
    struct tare_file_list names = models_list();
    (void)state;
    for (size_t m = 0; m < names.count; m++) {
        const char *path = models_path(names.names[m]);
        struct tare_graph_model *model;
        char copy[1024];
        snprintf(copy, sizeof copy, "%s", path);
        model_name = names.names[m];
        if (strcmp(model_name, BROKEN) == 0) continue;
        if (tare_saved_model_load(&model, copy, NULL) != TARE_OK) {
            tare_error_clear(); /* broken on purpose */
            continue;
        }
        for (size_t s = 0; s < model->n_signatures; s++)
            if (model->n_functions && tare_signature_function(&model->signatures[s]))
                try_signature(model, copy, model->signatures[s].key, is_compilable(model, model->signatures[s].key));
        tare_model_free(model);
    }
    tare_file_list_free(&names);
    print_message("%d signatures converted, %d batched, %d quantized, %d split, %d runs compared\n", converted, batched,
                  quantized, split, compared);
    assert_int_equal(failures, 0);
    assert_true(converted >= 25);
    assert_true(batched >= 10);
    assert_true(quantized >= 15);
    assert_true(compared >= 70);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(real_models__convert_and_run) };
    if (!test_data("models")) return TEST_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
