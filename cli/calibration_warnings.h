/* Prints warnings about a calibration to standard error. */
#ifndef TARE_CLI_CALIBRATION_WARNINGS_H
#define TARE_CLI_CALIBRATION_WARNINGS_H

#include "calib/calibration.h"

/* One line each, "tare: warning: …". */
tare_status tare_print_calibration_warnings(const struct tare_calibration *calibration) TARE_WARN_UNUSED;

#endif
