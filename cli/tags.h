/* --tags, for commands that open a SavedModel of several MetaGraphs. */
#ifndef TARE_CLI_TAGS_H
#define TARE_CLI_TAGS_H

#include "base/option.h"
#include "convert/saved_model.h"

/* The row; `type` must have a member `const char *tags`. */
#define TARE_TAGS_OPTION(type)                                                                                         \
    {                                                                                                                  \
        .name = "tags", .kind = TARE_OPTION_STRING, .offset = offsetof(type, tags), .placeholder = "TAG,…",            \
        .help = "tags of the MetaGraph to open, exactly; \"\" for one without tags"                                    \
    }

struct tare_command_tags {
    char *text;
    const char **items;
};
/* Sets options->tags from the option's text (NULL: not given). The tags are valid until tare_command_tags_free. */
tare_status tare_command_tags_set(struct tare_command_tags *tags, struct tare_saved_model_options *options,
                                  const char *text) TARE_WARN_UNUSED;
void tare_command_tags_free(struct tare_command_tags *tags);

#endif
