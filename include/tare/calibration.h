/* Calibrations: what values the tensors of a model take over representative samples. One serves every method and every
 * algorithm of ranges; the same samples give the same bytes whatever threads and batches.
 *
 * `options` texts are those of `tare calibrate` without the dashes, with blanks between, in double quotes where a value
 * has blanks: "threads=4 observe=all". NULL and "" are the defaults. They are listed in docs/library.md. */
#ifndef TARE_CALIBRATION_H
#define TARE_CALIBRATION_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tare_calibration_handle tare_calibration;
typedef struct tare_calibrator_handle tare_calibrator;

/* Runs the samples of files through the model. A path is a file, a pattern, and may say the signature:
 * "encode=e.tfrecord". The model must have been opened from a directory. *out is the caller's: tare_calibration_close.
 */
TARE_API tare_status tare_model_calibrate(tare_calibration **out, const tare_model *model, const char *const *paths,
                                          size_t n_paths, const char *options);

/* The same with samples that the caller has in memory. Workers run while the caller brings the next ones; one thread at
 * a time may push. Further option: name=N, what the samples are called in the calibration (default "memory");
 * calibrations that shall be added up need different names. Close it with tare_calibrator_close. */
TARE_API tare_status tare_calibrator_open(tare_calibrator **out, const tare_model *model, const char *options);
/* One sample: an array for each input of the signature, by name, as for tare_runner_run. Copied. Waits while workers
 * are behind. A sample that does not fit is refused and nothing is changed; any other failure is that of an earlier
 * sample. */
TARE_API tare_status tare_calibrator_push(tare_calibrator *calibrator, const tare_array *inputs, size_t n_inputs);
/* Waits for the workers and gives the calibration, which is the caller's. The calibrator takes no more samples. */
TARE_API tare_status tare_calibrator_finish(tare_calibration **out, tare_calibrator *calibrator);
/* Ends it, finished or not. NULL is fine. */
TARE_API void tare_calibrator_close(tare_calibrator *calibrator);

/* Reads a file that tare_calibration_write or `tare calibrate` wrote. Whether it is of a model is checked when it is
 * used with one. *out is the caller's. */
TARE_API tare_status tare_calibration_open(tare_calibration **out, const char *path);
/* NULL is fine. */
TARE_API void tare_calibration_close(tare_calibration *calibration);
/* Writes the file; a crash leaves an older one as it was. */
TARE_API tare_status tare_calibration_write(const tare_calibration *calibration, const char *path);
/* Adds another's counts. TARE_INVALID_ARGUMENT, and no change, for one of another model or of records that both have.
 */
TARE_API tare_status tare_calibration_add(tare_calibration *calibration, const tare_calibration *other);
/* Records that were counted. */
TARE_API int64_t tare_calibration_record_count(const tare_calibration *calibration);
/* What `tare show --json` prints (docs/json.md): ranges by algorithm, coverage, warnings. *json is the caller's:
 * tare_text_free. */
TARE_API tare_status tare_calibration_describe(char **json, const tare_calibration *calibration);

#ifdef __cplusplus
}
#endif

#endif
