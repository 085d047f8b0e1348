/* Numbers and errors of the system as text, independent of the locale of the process.
 *
 * The decimal separator of strtod and printf is that of the locale, which the host program chooses: a comma in half of
 * Europe. Files, options, messages and reports have a point everywhere, so the library reads and prints numbers with
 * these functions, which work as in the locale "C" and change no other thread. */
#ifndef TARE_BASE_FORMAT_H
#define TARE_BASE_FORMAT_H

#include <locale.h>
#include <stdarg.h>
#include <stddef.h>

/* As strtod and strtof: correctly rounded, *end after the number, or at `text` if there is none. */
double tare_read_double(const char *text, char **end);
float tare_read_float(const char *text, char **end);
/* As snprintf and vsnprintf. */
int tare_format(char *out, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
int tare_format_va(char *out, size_t size, const char *format, va_list args) __attribute__((format(printf, 3, 0)));
/* As strerror, in English, and in any thread. */
const char *tare_system_error(int number);
/* As dlerror, in English. */
const char *tare_loader_error(void);
/* The locale "C", for uselocale around other calls that follow the locale. */
locale_t tare_locale_c(void);

#endif
