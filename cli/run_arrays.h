/* The arrays that `tare run --input NAME=FILE.npy` gives a signature, which runs once, or once for each part of as many
 * rows as its inputs have. */
#ifndef TARE_CLI_RUN_ARRAYS_H
#define TARE_CLI_RUN_ARRAYS_H

#include "base/option.h"
#include "cli/run_outputs.h"
#include "interpreter/session.h"

struct tare_run_arrays {
    const char **keys;
    struct tare_tensor *values;
    size_t count;
};

/* Free them also after a failure. */
tare_status tare_run_arrays_read(struct tare_run_arrays *out, const struct tare_option_list *inputs) TARE_WARN_UNUSED;
void tare_run_arrays_free(struct tare_run_arrays *arrays);
/* Drops the arrays that repeat values bound in the function: tare_function_pick has compared them. */
tare_status tare_run_arrays_drop_bound(struct tare_run_arrays *arrays,
                                       const struct tare_graph *function) TARE_WARN_UNUSED;
/* Without arrays and data: an error that lists all ways to provide the inputs, if the signature needs any. */
tare_status tare_run_arrays_missing(const struct tare_signature *signature) TARE_WARN_UNUSED;
/* Checks the names of the arrays, runs the signature on them and passes its results to `outputs`. */
tare_status tare_run_arrays_run(struct tare_run_outputs *outputs, const struct tare_run_arrays *arrays,
                                struct tare_session *session, const struct tare_signature *signature) TARE_WARN_UNUSED;

#endif
