/* The table of targets, and those that read a single file. */
#include "base/alloc.h"
#include "base/image/codec.h"
#include "base/image/image.h"
#include "calib/format/file.h"
#include "convert/jobs.h"
#include "convert/options.h"
#include "convert/saved_model.h"
#include "convert/validation/validate.h"
#include "datasets/array_file.h"
#include "datasets/csv_file.h"
#include "datasets/spec.h"
#include "datasets/tfrecord.h"
#include "eval/jobs/job_result.h"
#include "eval/report/report_diff.h"
#include "fuzz/repair.h"
#include "fuzz/target.h"
#include "proto/bundle.h"
#include "quant/recipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_ROWS = 8 };

static enum fuzz_depth refused(void) {
    tare_error_clear();
    return FUZZ_REFUSED;
}

/* ---- models ---- */

static enum fuzz_depth load(const struct tare_saved_model_options *options) {
    struct tare_graph_model *model;
    if (tare_saved_model_load(&model, fuzz_path("model"), options) != TARE_OK) return refused();
    tare_model_free(model);
    return FUZZ_READ;
}

/* A SavedModel without a checkpoint that consists of this file, or is refused with it. */
static enum fuzz_depth read_model(const char *file, const uint8_t *data, size_t size) {
    static const struct tare_saved_model_options look = { .without_values = true, .read_only = true };
    static const char *const names[] = { "model/saved_model.pb", "model/saved_model.pbtxt", "model/saved_model.cpb" };
    struct tare_faults faults = { 0 };
    enum fuzz_depth depth;
    (void)mkdir(fuzz_path("model"), 0700);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) /* of another target */
        (void)remove(fuzz_path(names[i]));
    fuzz_file(file, data, size);
    depth = load(NULL);
    if (load(&look) != FUZZ_REFUSED && depth == FUZZ_READ) depth = FUZZ_USED;
    if (tare_saved_model_validate(&faults, fuzz_path("model"), NULL) != TARE_OK) tare_error_clear();
    tare_faults_free(&faults);
    return depth;
}

static enum fuzz_depth saved_model(const uint8_t *data, size_t size) {
    return read_model("model/saved_model.pb", data, size);
}

static enum fuzz_depth saved_model_text(const uint8_t *data, size_t size) {
    return read_model("model/saved_model.pbtxt", data, size);
}

static enum fuzz_depth chunked(const uint8_t *data, size_t size) {
    return read_model("model/saved_model.cpb", data, size);
}

/* ---- checkpoints ---- */

static void read_tensor(struct tare_bundle *bundle, const char *key) {
    struct tare_bundle_entry entry;
    struct tare_tensor tensor;
    if (!tare_bundle_find(&entry, bundle, key) || tare_bundle_check(&entry, bundle, key) != TARE_OK) return;
    if (tare_bundle_read(&tensor, bundle, key) == TARE_OK) tare_tensor_reset(&tensor);
    if (tare_bundle_read_slice(&tensor, bundle, key, "4 2 0,2:0,1") == TARE_OK) tare_tensor_reset(&tensor);
}

static enum fuzz_depth checkpoint(const uint8_t *data, size_t size) {
    const struct fuzz_part index = fuzz_part(data, size, 1), tensors = fuzz_part(data, size, 2);
    struct tare_bundle *bundle;
    fuzz_file("c.index", index.data, index.size);
    fuzz_file("c.data-00000-of-00001", tensors.data, tensors.size);
    if (tare_bundle_open(&bundle, fuzz_path("c")) != TARE_OK) return refused();
    for (size_t i = 0; i < tare_bundle_count(bundle); i++)
        read_tensor(bundle, tare_bundle_key(bundle, i));
    tare_error_clear();
    tare_bundle_close(bundle);
    return FUZZ_USED;
}

static void repair_variables(uint8_t *data, size_t size) {
    repair_checkpoint(data, size, 1);
}

/* ---- data files ---- */

static void decode_record(const struct tare_tfrecord *record) {
    struct tare_sample sample = { 0 };
    struct tare_features features = { 0 };
    if (tare_sample_decode(&sample, record->data, record->size) != TARE_OK) tare_error_clear();
    if (tare_features_decode(&features, record->data, record->size) != TARE_OK) tare_error_clear();
    tare_sample_reset(&sample);
    tare_features_reset(&features);
}

static enum fuzz_depth records(const uint8_t *data, size_t size) {
    struct tare_tfrecord_reader *reader;
    struct tare_tfrecord record;
    enum fuzz_depth depth = FUZZ_REFUSED;
    bool end = false;
    if (tare_tfrecord_open(&reader, fuzz_file("records", data, size)) != TARE_OK) return refused();
    while (!end) {
        const tare_status status = tare_tfrecord_next(&record, &end, reader);
        if (status != TARE_OK && !tare_tfrecord_can_skip(reader)) break;
        if (status != TARE_OK || end) continue;
        decode_record(&record);
        depth = FUZZ_USED;
    }
    tare_error_clear();
    tare_tfrecord_close(reader);
    return depth;
}

