/* Options as one text, "bits=4 algorithm=mse depthwise", for callers without a command line. */
#ifndef TARE_WORKFLOW_OPTION_TEXT_H
#define TARE_WORKFLOW_OPTION_TEXT_H

#include "base/arena.h"
#include "base/option.h"

/* Sets the defaults, then the options of the text: words with blanks between, NAME=VALUE, a flag NAME or no-NAME; a
 * value with blanks stands in double quotes. `text` may be NULL. Strings in `values` are the arena's. TARE_USAGE tells
 * what is wrong. Release lists with tare_options_free, also on failure. */
tare_status tare_option_text_read(void *values, struct tare_arena *arena, const struct tare_option_set *set,
                                  const char *text) TARE_WARN_UNUSED;

#endif
