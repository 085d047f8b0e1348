/* A calibration: the statistics of all observed tensors of one prepared model, the records that they come from, and
 * the functions that these reached. Filled by calibrate, stored in the calibration file, merged, and read by
 * quantization.
 *
 * Everything in it is sorted by name, so calibrations with equal contents have identical files. */
#ifndef TARE_CALIB_CALIBRATION_H
#define TARE_CALIB_CALIBRATION_H

#include "calib/coverage.h"
#include "calib/hessian.h"
#include "calib/record_set.h"
#include "calib/sample_digest.h"
#include "calib/statistics.h"
#include "graph/graph.h"

/* A record that was skipped because it could not be converted to a sample. */
struct tare_calibration_bad {
    int64_t record, offset; /* number in its file; its offset in the uncompressed stream */
    char *reason;           /* "corrupt", "truncated", "undecodable", "refused" */
    char *text;             /* the full error message, without the file's name */
};

/* One file of samples for one signature. */
struct tare_calibration_input {
    char *signature, *file;
    struct tare_record_set records;   /* that were counted */
    struct tare_calibration_bad *bad; /* by record */
    size_t n_bad, bad_capacity;
};

/* Of the samples of one signature, from all files. */
struct tare_calibration_digests {
    char *signature;
    struct tare_digest_set set;
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
    _Atomic int shares;      /* further owners (tare_calibration_share) */
    uint64_t fingerprint[2]; /* of the prepared model (calib/fingerprint.h) */
    char *settings;          /* what was observed, as set by the caller: "observe=quantizable"; never NULL */
    bool channels;           /* per-channel statistics are kept */
    char *unfinished;        /* of an interrupted run: its task; NULL for a finished one */
    struct tare_calibration_input *inputs; /* by signature, then file */
    size_t n_inputs, inputs_capacity;
    struct tare_calibration_digests *digests; /* by signature; none in calibrations of older versions */
    size_t n_digests, digests_capacity;
    /* Sorted by function, node, output; includes tensors that were never reached. */
    struct tare_calibration_tensor **tensors;
    size_t n_tensors, tensors_capacity;
    struct tare_calibration_function *functions; /* by name */
    size_t n_functions, functions_capacity;
    size_t next_function;          /* the place after that of the function that was added last */
    struct tare_coverage coverage; /* control flow that selects one of several functions */
    struct tare_hessians
        *hessians; /* from a second pass over the samples (calib/hessian.h); NULL: none. Not stored in the file */
};

/* An empty one; NULL: no memory. */
struct tare_calibration *tare_calibration_new(const uint64_t fingerprint[2], const char *settings, bool channels);
/* Frees it for its last owner. */
void tare_calibration_free(struct tare_calibration *calibration);
/* Adds an owner, who releases it with tare_calibration_free. A calibration with several owners may not be changed.
 * Thread-safe. */
struct tare_calibration *tare_calibration_share(const struct tare_calibration *calibration);
/* A copy that can be changed. It shares the Hessians. TARE_INVALID_ARGUMENT for an
 * unfinished calibration. */
tare_status tare_calibration_duplicate(struct tare_calibration **out,
                                       const struct tare_calibration *calibration) TARE_WARN_UNUSED;

/* Adds an item unless it exists. The index of an input may change with every input added; `index` may be NULL. */
tare_status tare_calibration_add_input(struct tare_calibration *calibration, const char *signature, const char *file,
                                       int32_t *index) TARE_WARN_UNUSED;
/* Names the inputs of a calibration whose signatures have one each. */
tare_status tare_calibration_name_inputs(struct tare_calibration *calibration, const char *name) TARE_WARN_UNUSED;
/* *out changes with every signature added. */
tare_status tare_calibration_add_digests(struct tare_calibration *calibration, const char *signature,
                                         struct tare_digest_set **out) TARE_WARN_UNUSED;
/* NULL if there are none. */
const struct tare_digest_set *tare_calibration_find_digests(const struct tare_calibration *calibration,
                                                            const char *signature);
/* Adds a skipped record, copying the strings; does nothing if the record is already listed. */
tare_status tare_calibration_add_bad(struct tare_calibration *calibration, int32_t input,
                                     const struct tare_calibration_bad *bad) TARE_WARN_UNUSED;
tare_status tare_calibration_add_tensor(struct tare_calibration *calibration, const char *function, const char *node,
                                        int output, struct tare_calibration_tensor **out) TARE_WARN_UNUSED;
/* The statistics of one entry (calib/observed.h), a tensor with the name "node[entry]"; below 0: of all. */
tare_status tare_calibration_add_entry(struct tare_calibration *calibration, const char *function, const char *node,
                                       int output, int64_t entry,
                                       struct tare_calibration_tensor **out) TARE_WARN_UNUSED;
tare_status tare_calibration_add_function(struct tare_calibration *calibration, const char *name,
                                          struct tare_calibration_function **out) TARE_WARN_UNUSED;
/* Moves the statistics of a tensor to another node of its function, which must not have statistics; "": drops them.
 * Does nothing if the tensor was not observed. */
tare_status tare_calibration_rename_tensor(struct tare_calibration *calibration, const char *function, const char *node,
                                           int output, const char *name) TARE_WARN_UNUSED;
/* -1 or NULL if there is none. */
int32_t tare_calibration_find_input(const struct tare_calibration *calibration, const char *signature,
                                    const char *file);
const struct tare_calibration_tensor *tare_calibration_find(const struct tare_calibration *calibration,
                                                            const char *function, const char *node, int output);
const struct tare_calibration_tensor *tare_calibration_find_edge(const struct tare_calibration *calibration,
                                                                 struct tare_edge edge);
const struct tare_calibration_tensor *tare_calibration_find_entry(const struct tare_calibration *calibration,
                                                                  struct tare_edge edge, int64_t entry);

/* Number of records that reached a function; 0 also if the calibration does not contain it. The main graph: all. */
int64_t tare_calibration_function_records(const struct tare_calibration *calibration, const char *name);
/* Records counted, over all inputs. */
int64_t tare_calibration_records(const struct tare_calibration *calibration);
/* Those of one signature. */
int64_t tare_calibration_signature_records(const struct tare_calibration *calibration, const char *signature);
/* Records skipped, over all inputs. */
int64_t tare_calibration_bad_records(const struct tare_calibration *calibration);
size_t tare_calibration_bytes(const struct tare_calibration *calibration);

/* Adds another calibration's statistics. Rejected, without changes: another model, other settings
 * (TARE_INVALID_ARGUMENT), a record that both count, an unfinished calibration. After running out of memory or an
 * overflow of a count, the calibration is unusable. */
tare_status tare_calibration_merge(struct tare_calibration *calibration,
                                   const struct tare_calibration *other) TARE_WARN_UNUSED;

#endif