/* A DatasetSpec and a tf.Example. */
static enum fuzz_depth example(const uint8_t *data, size_t size) {
    const struct fuzz_part text = fuzz_part(data, size, 1), record = fuzz_part(data, size, 2);
    struct tare_dataset_spec *spec;
    struct tare_sample sample = { 0 };
    enum fuzz_depth depth = FUZZ_READ;
    if (tare_dataset_spec_parse(&spec, (const char *)text.data, text.size, "spec") != TARE_OK) return refused();
    if (tare_dataset_spec_decode(&sample, spec, record.data, record.size) == TARE_OK) depth = FUZZ_USED;
    tare_error_clear();
    tare_sample_reset(&sample);
    tare_dataset_spec_free(spec);
    return depth;
}

static uint8_t *copy_of(const uint8_t *data, size_t size) {
    uint8_t *copy = tare_malloc(size);
    if (!copy) abort();
    if (size) memcpy(copy, data, size);
    return copy;
}

static enum fuzz_depth arrays(const char *name, const uint8_t *data, size_t size) {
    struct tare_array_file *file;
    enum fuzz_depth depth = FUZZ_READ;
    if (tare_array_file_open_bytes(&file, name, copy_of(data, size), size) != TARE_OK) return refused();
    for (int64_t i = 0; i < MOST_ROWS && i < tare_array_file_rows(file); i++) {
        struct tare_sample sample = { 0 };
        if (tare_array_file_sample(&sample, file, i) == TARE_OK) depth = FUZZ_USED;
        tare_sample_reset(&sample);
    }
    tare_error_clear();
    tare_array_file_close(file);
    return depth;
}

static enum fuzz_depth npy(const uint8_t *data, size_t size) {
    return arrays("x.npy", data, size);
}

static enum fuzz_depth npz(const uint8_t *data, size_t size) {
    return arrays("x.npz", data, size);
}

static enum fuzz_depth csv(const uint8_t *data, size_t size) {
    struct tare_csv_file *file;
    enum fuzz_depth depth = FUZZ_READ;
    if (tare_csv_file_open(&file, "x.csv", copy_of(data, size), size) != TARE_OK) return refused();
    for (int64_t i = 0; i < MOST_ROWS && i < tare_csv_file_rows(file); i++) {
        struct tare_features features = { 0 };
        if (tare_csv_file_read(&features, file, i) == TARE_OK) depth = FUZZ_USED;
        tare_features_reset(&features);
    }
    tare_error_clear();
    tare_csv_file_close(file);
    return depth;
}

static enum fuzz_depth gif(struct tare_str file) {
    int64_t frames, height, width;
    uint8_t *pixels;
    enum fuzz_depth depth = FUZZ_READ;
    if (tare_gif_size(file, &frames, &height, &width) != TARE_OK) return refused();
    if (frames > 64 || height > 1024 || width > 1024) return FUZZ_READ;
    pixels = tare_malloc((size_t)(frames * height * width) * 3);
    if (!pixels) abort();
    if (tare_gif_decode(file, frames, height, width, pixels) == TARE_OK) depth = FUZZ_USED;
    tare_error_clear();
    tare_free(pixels);
    return depth;
}

static enum fuzz_depth image(const uint8_t *data, size_t size) {
    static const int channels[] = { 0, 1, 3 };
    const struct tare_str file = { .data = (const char *)data, .size = size };
    enum fuzz_depth depth = FUZZ_REFUSED;
    struct tare_tensor pixels;
    if (size >= 3 && memcmp(data, "GIF", 3) == 0) return gif(file);
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
        if (tare_image_decode(&pixels, file, TARE_IMAGE_ANY, channels[i]) != TARE_OK) continue;
        tare_tensor_reset(&pixels);
        depth = FUZZ_USED;
    }
    tare_error_clear();
    return depth;
}

/* ---- files of tare ---- */

/* A calibration that was read has one encoding, which reads as the same. */
static enum fuzz_depth calibration(const uint8_t *data, size_t size) {
    struct tare_calibration *first, *second;
    struct tare_strbuf once = { 0 }, again = { 0 };
    if (tare_calibration_decode(&first, data, size) != TARE_OK) return refused();
    if (tare_calibration_encode(&once, first) != TARE_OK) abort();
    if (tare_calibration_decode(&second, once.data, once.size) != TARE_OK) abort();
    if (tare_calibration_encode(&again, second) != TARE_OK) abort();
    if (once.size != again.size || memcmp(once.data, again.data, once.size) != 0) abort();
    tare_strbuf_free(&once);
    tare_strbuf_free(&again);
    tare_calibration_free(first);
    tare_calibration_free(second);
    return FUZZ_USED;
}

