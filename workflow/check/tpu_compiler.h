/* Google's TPU compiler, which compiles for any chip without one. It is part of jax[tpu]: a Python with these packages
 * runs workflow/check/tpu_compiler.py. The environment variable TARE_TPU_COMPILER names another one than python3, or
 * another program: it is called with a chip and files of modules, and prints a JSON object for each (the script
 * documents it).
 */
#ifndef TARE_WORKFLOW_CHECK_TPU_COMPILER_H
#define TARE_WORKFLOW_CHECK_TPU_COMPILER_H

#include "base/status.h"

#include <jansson.h>

struct tare_tpu_compiler {
    char *folder; /* for modules and what the program prints */
};

/* Makes the folder, which tare_tpu_compiler_close removes with its files. */
tare_status tare_tpu_compiler_open(struct tare_tpu_compiler *compiler) TARE_WARN_UNUSED;
/* The path of module number `number`, from 1, which the caller writes. Release with tare_free; NULL: out of memory. */
char *tare_tpu_compiler_module(const struct tare_tpu_compiler *compiler, size_t number);
/* Compiles modules 1 to `count` for a chip ("v6e"): *out becomes an array of one object each, a new reference. NULL if
 * there is no compiler, with TARE_OK: *why is then a sentence without period. TARE_INVALID_ARGUMENT if the program
 * fails otherwise or prints something else. `known` (may be NULL) is an object that keeps the results: modules of the
 * same bytes are compiled once for each chip. */
tare_status tare_tpu_compiler_run(json_t **out, const char **why, const struct tare_tpu_compiler *compiler,
                                  const char *chip, size_t count, json_t *known) TARE_WARN_UNUSED;
void tare_tpu_compiler_close(struct tare_tpu_compiler *compiler);

#endif
