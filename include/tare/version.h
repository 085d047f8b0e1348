/* The version of tare. Semantic versioning: within one major version (before 1.0.0: one minor version), programs built
 * with an older release remain binary compatible with a newer libtare; otherwise the soname changes. */
#ifndef TARE_VERSION_H
#define TARE_VERSION_H

#include "api.h"

#define TARE_VERSION_MAJOR 0
#define TARE_VERSION_MINOR 1
#define TARE_VERSION_PATCH 0
#define TARE_VERSION "0.1.0"
/* 1002003 is version 1.2.3, for comparisons: #if TARE_VERSION_NUMBER >= 2000 */
#define TARE_VERSION_NUMBER (TARE_VERSION_MAJOR * 1000000 + TARE_VERSION_MINOR * 1000 + TARE_VERSION_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library in use, "0.1.0"; TARE_VERSION is that of the header. A static string. */
TARE_API const char *tare_version(void);
/* The same as TARE_VERSION_NUMBER. */
TARE_API int32_t tare_version_number(void);

#ifdef __cplusplus
}
#endif

#endif