/* The state of a batch: the result of a job. */
static enum fuzz_depth state(const uint8_t *data, size_t size) {
    struct tare_arena arena = { 0 };
    struct tare_job_result result;
    enum fuzz_depth depth = FUZZ_READ;
    if (tare_job_result_load(&result, &arena, fuzz_file("state.json", data, size)) != TARE_OK)
        depth = refused();
    else
        depth = tare_job_result_save(&result, fuzz_path("again.json")) == TARE_OK ? FUZZ_USED : refused();
    tare_arena_free(&arena);
    return depth;
}

/* Two reports of a comparison or a batch, as text, HTML and JSON. */
static enum fuzz_depth diff(const uint8_t *data, size_t size) {
    static tare_status (*const writers[])(struct tare_strbuf *, const char *, const char *) = { tare_report_diff_text,
                                                                                                tare_report_diff_html,
                                                                                                tare_report_diff_json };
    const struct fuzz_part first = fuzz_part(data, size, 1), second = fuzz_part(data, size, 2);
    const char *one = fuzz_file("first.json", first.data, first.size);
    const char *other = fuzz_file("second.json", second.data, second.size);
    enum fuzz_depth depth = FUZZ_REFUSED;
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
        struct tare_strbuf text = { 0 };
        if (writers[i](&text, one, other) == TARE_OK) depth = FUZZ_USED;
        tare_strbuf_free(&text);
    }
    tare_error_clear();
    return depth;
}

static enum fuzz_depth options(const uint8_t *data, size_t size) {
    struct tare_arena arena = { 0 };
    struct tare_converter_options parsed;
    const tare_status status = tare_converter_options_parse(&parsed, &arena, (const char *)data, size, NULL);
    tare_error_clear();
    tare_arena_free(&arena);
    return status == TARE_OK ? FUZZ_USED : FUZZ_REFUSED;
}

static enum fuzz_depth recipe(const uint8_t *data, size_t size) {
    struct tare_arena arena = { 0 };
    struct tare_quant_recipe *rules;
    enum fuzz_depth depth = FUZZ_REFUSED;
    if (tare_quant_recipe_new(&rules, &arena) == TARE_OK &&
        tare_quant_recipe_read(rules, (const char *)data, size, "recipe") == TARE_OK)
        depth = tare_quant_recipe_count(rules) || tare_quant_recipe_options(rules)->given ? FUZZ_USED : FUZZ_READ;
    tare_error_clear();
    tare_arena_free(&arena);
    return depth;
}

static enum fuzz_depth jobs(const uint8_t *data, size_t size) {
    struct tare_arena arena = { 0 };
    struct tare_jobs read;
    const tare_status status = tare_jobs_read(&read, &arena, fuzz_file("jobs.txt", data, size));
    tare_error_clear();
    tare_arena_free(&arena);
    return status == TARE_OK ? FUZZ_USED : FUZZ_REFUSED;
}

static void repair_executed(uint8_t *data, size_t size) {
    repair_checkpoint(data, size, 2);
}

const struct fuzz_target fuzz_targets[] = {
    { .name = "saved_model", .run = saved_model, .is_message = true, .largest = 16384 },
    { .name = "saved_model_text", .run = saved_model_text, .largest = 16384 },
    { .name = "chunked", .run = chunked, .repair = repair_riegeli, .largest = 16384 },
    { .name = "checkpoint", .run = checkpoint, .is_message = true, .repair = repair_variables, .largest = 4096 },
    { .name = "tfrecord", .run = records, .repair = repair_tfrecord, .largest = 4096 },
    { .name = "example", .run = example, .is_message = true, .largest = 4096 },
    { .name = "npy", .run = npy, .largest = 1024 },
    { .name = "npz", .run = npz, .repair = repair_zip, .largest = 2048 },
    { .name = "csv", .run = csv, .largest = 1024 },
    { .name = "image", .run = image, .repair = repair_image, .largest = 2048 },
    { .name = "calibration", .run = calibration, .repair = repair_calibration, .largest = 8192 },
    { .name = "state", .run = state, .largest = 2048 },
    { .name = "options", .run = options, .largest = 2048 },
    { .name = "recipe", .run = recipe, .largest = 1024 },
    { .name = "jobs", .run = jobs, .largest = 2048 },
    { .name = "module", .run = fuzz_module, .largest = 8192 },
    { .name = "export", .run = fuzz_export, .largest = 8192 },
    { .name = "pattern", .run = fuzz_pattern, .is_message = true, .largest = 1024 },
    { .name = "diff", .run = diff, .is_message = true, .largest = 32768 },
    { .name = "execute", .run = fuzz_execute, .is_message = true, .repair = repair_executed, .largest = 32768 },
    { 0 },
};
