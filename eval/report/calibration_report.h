/* The report of a calibration, computed once and printed as text, JSON or HTML: tensors and the records of their
 * extremes, the range of each algorithm and its error on the integer grid, convergence of ranges with the number of
 * records, branch coverage, and warnings. */
#ifndef TARE_EVAL_REPORT_CALIBRATION_REPORT_H
#define TARE_EVAL_REPORT_CALIBRATION_REPORT_H

#include "calib/algorithm.h"
#include "calib/quantization_error.h"
#include "calib/convergence.h"
#include "calib/warnings.h"

struct tare_strbuf;

enum {
    TARE_CALIBRATION_REPORT_ALGORITHMS = 16,
    TARE_CALIBRATION_REPORT_COLUMNS = 160, /* of a drawn histogram */
};

struct tare_calibration_report_options {
    const char *algorithms;     /* tare_algorithm_parse_list; NULL: every one with its own parameters */
    const char *tensors;        /* POSIX extended regular expression on "function/node:output"; NULL: all */
    struct tare_qscheme scheme; /* bits 0: tare_qscheme_activation */
};

/* The range of one algorithm on the scheme's grid. */
struct tare_calibration_report_range {
    struct tare_range range;
    struct tare_qparams grid;
    struct tare_range_quality quality;
};

struct tare_calibration_report_tensor {
    const struct tare_calibration_tensor *tensor;
    const char *name; /* "function/node:output"; "node:output" in the main graph, or when all are in one function */
    int64_t elements, not_finite;
    bool has_range; /* finite values were observed: the fields below are set */
    double low, high;
    double mean, rms;                             /* of the finite values */
    struct tare_calibration_report_range *ranges; /* one per algorithm */
    struct tare_convergence_point *points;
    size_t n_points;
    /* Counts of finite nonzero values in columns of equal width from plot_low to plot_high, a range that contains zero.
     */
    double plot_low, plot_high;
    double *columns;
};

struct tare_calibration_report {
    struct tare_arena arena;
    const struct tare_calibration *calibration; /* borrowed */
    const char *title;                          /* borrowed: name of the calibration */
    struct tare_qscheme scheme;
    struct tare_algorithm_choice choices[TARE_CALIBRATION_REPORT_ALGORITHMS];
    const char *algorithms[TARE_CALIBRATION_REPORT_ALGORITHMS]; /* with their parameters */
    size_t n_algorithms;
    const char *function;                           /* the function that has all tensors; NULL: several */
    struct tare_calibration_report_tensor *tensors; /* the requested tensors */
    size_t n_tensors;
    struct tare_calibration_warning_list warnings; /* of all tensors */
    size_t text_width; /* characters per line that tables should fit into; 0: unlimited. Set by the caller */
};

/* TARE_USAGE for an unknown algorithm or an invalid regular expression. Release with tare_calibration_report_free, also
 * after a failure. */
tare_status tare_calibration_report_make(struct tare_calibration_report *out,
                                         const struct tare_calibration *calibration, const char *title,
                                         const struct tare_calibration_report_options *options) TARE_WARN_UNUSED;
void tare_calibration_report_free(struct tare_calibration_report *report);

/* Aligned tables, warnings last. `colour`: with terminal escape sequences. */
void tare_calibration_report_text(struct tare_strbuf *out, const struct tare_calibration_report *report, bool colour);
tare_status tare_calibration_report_json(struct tare_strbuf *out,
                                         const struct tare_calibration_report *report) TARE_WARN_UNUSED;
/* One HTML page without external references. */
void tare_calibration_report_html(struct tare_strbuf *out, const struct tare_calibration_report *report);

/* Cards with histogram, convergence and ranges of each tensor, for use in other pages. */
void tare_calibration_report_histograms(struct tare_strbuf *out, const struct tare_calibration_report *report);

/* The id of a tensor's card, for links (eval/report/page.h). */
void tare_calibration_report_put_id(struct tare_strbuf *out, const char *function, const char *node, int output);

/* Number formats that text and page share. */
enum { TARE_CALIBRATION_NUMBER = 48 };
const char *tare_calibration_value_text(char text[TARE_CALIBRATION_NUMBER], double value);  /* 5 digits */
const char *tare_calibration_sqnr_text(char text[TARE_CALIBRATION_NUMBER], double sqnr_db); /* "41.27"; "exact" */
const char *tare_calibration_share_text(char text[TARE_CALIBRATION_NUMBER], double share);  /* "0.013%" */
const char *tare_calibration_count_text(char text[TARE_CALIBRATION_NUMBER], int64_t count); /* "1,204,224" */
/* "17"; with several inputs "2:17": the number of the input, from 1, and of the record, from 0. */
const char *tare_calibration_record_text(char text[TARE_CALIBRATION_NUMBER], const struct tare_calibration *calibration,
                                         int32_t input, int64_t record);

#endif
