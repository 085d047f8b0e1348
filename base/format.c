/* The locale "C" for single calls: strtod_l and strerror_l take it as an argument; printf uses that of the thread,
 * which is changed for the call, a pointer of the thread. */
#include "base/format.h"

#include <dlfcn.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static locale_t c_locale;

/* In libc, the locale "C" is constant data: nothing to fail, nothing to free. */
static void find_locale(void) {
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

locale_t tare_locale_c(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_locale);
    return c_locale;
}

double tare_read_double(const char *text, char **end) {
    return strtod_l(text, end, tare_locale_c());
}

float tare_read_float(const char *text, char **end) {
    return strtof_l(text, end, tare_locale_c());
}

int tare_format_va(char *out, size_t size, const char *format, va_list args) {
    const locale_t before = uselocale(tare_locale_c());
    const int length = vsnprintf(out, size, format, args);
    uselocale(before);
    return length;
}

int tare_format(char *out, size_t size, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int length = tare_format_va(out, size, format, args);
    va_end(args);
    return length;
}

const char *tare_system_error(int number) {
    return strerror_l(number, tare_locale_c());
}

const char *tare_loader_error(void) {
    const locale_t before = uselocale(tare_locale_c());
    const char *text = dlerror();
    uselocale(before);
    return text;
}
