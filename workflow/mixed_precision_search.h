/* Mixed precision to a target, as users put it: options as rows, for `tare compare` and `tare quantize`, and the search
 * on a real model. */
#ifndef TARE_WORKFLOW_MIXED_PRECISION_SEARCH_H
#define TARE_WORKFLOW_MIXED_PRECISION_SEARCH_H

#include "base/option.h"
#include "eval/target.h"

struct tare_targeting_options {
    const char *max_drop, *min_sqnr, *max_size; /* NULL: not expected */
};

#define TARE_TARGETING_ROW(type, member, field)                                                                        \
    .kind = TARE_OPTION_STRING, .offset = offsetof(type, member) + offsetof(struct tare_targeting_options, field)
/* The rows, for options that have a struct tare_targeting_options `member`. */
#define TARE_TARGETING_OPTIONS(type, member)                                                                           \
    { .name = "max-drop",                                                                                              \
      TARE_TARGETING_ROW(type, member, max_drop),                                                                      \
      .placeholder = "POINTS",                                                                                         \
      .help = "leave the fewest layers in float with which top-1 is at most so much below the float model's" },        \
        { .name = "min-sqnr",                                                                                          \
          TARE_TARGETING_ROW(type, member, min_sqnr),                                                                  \
          .placeholder = "DB",                                                                                         \
          .help = "the same for records without labels: the first output has at least this SQNR" },                    \
    {                                                                                                                  \
        .name = "max-size", TARE_TARGETING_ROW(type, member, max_size), .placeholder = "SIZE",                         \
        .help = "weights of at most this size: bytes, 300kB, 1.5MB, or a share of the float model's as 60%"            \
    }

/* Some target is given. */
bool tare_targeting_wanted(const struct tare_targeting_options *options);

/* What is searched; everything is borrowed. */
struct tare_targeting_task {
    const struct tare_targeting_options *options;
    const char *model;                    /* SavedModel directory */
    const struct tare_op_registry *ops;   /* NULL: the built-in ones */
    const struct tare_variant *variant;   /* what layers become that are quantized */
    struct tare_calibration *calibration; /* NULL where the variant needs none */
    const char *signature, *label;
    const struct tare_runner_options *runner; /* records that finalists are measured with */
    int64_t sensitivity_limit;                /* of them for the sensitivity */
    int64_t sensitivity_memory;               /* of struct tare_sensitivity_task */
    int threads;
    bool quiet;
};

struct tare_targeting {
    struct tare_sensitivity sensitivity; /* of the variant */
    struct tare_target_result result;
};

/* `sensitivity`, of the variant, is taken over unless NULL; else it is measured. `out` is the caller's to end with
 * tare_targeting_close, also after a failure. A target that no mix meets is no failure: result.chosen is NULL. */
tare_status tare_targeting_run(struct tare_targeting *out, const struct tare_targeting_task *task,
                               struct tare_sensitivity *sensitivity) TARE_WARN_UNUSED;
void tare_targeting_close(struct tare_targeting *targeting);
/* TARE_NOT_FOUND with the best that is reached, where no mix meets the target. */
tare_status tare_targeting_check(const struct tare_targeting *targeting) TARE_WARN_UNUSED;

#endif
