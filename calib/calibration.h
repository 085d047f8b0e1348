/* A calibration: the statistics of all observed tensors of one prepared model, which records they come from, and which
 * functions those reached. What calibrate fills, the calibration file holds, merge adds up and quantization asks.
 *
 * Everything in it is sorted by name, so that equal contents are equal in every byte of the file. */
#ifndef TARE_CALIB_CALIBRATION_H
#define TARE_CALIB_CALIBRATION_H

#include "calib/coverage.h"
#include "calib/hessian.h"
#include "calib/record_set.h"
#include "calib/statistics.h"
#include "graph/graph.h"

/* A record that was skipped because it could not be converted to a sample. */
struct tare_calibration_bad {
    int64_t record, offset; /* number in its file; where it begins, in the uncompressed stream */
    char *reason;           /* "corrupt", "truncated", "undecodable", "refused" */
    char *text;             /* the whole error, without the file's name */
};

/* One file of samples for one signature. */
struct tare_calibration_input {
    char *signature, *file;
    struct tare_record_set records;   /* that were counted */
    struct tare_calibration_bad *bad; /* by record */
    size_t n_bad, bad_capacity;
};

struct tare_calibration_tensor {
    char *function, *node; /* function "" is the main graph */
    int output;
    struct tare_statistics statistics;
};

struct tare_calibration_function {
    char *name;
    int64_t records; /* that reached it */
};

struct tare_calibration {
    uint64_t fingerprint[2]; /* of the prepared model (calib/fingerprint.h) */
    char *settings;          /* what was observed, as the caller puts it: "observe=quantizable"; never NULL */
    bool channels;           /* statistics per channel are kept */
    char *unfinished;        /* of the state of an interrupted run: what it was asked to do; NULL for a finished one */
    struct tare_calibration_input *inputs; /* by signature, then file */
    size_t n_inputs, inputs_capacity;
    struct tare_calibration_tensor **tensors; /* by function, node, output; those that were never reached, too */
    size_t n_tensors, tensors_capacity;
    struct tare_calibration_function *functions; /* by name */
    size_t n_functions, functions_capacity;
    struct tare_coverage coverage;  /* where one of several functions is chosen */
    struct tare_hessians *hessians; /* of a second look at the samples (calib/hessian.h); NULL: none. Not in the file */
};

/* An empty one; NULL: no memory. */
struct tare_calibration *tare_calibration_new(const uint64_t fingerprint[2], const char *settings, bool channels);
void tare_calibration_free(struct tare_calibration *calibration);

/* Adds what is not there. The index of an input may change with every input added; `index` may be NULL. */
tare_status tare_calibration_add_input(struct tare_calibration *calibration, const char *signature, const char *file,
                                       int32_t *index) TARE_WARN_UNUSED;
/* Notes a record that was passed over, with copies of the texts; nothing when that record is noted already. */
tare_status tare_calibration_add_bad(struct tare_calibration *calibration, int32_t input,
                                     const struct tare_calibration_bad *bad) TARE_WARN_UNUSED;
tare_status tare_calibration_add_tensor(struct tare_calibration *calibration, const char *function, const char *node,
                                        int output, struct tare_calibration_tensor **out) TARE_WARN_UNUSED;
tare_status tare_calibration_add_function(struct tare_calibration *calibration, const char *name,
                                          struct tare_calibration_function **out) TARE_WARN_UNUSED;
/* Gives what was counted of a tensor to another node of its function, whose own counts must not be there; "": to none.
 * Nothing when the tensor was not counted. */
tare_status tare_calibration_rename_tensor(struct tare_calibration *calibration, const char *function, const char *node,
                                           int output, const char *name) TARE_WARN_UNUSED;
/* -1, NULL when there is none. */
int32_t tare_calibration_find_input(const struct tare_calibration *calibration, const char *signature,
                                    const char *file);
const struct tare_calibration_tensor *tare_calibration_find(const struct tare_calibration *calibration,
                                                            const char *function, const char *node, int output);
const struct tare_calibration_tensor *tare_calibration_find_edge(const struct tare_calibration *calibration,
                                                                 struct tare_edge edge);

/* How many records reached a function; 0 also when the calibration does not know it. The main graph: all. */
int64_t tare_calibration_function_records(const struct tare_calibration *calibration, const char *name);
/* Records counted, over all inputs. */
int64_t tare_calibration_records(const struct tare_calibration *calibration);
/* Those of one signature. */
int64_t tare_calibration_signature_records(const struct tare_calibration *calibration, const char *signature);
/* Records passed over, over all inputs. */
int64_t tare_calibration_bad_records(const struct tare_calibration *calibration);
size_t tare_calibration_bytes(const struct tare_calibration *calibration);

/* Adds another's counts. Refused, with no change: another model, other settings (TARE_INVALID_ARGUMENT), a record that
 * both have counted, an unfinished one. When memory runs out or a count
 * overflows, the calibration is of no more use. */
tare_status tare_calibration_merge(struct tare_calibration *calibration,
                                   const struct tare_calibration *other) TARE_WARN_UNUSED;

#endif
