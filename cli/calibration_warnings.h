/* The warnings about a calibration on standard error. */
#ifndef TARE_CLI_CALIBRATION_WARNINGS_H
#define TARE_CLI_CALIBRATION_WARNINGS_H

#include "calib/calibration.h"

/* One line each, "tare: warning: …"; nothing when there are none. */
tare_status tare_print_calibration_warnings(const struct tare_calibration *calibration) TARE_WARN_UNUSED;

#endif
