/* The key of a job: a hash of everything that it depends on. A finished job with the same key need not run again. */
#ifndef TARE_EVAL_JOBS_JOB_KEY_H
#define TARE_EVAL_JOBS_JOB_KEY_H

#include "calib/hash.h"
#include "convert/jobs.h"

enum { TARE_KEY_SIZE = 33 }; /* 32 hexadecimal digits */

/* Finishes the hash and writes it as text. */
void tare_key_finish(char out[TARE_KEY_SIZE], struct tare_hash *hash);

/* Hash of the job's texts, the contents of the model's files and of every file that the job names (also in its extra
 * arguments), and `version` (of the program and the op libraries that it loads). */
tare_status tare_job_key(char out[TARE_KEY_SIZE], const struct tare_job *job, const char *version) TARE_WARN_UNUSED;
/* Hash of what a calibration depends on: model, samples, signature and version. */
tare_status tare_job_calibration_key(char out[TARE_KEY_SIZE], const struct tare_job *job,
                                     const char *version) TARE_WARN_UNUSED;
/* Hash of the names and contents of all files in a folder, in order of their paths. */
tare_status tare_folder_key(char out[TARE_KEY_SIZE], const char *folder) TARE_WARN_UNUSED;
/* Hash of the contents of the files that `paths` (names or glob patterns) match. */
tare_status tare_files_key(char out[TARE_KEY_SIZE], const char *const *patterns, size_t count) TARE_WARN_UNUSED;
/* Hash of the contents of one file; its name does not matter. */
tare_status tare_file_key(char out[TARE_KEY_SIZE], const char *path) TARE_WARN_UNUSED;
/* Total bytes of the files in a folder; 0, with TARE_OK, when it cannot be read. */
tare_status tare_folder_bytes(int64_t *bytes, const char *folder) TARE_WARN_UNUSED;

#endif
