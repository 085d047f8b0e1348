/* Reader of tests/ops/<name>.graphs: small graphs with state, functions and control flow, as text, for ops that a
 * single node cannot show. Lines:
 *
 *   # comment
 *   graph NAME                       begins a script: an empty model; the name says what is shown
 *   types float int32                repeats the script for each dtype, put in place of every @
 *   NAME = TENSOR                    a constant (support/tensor_text.h): `x = @[2] 1 2`
 *   NAME = file "text"               a constant string: the path of a file with this text
 *   NAME = path some/file            a constant string: the path of a file of the repository
 *   NAME = Op(EDGE, …, ^NODE) ATTRS  a node: inputs NAME or NAME:output, control inputs, attributes
 *                                    (support/attrs_text.h). T, N and the like follow from the inputs
 *   var NAME TENSOR                  a VarHandleOp whose variable has this value in the checkpoint
 *   def NAME ARG:dtype …             begins a function, `return NAME EDGE` gives it a result, `end` ends it
 *   rewire NODE INPUT EDGE           puts another edge in an input's place: for loops
 *   init NODE                        the node runs when a session begins
 *
 *   run EDGE …                       runs the graph in the session and fetches the edges
 *   do NODE …                        runs nodes for their effect
 *     feed EDGE TENSOR                 of that run
 *     out TENSOR | shape DTYPE SHAPE   what comes, in order; `shape` leaves the values open
 *     tol [abs X] [rel X] [ulp N]      of all outputs of that run
 *     error WORDS                      the run fails with these words in the text
 *   session                          ends the session; the next run begins with a fresh one
 *
 * A line that ends with \ goes on in the next one. */
#ifndef TARE_TESTS_SCRIPT_H
#define TARE_TESTS_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

struct script_file;

/* NULL with a message on stderr. */
struct script_file *script_file_open(const char *path);
void script_file_close(struct script_file *file);
/* Scripts, those of `types` counted one by one. */
size_t script_file_count(const struct script_file *file);
/* "name" or "name (float)"; the file's. */
const char *script_file_name(const struct script_file *file, size_t i);
/* Calls fn once for each op that has a node in script i. */
void script_file_each_op(const struct script_file *file, size_t i, void (*fn)(void *arg, const char *op), void *arg);
/* Runs it; fails the cmocka test that it runs in with the place and what differs. */
void script_file_run(const struct script_file *file, size_t i);

#endif
