/* Adding violations to the list. */
#include "convert/validation/internal.h"
#include "base/format.h"

#include <stdarg.h>
#include <stdio.h>

void tare_file_fault(struct tare_file_validator *v, const char *where, const char *format, ...) {
    char what[1024];
    va_list args;
    va_start(args, format);
    tare_format_va(what, sizeof what, format, args);
    va_end(args);
    if (tare_faults_add(v->faults, where, what) != TARE_OK) v->out_of_memory = true;
}

void tare_file_note(struct tare_file_validator *v, const char *where, const char *format, ...) {
    char what[1024];
    va_list args;
    va_start(args, format);
    tare_format_va(what, sizeof what, format, args);
    va_end(args);
    if (tare_faults_note(v->faults, where, what) != TARE_OK) v->out_of_memory = true;
}

void tare_file_check(struct tare_file_validator *v, const char *where, const char *prefix, tare_status status) {
    if (status == TARE_NO_MEMORY)
        v->out_of_memory = true;
    else if (status != TARE_OK)
        tare_file_fault(v, where, "%s%s", prefix, tare_error_text());
    if (status != TARE_OK) tare_error_clear();
}
