/* What a calibration says, worked out once and shown as text, JSON or an HTML page: the tensors and where their
 * extremes come from, the range of each algorithm and what it costs on the integer grid, how ranges grow with the
 * number of records, which branches were reached, and warnings. */
#ifndef TARE_EVAL_REPORT_CALIBRATION_REPORT_H
#define TARE_EVAL_REPORT_CALIBRATION_REPORT_H

#include "calib/algorithm.h"
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
    bool has_range; /* finite values were seen: the fields below are filled */
    double low, high;
    double mean, rms;                             /* of the finite values */
    struct tare_calibration_report_range *ranges; /* one an algorithm */
    struct tare_convergence_point *points;
    size_t n_points;
    /* Finite values but zeros, over columns of equal width from plot_low to plot_high, zero among it. */
    double plot_low, plot_high;
    double *columns;
};

struct tare_calibration_report {
    struct tare_arena arena;
    const struct tare_calibration *calibration; /* borrowed */
    const char *title;                          /* borrowed: what the calibration is called */
    struct tare_qscheme scheme;
    struct tare_algorithm_choice choices[TARE_CALIBRATION_REPORT_ALGORITHMS];
    const char *algorithms[TARE_CALIBRATION_REPORT_ALGORITHMS]; /* with their parameters */
    size_t n_algorithms;
    const char *function;                           /* where all of the calibration's tensors are; NULL: in several */
    struct tare_calibration_report_tensor *tensors; /* those that were asked for */
    size_t n_tensors;
    struct tare_calibration_warning_list warnings; /* about all tensors */
    size_t text_width; /* characters of a line that tables should fit into; 0: any. The caller's to set */
};

/* TARE_USAGE for an unknown algorithm or a bad regular expression. End with tare_calibration_report_free, also after a
 * failure. */
tare_status tare_calibration_report_make(struct tare_calibration_report *out,
                                         const struct tare_calibration *calibration, const char *title,
                                         const struct tare_calibration_report_options *options) TARE_WARN_UNUSED;
void tare_calibration_report_free(struct tare_calibration_report *report);

/* Aligned tables; warnings last. `colour`: with terminal escapes. */
void tare_calibration_report_text(struct tare_strbuf *out, const struct tare_calibration_report *report, bool colour);
tare_status tare_calibration_report_json(struct tare_strbuf *out,
                                         const struct tare_calibration_report *report) TARE_WARN_UNUSED;
/* One page without references to the outside. */
void tare_calibration_report_html(struct tare_strbuf *out, const struct tare_calibration_report *report);

/* A card with histogram, convergence and ranges for each tensor, for a page that has more to show. */
void tare_calibration_report_histograms(struct tare_strbuf *out, const struct tare_calibration_report *report);

/* Numbers as text and page show them; they say the same. */
enum { TARE_CALIBRATION_NUMBER = 48 };
const char *tare_calibration_value_text(char text[TARE_CALIBRATION_NUMBER], double value);  /* 5 digits */
const char *tare_calibration_sqnr_text(char text[TARE_CALIBRATION_NUMBER], double sqnr_db); /* "41.27"; "exact" */
const char *tare_calibration_share_text(char text[TARE_CALIBRATION_NUMBER], double share);  /* "0.013%" */
const char *tare_calibration_count_text(char text[TARE_CALIBRATION_NUMBER], int64_t count); /* "1,204,224" */
/* "17", with several inputs "2:17": the input's number, from 1, and the record's, from 0. */
const char *tare_calibration_record_text(char text[TARE_CALIBRATION_NUMBER], const struct tare_calibration *calibration,
                                         int32_t input, int64_t record);

#endif
