/* Options as one string, "bits=4 algorithm=mse depthwise", for callers without a command line. */
#ifndef TARE_WORKFLOW_OPTION_TEXT_H
#define TARE_WORKFLOW_OPTION_TEXT_H

#include "base/arena.h"
#include "base/option.h"

/* Sets the defaults, then the options of the text: NAME=VALUE, or NAME or no-NAME for a flag, separated by spaces;
 * values with spaces are double-quoted, and \" in them is a double quote. `text` may be NULL. Strings in `values`
 * belong to the arena. TARE_USAGE for invalid text. Release lists with tare_options_free, also after a failure. */
tare_status tare_option_text_read(void *values, struct tare_arena *arena, const struct tare_option_set *set,
                                  const char *text) TARE_WARN_UNUSED;

#endif
