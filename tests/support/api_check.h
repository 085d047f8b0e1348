/* Checks of calls of the public API: OK(call), and REFUSED(call, status, text) with a part of the error text. */
#ifndef TARE_TESTS_SUPPORT_API_CHECK_H
#define TARE_TESTS_SUPPORT_API_CHECK_H

#include "include/tare/tare.h"

#define OK(call) api_check_ok_at((call), __LINE__)
#define REFUSED(call, status, text) api_check_refused_at((call), (status), (text), __LINE__)

/* The files of the example. */
#define GLYPHS TARE_SOURCE_DIR "/examples/glyphs/"

void api_check_ok_at(tare_status status, int line);
void api_check_refused_at(tare_status status, tare_status expected, const char *text, int line);

#endif
