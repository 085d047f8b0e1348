/* Names files of formats that are not read, with the remedy. */
#ifndef TARE_DATASETS_FOREIGN_FILE_H
#define TARE_DATASETS_FOREIGN_FILE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* Recognizes data files of formats that tare does not read by their first bytes (up to 16), and remote paths by their
 * scheme. TARE_UNSUPPORTED with the format and how to convert it; TARE_OK for everything else. */
tare_status tare_foreign_file_check(const char *path, const uint8_t *head, size_t size) TARE_WARN_UNUSED;
/* The check of the path alone. */
tare_status tare_foreign_path_check(const char *path) TARE_WARN_UNUSED;

#endif
