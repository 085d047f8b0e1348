/* A temporary folder for one test program, removed at its end. */
#ifndef TARE_TESTS_SUPPORT_TEMP_H
#define TARE_TESTS_SUPPORT_TEMP_H

#include <stddef.h>

/* The folder's path; made at the first call, removed with all in it when the program ends. */
const char *temp_folder(void);
/* "<folder>/name" in one of a few static buffers (eight calls may be alive). */
const char *temp_path(const char *name);
/* Writes a file in the folder and returns its path. */
const char *temp_file(const char *name, const void *data, size_t size);

#endif
