/* Files and folders with the same bytes. */
#ifndef TARE_TESTS_SUPPORT_FOLDERS_H
#define TARE_TESTS_SUPPORT_FOLDERS_H

#include <stdbool.h>

/* Both files have the same bytes; otherwise their names are printed. */
bool same_files(const char *a, const char *b);
/* Both folders have the same files with the same bytes; the first difference is printed. */
bool same_folders(const char *a, const char *b);

#endif
