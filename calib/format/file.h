/* The calibration file: a calibration as bytes. The format is described in docs/formats.md.
 *
 * Equal calibrations have equal bytes. Reading validates everything: the checksum, every count, every ordering, and the
 * consistency of the statistics. */
#ifndef TARE_CALIB_FORMAT_FILE_H
#define TARE_CALIB_FORMAT_FILE_H

#include "base/strbuf.h"
#include "calib/calibration.h"

enum { TARE_CALIBRATION_VERSION = 2 };

/* Appends the bytes to `out` (for a file, or to send to another process). */
tare_status tare_calibration_encode(struct tare_strbuf *out,
                                    const struct tare_calibration *calibration) TARE_WARN_UNUSED;
/* For TARE_CORRUPT the message names the error and the byte offset. */
tare_status tare_calibration_decode(struct tare_calibration **out, const void *data, size_t size) TARE_WARN_UNUSED;

/* Writes under a temporary name and moves it to `path` when it is complete and synced: a crash leaves the old file. */
tare_status tare_calibration_save(const struct tare_calibration *calibration, const char *path) TARE_WARN_UNUSED;
/* The same for a caller that holds the lock of the file (base/output_lock.h). */
tare_status tare_calibration_save_held(const struct tare_calibration *calibration, const char *path) TARE_WARN_UNUSED;
/* Errors name the file. */
tare_status tare_calibration_load(struct tare_calibration **out, const char *path) TARE_WARN_UNUSED;
/* TARE_INVALID_ARGUMENT when the calibration is of another model (or of the same one prepared in another way), or is
 * the state of an interrupted run; `path` is for the message. */
tare_status tare_calibration_check_model(const struct tare_calibration *calibration, const uint64_t fingerprint[2],
                                         const char *path) TARE_WARN_UNUSED;

#endif
