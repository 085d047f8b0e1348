/* Tests that run at every CPU level of the machine. The level of a process is fixed by its first use, so each level has
 * a process of its own: the test program again, with `argument`. */
#ifndef TARE_TESTS_SUPPORT_LEVELS_H
#define TARE_TESTS_SUPPORT_LEVELS_H

/* Sets the test that this program runs, the first argument of the programs below. */
void levels_set_test(const char *name);
/* Fails the current test if the program with `argument` fails at a level. */
void levels_run(const char *argument);
/* The wait status of the program with `argument` in a process with TARE_CPU. */
int levels_run_at(const char *level, const char *argument);

#endif
