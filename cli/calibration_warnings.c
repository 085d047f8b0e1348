#include "cli/calibration_warnings.h"

#include "calib/warnings.h"

#include <stdio.h>

tare_status tare_print_calibration_warnings(const struct tare_calibration *calibration) {
    struct tare_calibration_warning_list list;
    tare_status status = tare_calibration_warnings(&list, calibration);
    for (size_t i = 0; i < list.count && status == TARE_OK; i++)
        fprintf(stderr, "tare: warning: %s\n", list.items[i].text);
    tare_calibration_warning_list_free(&list);
    return status;
}
