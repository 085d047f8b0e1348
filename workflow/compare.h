/* Comparing float with quantized models as users put it: the options as rows, for `tare compare` and for the texts of
 * the public functions, and the work that follows from them. What is printed of it is eval/comparison.h's. */
#ifndef TARE_WORKFLOW_COMPARE_H
#define TARE_WORKFLOW_COMPARE_H

#include "base/option.h"
#include "eval/comparison.h"
#include "eval/sensitivity.h"
#include "eval/variant.h"
#include "graph/op.h"
#include "workflow/autotune.h"
#include "workflow/quantize.h"
#include "workflow/mixed_precision_search.h"

struct tare_comparing_options {
    /* by the rows */
    const char *methods, *algorithms, *granularities, *signature, *label;
    int chip; /* index into tare_tpu_chips */
    int64_t chip_batch;
    int64_t limit, sensitivity_limit, sensitivity_memory; /* megabytes */
    struct tare_layer_options layers;
    struct tare_targeting_options target;
    int bits, batch, threads;
    bool sensitivity, automatic;
};

/* Names of tpu/chips.h, in its order. */
extern const char *const tare_comparing_chips[];

#define TARE_COMPARING_ROW(type, member, kind_, field)                                                                 \
    .kind = TARE_OPTION_##kind_, .offset = offsetof(type, member) + offsetof(struct tare_comparing_options, field)
/* The rows, for options that have a struct tare_comparing_options `member`. */
#define TARE_COMPARING_OPTIONS(type, member)                                                                           \
    { .name = "methods",                                                                                               \
      TARE_COMPARING_ROW(type, member, STRING, methods),                                                               \
      .fallback = "float,static,weight_only",                                                                          \
      .placeholder = "M,…",                                                                                            \
      .help = "methods to compare; with +bfloat16 the rest is computed in bfloat16, with +PASS an accuracy pass runs " \
              "(equalization, smooth_quant, weight_clipping, gptq, bias_correction)" },                                \
        { .name = "algorithms",                                                                                        \
          TARE_COMPARING_ROW(type, member, STRING, algorithms),                                                        \
          .fallback = "min_max",                                                                                       \
          .placeholder = "A,…",                                                                                        \
          .help = "range algorithms, each with its parameters: percentile:p=99.9" },                                   \
        { .name = "granularities",                                                                                     \
          TARE_COMPARING_ROW(type, member, STRING, granularities),                                                     \
          .fallback = "per_channel",                                                                                   \
          .placeholder = "G,…",                                                                                        \
          .help = "scales of the weights: per_channel, per_tensor, per_block:N" },                                     \
        { .name = "bits",                                                                                              \
          TARE_COMPARING_ROW(type, member, INT, bits),                                                                 \
          .fallback = "8",                                                                                             \
          .min = 4,                                                                                                    \
          .max = 8,                                                                                                    \
          .help = "bits of the weights: 8 or 4" },                                                                     \
        { .name = "signature",                                                                                         \
          TARE_COMPARING_ROW(type, member, STRING, signature),                                                         \
          .placeholder = "S",                                                                                          \
          .help = "signature to run (default serving_default)" },                                                      \
        { .name = "label",                                                                                             \
          TARE_COMPARING_ROW(type, member, STRING, label),                                                             \
          .fallback = "label",                                                                                         \
          .placeholder = "KEY",                                                                                        \
          .help = "key of the class index in the records, or of an output: what it should be" },                       \
        TARE_LAYER_OPTIONS(type, member.layers),                                                                       \
        { .name = "limit",                                                                                             \
          TARE_COMPARING_ROW(type, member, INT64, limit),                                                              \
          .min = 0,                                                                                                    \
          .max = 1e15,                                                                                                 \
          .help = "records to measure with (default all)" },                                                           \
        { .name = "batch",                                                                                             \
          TARE_COMPARING_ROW(type, member, INT, batch),                                                                \
          .fallback = "8",                                                                                             \
          .min = 1,                                                                                                    \
          .max = 65536,                                                                                                \
          .help = "samples to run together" },                                                                         \
        { .name = "sensitivity",                                                                                       \
          TARE_COMPARING_ROW(type, member, FLAG, sensitivity),                                                         \
          .help = "also measure layer by layer what the first quantizing method loses" },                              \
        { .name = "sensitivity-limit",                                                                                 \
          TARE_COMPARING_ROW(type, member, INT64, sensitivity_limit),                                                  \
          .fallback = "200",                                                                                           \
          .min = 1,                                                                                                    \
          .max = 1e15,                                                                                                 \
          .help = "records for that" },                                                                                \
        { .name = "sensitivity-memory",                                                                                \
          TARE_COMPARING_ROW(type, member, INT64, sensitivity_memory),                                                 \
          .fallback = "1000",                                                                                          \
          .min = 0,                                                                                                    \
          .max = 1e9,                                                                                                  \
          .placeholder = "MB",                                                                                         \
          .help =                                                                                                      \
              "memory for activations that models with the same first layers share; 0: every model runs as a whole" }, \
        { .name = "chip",                                                                                              \
          TARE_COMPARING_ROW(type, member, CHOICE, chip),                                                              \
          .fallback = "v5e",                                                                                           \
          .choices = tare_comparing_chips,                                                                             \
          .help = "Cloud TPU that times are estimated for" },                                                          \
        { .name = "chip-batch",                                                                                        \
          TARE_COMPARING_ROW(type, member, INT64, chip_batch),                                                         \
          .fallback = "1",                                                                                             \
          .min = 1,                                                                                                    \
          .max = 65536,                                                                                                \
          .help = "records that run together there" },                                                                 \
        { .name = "auto",                                                                                              \
          TARE_COMPARING_ROW(type, member, FLAG, automatic),                                                           \
          .help = "also measure what is chosen for the first quantizing method: algorithm, passes and exceptions by "  \
                  "layer" },                                                                                           \
        TARE_TARGETING_OPTIONS(type, member.target), {                                                                 \
        .name = "threads", TARE_COMPARING_ROW(type, member, INT, threads), .min = 0, .max = 1024,                      \
        .help = "workers (default: one a processor)"                                                                   \
    }

