/* The outputs of tare run: files in a folder, or a few values on standard output. */
#ifndef TARE_CLI_RUN_OUTPUTS_H
#define TARE_CLI_RUN_OUTPUTS_H

#include "graph/model.h"

struct tare_run_outputs;

/* `directory` NULL: prints values, or discards them if `silent`. Files are created with the first values.
 * `per_record`: writes separate files <output>.recN.npy for each record, with the record's own shape. */
tare_status tare_run_outputs_new(struct tare_run_outputs **out, const struct tare_signature *signature,
                                 const char *directory, bool silent, bool per_record);
/* Adds the outputs of one record, in signature order. */
tare_status tare_run_outputs_take(struct tare_run_outputs *outputs, const struct tare_tensor *values);
/* Renames all files to their final names. */
tare_status tare_run_outputs_commit(struct tare_run_outputs *outputs);
/* Removes uncommitted files. NULL is allowed. */
void tare_run_outputs_free(struct tare_run_outputs *outputs);

/* Describes output i. `path` is NULL if no file was written; the dtype is TARE_DT_INVALID if there was no value. */
struct tare_run_output {
    const char *key, *path;
    int dtype;
    struct tare_shape row; /* of one record; without the first dimension if rows are concatenated */
    bool stacked;
};
void tare_run_outputs_describe(struct tare_run_output *out, const struct tare_run_outputs *outputs, size_t i);

#endif
