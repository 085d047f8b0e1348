/* Reporting an error of the file and continuing. */
#include "convert/import/import.h"
#include "base/format.h"

#include <stdarg.h>
#include <stdio.h>

tare_status tare_import_fault(struct tare_import_faults *faults, tare_status status, const char *where, ...) {
    char place[1024];
    va_list args;
    if (status == TARE_OK || status == TARE_NO_MEMORY || !faults) return status;
    va_start(args, where);
    tare_format_va(place, sizeof place, where, args);
    va_end(args);
    faults->add(faults->arg, place, tare_error_text());
    faults->count++;
    tare_error_clear();
    return TARE_OK;
}
