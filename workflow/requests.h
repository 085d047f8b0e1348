/* What users request, as parsed from options: one struct and one option table per concern, shared by the commands and
 * by the option texts of the public functions. A command includes a table with TARE_OPTION_NESTED (base/option.h).
 *
 * A request holds the user's text unchanged, except for the plan (quant/plan.h), whose options are read at once.
 * Strings are borrowed from the command line or the option text. */
#ifndef TARE_WORKFLOW_REQUESTS_H
#define TARE_WORKFLOW_REQUESTS_H

#include "base/option.h"
#include "quant/plan.h"
#include "workflow/data_options.h"

/* How to calibrate. */
struct tare_calibrate_request {
    const char *signature, *function;
    int64_t limit, sample, seed, max_bad;
    int threads, batch;
    enum { TARE_OBSERVE_QUANTIZABLE, TARE_OBSERVE_ALL } observe;
    bool channels;
};
extern const struct tare_option tare_calibrate_rows[];

/* Targets of the mixed-precision search; NULL: not requested. */
struct tare_mixed_precision_request {
    const char *max_drop; /* points of the measure */
    const char *min_sqnr; /* dB */
    const char *max_mae;  /* mean absolute error against expected values */
    const char *max_size; /* bytes, with a unit, or a percentage of the float model */
};

/* The loss that is allowed to a recommended model, in points of the measure (eval/verdict.h); `needed`: see
 * base/option.h.
 */
#define TARE_MARGIN_OPTION(type, member, needed)                                                                       \
    {                                                                                                                  \
        .name = "margin", .kind = TARE_OPTION_DOUBLE, .offset = offsetof(type, member), .fallback = "1", .min = 0.001, \
        .max = 100, .needs = needed, .placeholder = "POINTS",                                                          \
        .help = "loss that a recommended model may have, with 95 % confidence: percentage points, hundredths of AUC "  \
                "and R², dB, percent of an error"                                                                     \
    }

/* How to quantize one model: the plan, its samples, and what is to be found by measuring (workflow/quantize.h). */
struct tare_quantize_request {
    struct tare_quant_plan plan;
    struct tare_option_list data;
    const char *calibration, *signature;
    struct tare_data_options records;
    int64_t limit;
    bool automatic;
    struct tare_mixed_precision_request target;
    struct tare_option_list eval;
    const char *label, *target_key, *write_recipe;
    int metric; /* 0: inferred, else 1 + enum tare_measure_kind */
    double margin;
    bool allow_unquantized;
    int chip;            /* 0: any; otherwise 1 + index into tare_tpu_chips: quantize what becomes faster on it */
    int64_t batch;       /* on that chip */
    bool prefers_float8; /* set: the chip chose the format */
};
extern const struct tare_option tare_quantize_rows[];

/* What to compare. */
struct tare_compare_request {
    const char *methods; /* NULL: float, and static and weight_only unless models are given */
    const char *algorithms, *granularities, *signature, *label;
    struct tare_option_list with; /* folders of further models: converted, quantized */
    const char *target_key;       /* record key of expected values; NULL: none */
    int metric;                   /* 0: inferred, else 1 + enum tare_measure_kind */
    double margin;
    int chip; /* index into tare_tpu_chips */
    int64_t chip_batch;
    bool compile;                     /* ask Google's compiler, and recommend the fastest model */
    int64_t limit, sensitivity_limit; /* records */
    struct tare_quant_plan plan;      /* of all variants, without method, granularity, algorithm and passes */
    struct tare_mixed_precision_request target;
    int batch, threads;
    bool sensitivity, automatic, rest;
};
extern const struct tare_option tare_compare_rows[];

#endif
