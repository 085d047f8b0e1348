/* Headings of the help of commands with many options. */
#ifndef TARE_CLI_HEADINGS_H
#define TARE_CLI_HEADINGS_H

#include "base/option.h"

/* Every option of a command that has more than TARE_OPTION_FEW is below one of them (a test). */
extern const struct tare_option_heading tare_command_headings[];

#endif
