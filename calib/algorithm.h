/* Calibration algorithms: choose the clipping range of a tensor from its statistics. Each is a pure function and one
 * row in one file of calib/algos/. */
#ifndef TARE_CALIB_ALGORITHM_H
#define TARE_CALIB_ALGORITHM_H

#include "calib/qparams.h"

struct tare_bins;       /* calib/bins.h */
struct tare_statistics; /* calib/statistics.h */
struct tare_strbuf;

struct tare_range {
    double low, high;   /* finite, low <= high */
    int64_t candidates; /* number of ranges compared; 1 if there is no search */
};

struct tare_algorithm_parameter {
    const char *name; /* NULL ends the list */
    double fallback, min, max;
    const char *help;
};
enum { TARE_ALGORITHM_PARAMETERS = 4 };

struct tare_algorithm {
    const char *name;
    const char *help; /* one sentence without full stop */
    struct tare_algorithm_parameter parameters[TARE_ALGORITHM_PARAMETERS];
    const char *const *tensorflow_names; /* equivalent CalibrationMethod values, terminated by NULL; NULL: none */
    /* `values` are the parameters in the row's order. The result depends on the arguments only. */
    tare_status (*range)(struct tare_range *out, const struct tare_statistics *statistics, const struct tare_bins *bins,
                         const double *values, const struct tare_qscheme *scheme);
    bool of_extremes; /* of the bins, `range` reads low and high only */
    bool of_integers; /* the codes are equally far apart, which those of float8 are not */
};

/* An algorithm with its parameters. All zero is the default, min_max. */
struct tare_algorithm_choice {
    const struct tare_algorithm *row;
    double values[TARE_ALGORITHM_PARAMETERS];
};

/* "percentile", "percentile:p=99.99", "percentile:min_percentile=0.01,max_percentile=99.9", or TensorFlow's name
 * (CALIBRATION_METHOD_HISTOGRAM_PERCENTILE). For TARE_USAGE the message names the error and the nearest or all known
 * names. */
tare_status tare_algorithm_parse(struct tare_algorithm_choice *out, const char *text) TARE_WARN_UNUSED;
/* "min_max,percentile:p=99.9,mse": algorithms, separated by commas. An item with '=' but without ':' is another
 * parameter of the preceding algorithm. TARE_USAGE also for more than `most` algorithms and for duplicates. */
tare_status tare_algorithm_parse_list(struct tare_algorithm_choice *out, size_t *count, size_t most,
                                      const char *text) TARE_WARN_UNUSED;
/* Appends the name and the parameters that differ from their defaults: "percentile:p=99.9". */
void tare_algorithm_print(struct tare_strbuf *out, const struct tare_algorithm_choice *choice);
/* Whether both are the same algorithm with the same parameters. */
bool tare_algorithm_equal(const struct tare_algorithm_choice *a, const struct tare_algorithm_choice *b);
/* The rows, in the order of documentation, and their names, terminated by NULL. */
const struct tare_algorithm *const *tare_algorithm_list(size_t *count);
extern const char *const tare_algorithm_names[];

/* The clipping range; with scheme->symmetric it is symmetric. TARE_NOT_FOUND if the tensor has no finite values. */
tare_status tare_algorithm_range(struct tare_range *out, const struct tare_algorithm_choice *choice,
                                 const struct tare_statistics *statistics,
                                 const struct tare_qscheme *scheme) TARE_WARN_UNUSED;
/* The same on existing bins of these statistics, to run several algorithms on one tensor. */
tare_status tare_algorithm_range_of_bins(struct tare_range *out, const struct tare_algorithm_choice *choice,
                                         const struct tare_statistics *statistics, const struct tare_bins *bins,
                                         const struct tare_qscheme *scheme) TARE_WARN_UNUSED;

/* The quantization error of a range on its grid, computed from the histogram. */
struct tare_range_quality {
    double rounding_mse, clipping_mse; /* per finite value; their sum is the total error */
    double clipped;                    /* share of the finite values outside the grid, 0 … 1 */
    double sqnr_db;                    /* 10 log10(mean square / error); HUGE_VAL without error */
};
struct tare_range_quality tare_range_quality_of(const struct tare_range *range, const struct tare_bins *bins,
                                                const struct tare_qscheme *scheme);

#endif
