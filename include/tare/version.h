/* The version of tare. Semantic versioning: within one major number (before 1.0.0: within one minor number) programs
 * that were built with an older release go on working with a newer libtare; the soname changes when that ends. */
#ifndef TARE_VERSION_H
#define TARE_VERSION_H

#include "api.h"

#define TARE_VERSION_MAJOR 0
#define TARE_VERSION_MINOR 1
#define TARE_VERSION_PATCH 0
#define TARE_VERSION "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0": of the library that runs, where TARE_VERSION is that of the header. A static text. */
TARE_API const char *tare_version(void);

#ifdef __cplusplus
}
#endif

#endif
