/* What a job depends on, as a hash: a finished job whose key is the same need not run again. */
#ifndef TARE_EVAL_JOB_KEY_H
#define TARE_EVAL_JOB_KEY_H

#include "calib/hash.h"
#include "convert/jobs.h"

enum { TARE_KEY_SIZE = 33 }; /* 32 hexadecimal digits */

/* Ends the hash and writes it down. */
void tare_key_finish(char out[TARE_KEY_SIZE], struct tare_hash *hash);

/* Over the job's texts, the contents of the model's files and of every file that it names, further words for the
 * command included, and `version` (of the program and of the libraries of ops that it was given). */
tare_status tare_job_key(char out[TARE_KEY_SIZE], const struct tare_job *job, const char *version) TARE_WARN_UNUSED;
/* Over what a calibration depends on: the model, the samples, the signature, the version. */
tare_status tare_job_calibration_key(char out[TARE_KEY_SIZE], const struct tare_job *job,
                                     const char *version) TARE_WARN_UNUSED;
/* Over names and contents of all files of a folder, in the order of their paths. */
tare_status tare_folder_key(char out[TARE_KEY_SIZE], const char *folder) TARE_WARN_UNUSED;
/* Over the contents of the files that paths and patterns stand for. */
tare_status tare_files_key(char out[TARE_KEY_SIZE], const char *const *patterns, size_t count) TARE_WARN_UNUSED;
/* Over the contents of one file, whatever its name is. */
tare_status tare_file_key(char out[TARE_KEY_SIZE], const char *path) TARE_WARN_UNUSED;
/* Bytes of all files of a folder; 0 when it cannot be read. */
int64_t tare_folder_bytes(const char *folder);

#endif
