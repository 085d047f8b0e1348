/* Macros of the public headers of libtare. Programs include <tare/tare.h>. */
#ifndef TARE_API_H
#define TARE_API_H

#include <stddef.h>
#include <stdint.h>

/* Marks the functions that the library exports; all other symbols are local to it. */
#define TARE_API __attribute__((visibility("default")))
/* Marks functions whose status must be checked: the compiler warns where it is dropped. */
#define TARE_CHECKED __attribute__((warn_unused_result))

#endif
