/* Encoding of the statistics of one tensor; for calib/format/file.c only. */
#ifndef TARE_CALIB_FORMAT_FILE_PARTS_H
#define TARE_CALIB_FORMAT_FILE_PARTS_H

#include "calib/statistics.h"
#include "calib/format/wire.h"

void tare_statistics_write(struct tare_wire_writer *out, const struct tare_statistics *statistics);
/* Fills zeroed statistics (per_channel set). Input indexes are below n_inputs. */
void tare_statistics_read(struct tare_wire_reader *in, struct tare_statistics *statistics, size_t n_inputs);

#endif
