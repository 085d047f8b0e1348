/* Calibrations: activation statistics of a model over representative samples. One calibration serves every quantization
 * method and calibration algorithm; it is byte-identical for any number of threads and any batch size.
 *
 * `options` are the options of `tare calibrate` without dashes, separated by spaces, values with spaces in double
 * quotes: "threads=4 observe=all". NULL and "" mean the defaults. docs/library.md lists them. */
#ifndef TARE_CALIBRATION_H
#define TARE_CALIBRATION_H

#include "model.h"
#include "records.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Thread-safe: an addition replaces the statistics, with a lock, and does not change them. */
typedef struct tare_calibration_handle tare_calibration;
/* Thread-compatible: samples are in the order of the calls. */
typedef struct tare_calibrator_handle tare_calibrator;

/* Runs the samples of files through the model. A path is a file or a pattern, optionally with a signature in front:
 * "encode=e.tfrecord". TARE_ERROR_INVALID_ARGUMENT if the files have no records. Release *out with
 * tare_calibration_close. */
TARE_API TARE_CHECKED tare_status tare_model_calibrate(tare_calibration **out, const tare_model *model,
                                                       const char *const *paths, size_t n_paths, const char *options);
/* The option state=FILE of the functions here saves the statistics every few seconds, and when the call is cancelled. A
 * later call with the same option and data skips the records that the file contains; it removes the file when all are
 * done. Not for models with state, and not with hessians. */

/* The same for records that a callback supplies, matched to the inputs like records of files. Memory does not depend on
 * the number of records. The options hessians and function read them from a temporary file in $TMPDIR, else /tmp.
 * Additional option: name, as for tare_calibrator_open (default: the name of the records). */
TARE_API TARE_CHECKED tare_status tare_model_calibrate_records(tare_calibration **out, const tare_model *model,
                                                               const tare_records *records, const char *options);

/* Starts a calibration with samples from the caller's memory. Worker threads run while the caller supplies samples; one
 * thread at a time may push. Additional option: name=N, the name of the samples in the calibration (default "memory");
 * calibrations that are to be added need different names. Release it with tare_calibrator_close. */
TARE_API TARE_CHECKED tare_status tare_calibrator_open(tare_calibrator **out, const tare_model *model,
                                                       const char *options);
/* Adds one sample: an array for each input of the signature, as for tare_runner_run. The arrays are copied. Waits while
 * the queue of the workers is full. A sample that does not match the signature is refused and can be corrected; any
 * other failure is the failure of an earlier sample, and final. */
TARE_API TARE_CHECKED tare_status tare_calibrator_push(tare_calibrator *calibrator, const tare_array *inputs,
                                                       size_t n_inputs);
/* Waits for the workers and returns the calibration (release: tare_calibration_close). The calibrator accepts no more
 * samples. TARE_ERROR_INVALID_ARGUMENT if no sample was added. */
TARE_API TARE_CHECKED tare_status tare_calibrator_finish(tare_calibration **out, tare_calibrator *calibrator);
/* Frees the calibrator, finished or not: an unfinished one with the option state saves the samples so far. No-op if
 * NULL. */
TARE_API void tare_calibrator_close(tare_calibrator *calibrator);

/* Reads a calibration file (tare_calibration_write, `tare calibrate`). Whether it belongs to a model is checked when it
 * is used with one. Release *out with tare_calibration_close. */
TARE_API TARE_CHECKED tare_status tare_calibration_open(tare_calibration **out, const char *path);
/* Frees the calibration. No-op if NULL. */
TARE_API void tare_calibration_close(tare_calibration *calibration);
/* Writes the calibration file atomically: after a crash the path has the old contents or the new. */
TARE_API TARE_CHECKED tare_status tare_calibration_write(const tare_calibration *calibration, const char *path);
/* Adds the statistics of `other`. TARE_ERROR_INVALID_ARGUMENT if it belongs to another model or both contain the same
 * records. After any failure the calibration is unchanged. Other threads may use both calibrations meanwhile: calls
 * that began before the addition work with the statistics without `other`. */
TARE_API TARE_CHECKED tare_status tare_calibration_add(tare_calibration *calibration, const tare_calibration *other);
/* The same for several: adds all of them, or none. */
TARE_API TARE_CHECKED tare_status tare_calibration_add_all(tare_calibration *calibration,
                                                           const tare_calibration *const *others, size_t count);
/* A calibration of its own with the same statistics, which later additions to either do not change. Release *out with
 * tare_calibration_close. */
TARE_API TARE_CHECKED tare_status tare_calibration_copy(tare_calibration **out, const tare_calibration *calibration);
/* Number of records that the statistics were collected over. */
TARE_API int64_t tare_calibration_record_count(const tare_calibration *calibration);
/* Returns the output of `tare show --json` (docs/json.md): ranges by algorithm, coverage, warnings. Release *json with
 * tare_text_free. */
TARE_API TARE_CHECKED tare_status tare_calibration_describe(char **json, const tare_calibration *calibration);
/* The same with `options`: "algorithms=mse,percentile:p=99.9" (default: all, with their own parameters), "tensor=REGEX"
 * (POSIX extended, on FUNCTION/NODE:OUTPUT), "html": a page without external references instead of JSON. */
TARE_API TARE_CHECKED tare_status tare_calibration_report(char **text, const tare_calibration *calibration,
                                                          const char *options);

/* One bin of a histogram: `count` finite values in [low, high], both included; no value of another bin is inside. */
typedef struct tare_calibration_bin {
    double low, high; /* bounds */
    int64_t count;    /* number of values */
} tare_calibration_bin;
/* The histogram of an observed tensor: bins with at least one value, in ascending order, 512 bins per octave; zero is
 * the bin [0, 0]. NaN and infinities are not included. `function`: "" or NULL is the main graph; `output`: of the node.
 * *bins is NULL if no finite value was observed (release: tare_calibration_bins_free). TARE_ERROR_NOT_FOUND if the
 * tensor was not observed. */
TARE_API TARE_CHECKED tare_status tare_calibration_histogram(tare_calibration_bin **bins, size_t *count,
                                                             const tare_calibration *calibration, const char *function,
                                                             const char *node, int output);
/* No-op if NULL. */
TARE_API void tare_calibration_bins_free(tare_calibration_bin *bins);

#ifdef __cplusplus
}
#endif

#endif
