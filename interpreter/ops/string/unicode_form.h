/* Unicode's normalization forms, by a library that is loaded at run time. */
#ifndef TARE_INTERPRETER_OPS_STRING_UNICODE_FORM_H
#define TARE_INTERPRETER_OPS_STRING_UNICODE_FORM_H

#include "base/status.h"

/* Loads utf8proc once per process. TARE_UNSUPPORTED if it is not installed. */
tare_status tare_unicode_form_open(void) TARE_WARN_UNUSED;

#endif
