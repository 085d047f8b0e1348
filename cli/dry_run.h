/* Resource usage of a dry run, for commands that do everything except writing. */
#ifndef TARE_CLI_DRY_RUN_H
#define TARE_CLI_DRY_RUN_H

/* Prints CPU time and peak memory of this process to standard error. */
void tare_dry_run_took(void);

#endif
