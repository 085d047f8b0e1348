/* A temporary directory for one test program, removed at exit. */
#ifndef TARE_TESTS_SUPPORT_TEMP_H
#define TARE_TESTS_SUPPORT_TEMP_H

#include <stddef.h>

/* The directory's path; created by the first call, removed with its contents when the program exits. */
const char *temp_folder(void);
/* "<directory>/name" in one of a few static buffers (valid for eight more calls). */
const char *temp_path(const char *name);
/* Writes a file in the directory and returns its path. */
const char *temp_file(const char *name, const void *data, size_t size);

#endif
