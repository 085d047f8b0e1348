/* The outputs of tare run: files in a folder, or a few values on standard output. */
#ifndef TARE_CLI_RUN_OUTPUTS_H
#define TARE_CLI_RUN_OUTPUTS_H

#include "graph/model.h"

struct tare_run_outputs;

/* `directory` NULL: values are printed, or nothing is done with them when `silent`. Files are made as the first values
 * come. `per_record`: each record has files of its own, <output>.recN.npy, of the shape that it has. */
tare_status tare_run_outputs_new(struct tare_run_outputs **out, const struct tare_signature *signature,
                                 const char *directory, bool silent, bool per_record);
/* One record's values, in the signature's order. */
tare_status tare_run_outputs_take(struct tare_run_outputs *outputs, const struct tare_tensor *values);
/* Moves all files to their places. */
tare_status tare_run_outputs_commit(struct tare_run_outputs *outputs);
/* Takes away what was not committed. NULL is fine. */
void tare_run_outputs_free(struct tare_run_outputs *outputs);

/* What was written of output i; `path` is NULL when there is no file, the dtype invalid when no value came. */
struct tare_run_output {
    const char *key, *path;
    int dtype;
    struct tare_shape row; /* of one record; without the first dimension where rows are concatenated */
    bool stacked;
};
void tare_run_outputs_describe(struct tare_run_output *out, const struct tare_run_outputs *outputs, size_t i);

#endif
