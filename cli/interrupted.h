/* Whether the process was asked to stop. */
#ifndef TARE_CLI_INTERRUPTED_H
#define TARE_CLI_INTERRUPTED_H

#include <signal.h>

/* An enum tare_stop (base/control.h), set by SIGINT, SIGTERM, SIGHUP and --max-seconds: the process's control block
 * refers to it, and long-running work polls that and stops in an orderly way. */
extern volatile sig_atomic_t tare_interrupted;

#endif
