/* The folder of test data that is not in the repository, for tests named *_model_test.c. */
#ifndef TARE_TESTS_SUPPORT_MODELS_H
#define TARE_TESTS_SUPPORT_MODELS_H

#include "base/file.h"

enum { TEST_SKIPPED = 77 }; /* CTest's SKIP_RETURN_CODE */

/* The path of a file or folder below TARE_TEST_DATA or, where that is not set, TARE_TEST_DATA_DEFAULT; valid until the
 * process ends. NULL when it is absent, after printing which path is missing and how to provide it; main returns
 * TEST_SKIPPED then. */
const char *test_data(const char *relative);
/* test_data("models"), without a message. */
const char *models_folder(void);
/* The names in it, in byte order; release with tare_file_list_free. Fails the test if there are fewer than 50. */
struct tare_file_list models_list(void);
/* The path of a model, valid for eight more calls. */
const char *models_path(const char *name);

#endif
