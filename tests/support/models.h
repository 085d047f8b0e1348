/* The folder of real models, for tests named *_model_test.c. */
#ifndef TARE_TESTS_SUPPORT_MODELS_H
#define TARE_TESTS_SUPPORT_MODELS_H

#include "base/file.h"

/* The folder "models" below TARE_TEST_DATA, or TARE_TEST_DATA_DEFAULT; NULL where it is absent: return 77 then. */
const char *models_folder(void);
/* The names in it, in byte order; release with tare_file_list_free. Fails the test when there are fewer than 50. */
struct tare_file_list models_list(void);
/* The path of one, valid for eight more calls. */
const char *models_path(const char *name);

#endif