/* What is compared; everything is borrowed. */
struct tare_comparing_task {
    const char *model;                  /* SavedModel directory */
    const struct tare_op_registry *ops; /* that it is opened with; NULL: the built-in ones */
    const char *const *data;            /* records to measure with */
    size_t n_data;
    const char *const *calibration_data; /* representative samples … */
    size_t n_calibration_data;
    const char *calibration_file;         /* … or a calibration file … */
    struct tare_calibration *calibration; /* … or a calibration of the prepared model */
    const struct tare_dataset_spec *spec; /* what records become; NULL: they are samples */
    bool quiet;                           /* no progress on standard error */
    void (*told)(void *arg, const char *label, int64_t done,
                 int64_t total); /* of progress (base/progress.h); NULL: not */
    void *told_arg;
    const volatile sig_atomic_t *interrupted; /* NULL: never */
};

/* A comparison with all that its reports show. */
struct tare_comparing {
    const struct tare_comparing_options *options;
    const struct tare_comparing_task *task;
    struct tare_variant_list variants;
    struct tare_comparison result;
    struct tare_sensitivity sensitivity; /* when asked for, and no target is */
    struct tare_automatic automatic;     /* when asked for; its row is the last */
    struct tare_targeting targeting;     /* when a target is given; of the first method that quantizes */
    struct tare_runner_options runner;
    struct tare_calibration *calibration; /* in use; NULL: no method asks for one */
    bool owns_calibration;
};

/* Reads the options and checks what cannot go together. End with tare_comparing_close, also after a failure. */
tare_status tare_comparing_open(struct tare_comparing *out, const struct tare_comparing_options *options,
                                const struct tare_comparing_task *task) TARE_WARN_UNUSED;
void tare_comparing_close(struct tare_comparing *comparing);
/* Calibrates when a method asks for it, and runs float and every variant over the records. */
tare_status tare_comparing_run(struct tare_comparing *comparing) TARE_WARN_UNUSED;
/* Notes a file that was written of the comparison, with its hash, among what the reports say of its making. */
tare_status tare_comparing_wrote(struct tare_comparing *comparing, const char *what, const char *path) TARE_WARN_UNUSED;
/* Instead of that: what would run, on how many records, and the time and memory that it would take by one batch of the
 * float model. Reads all records, writes nothing. */
struct tare_strbuf;
tare_status tare_comparing_plan(struct tare_strbuf *out, struct tare_comparing *comparing) TARE_WARN_UNUSED;
/* The first variant that quantizes; NULL: none does. */
const struct tare_variant *tare_comparing_first_quantizing(const struct tare_comparing *comparing);

#endif
