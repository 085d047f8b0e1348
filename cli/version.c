/* tare version */
#include "include/tare/version.h"
#include "cli/command.h"

#include <stdio.h>

static const struct tare_option_set set = { .program = "tare version", .summary = "Prints the version." };

static tare_status run(int argc, char *const *argv) {
    struct {
        int none;
    } values;
    bool done;
    TARE_TRY(tare_command_parse(&values, &done, &set, argc, argv));
    if (!done) printf("tare %s\n", TARE_VERSION);
    return TARE_OK;
}

const struct tare_command tare_command_version = {
    .name = "version", .summary = "print the version", .run = run, .options = &set
};
