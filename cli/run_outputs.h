/* The outputs of tare run: files in a folder, or a few values on standard output. */
#ifndef TARE_CLI_RUN_OUTPUTS_H
#define TARE_CLI_RUN_OUTPUTS_H

#include "base/option.h"
#include "graph/model.h"

struct tare_run_outputs;

/* The files of a folder. */
enum tare_run_outputs_form {
    TARE_RUN_OUTPUTS_JOINED,     /* <output>.npy with the rows of all records */
    TARE_RUN_OUTPUTS_PER_RECORD, /* <output>.recN.npy for each record, with the record's own shape */
    TARE_RUN_OUTPUTS_ONCE,       /* <output>.npy with the outputs of a single run, in their own shapes */
};

/* `directory` NULL: prints values, or discards them if `silent`. Files appear in the folder at the commit; until then
 * it is locked and they are in a temporary folder in it. */
tare_status tare_run_outputs_new(struct tare_run_outputs **out, const struct tare_signature *signature,
                                 const char *directory, enum tare_run_outputs_form form, bool silent);
/* Whether no file of the outputs, which are replaced, is one of the inputs: paths, patterns, or NAME=FILE. */
tare_status tare_run_outputs_check_apart(const struct tare_run_outputs *outputs,
                                         const struct tare_option_list *inputs) TARE_WARN_UNUSED;
/* Rows of the inputs are run `rows` at a time: outputs with as many rows are concatenated. Before the first take. */
void tare_run_outputs_join_rows(struct tare_run_outputs *outputs, int64_t rows);
/* Adds the outputs of one record, in signature order. */
tare_status tare_run_outputs_take(struct tare_run_outputs *outputs, const struct tare_tensor *values);
/* Completes all files and moves them to the folder. */
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
