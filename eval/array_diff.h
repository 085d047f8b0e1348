/* Comparison of two folders of .npy files, such as the outputs of two models by `tare run --output-dir`: files of one
 * name are compared as arrays. Or of two .npy files. */
#ifndef TARE_EVAL_ARRAY_DIFF_H
#define TARE_EVAL_ARRAY_DIFF_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One file name. Figures are of the second array against the first; NaN unless both are real numbers of one shape. */
struct tare_array_difference {
    const char *name;
    const char *first, *second; /* "float32[100,10]"; NULL: missing */
    bool same;                  /* same dtype, shape and bits */
    double sqnr_db, max_abs_error, mean_abs_error, cosine;
    int64_t max_abs_index; /* row (index of the first axis) of the largest difference */
};

struct tare_array_diff {
    struct tare_arena arena;
    const char *first, *second;          /* borrowed */
    struct tare_array_difference *files; /* all, by name */
    size_t count, n_differing;
    size_t text_width; /* characters per line that the table should fit into; 0: unlimited. Set by the caller */
};

/* True for a folder that has .npy files, and for a .npy file. */
bool tare_array_diff_is_arrays(const char *path);
/* Reads two arrays at a time. TARE_INVALID_ARGUMENT when neither folder has .npy files, or one path is a file and the
 * other a folder; errors of a file name it. The caller frees `out`, also after a failure. */
tare_status tare_array_diff_make(struct tare_array_diff *out, const char *first, const char *second) TARE_WARN_UNUSED;
void tare_array_diff_free(struct tare_array_diff *diff);

struct tare_strbuf;
void tare_array_diff_text(struct tare_strbuf *out, const struct tare_array_diff *diff);
void tare_array_diff_html(struct tare_strbuf *out, const struct tare_array_diff *diff);
tare_status tare_array_diff_json(struct tare_strbuf *out, const struct tare_array_diff *diff) TARE_WARN_UNUSED;

#endif
