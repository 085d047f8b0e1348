/* Parser of tests/ops/<name>.graphs: small graphs with state, functions and control flow, as text, for ops that a
 * single node cannot show. Lines:
 *
 *   # comment
 *   graph NAME                       begins a script: an empty model; the name describes the test
 *   types float int32                repeats the script for each dtype, substituted for each @
 *   NAME = TENSOR                    a constant (support/tensor_text.h): `x = @[2] 1 2`
 *   NAME = file "text"               a constant string: the path of a file with this text
 *   NAME = path some/file            a constant string: the path of a file of the repository
 *   NAME = Op(EDGE, …, ^NODE) ATTRS  a node: inputs NAME or NAME:output, control inputs, attributes
 *                                    (support/attrs_text.h). T, N and the like follow from the inputs
 *   var NAME TENSOR                  a VarHandleOp whose variable has this value in the checkpoint
 *   def NAME ARG:dtype …             begins a function, `return NAME EDGE` gives it a result, `end` ends it
 *   rewire NODE INPUT EDGE           replaces the edge of an input: for loops
 *   init NODE                        the node runs when a session starts
 *
 *   run EDGE …                       runs the graph in the session and fetches the edges
 *   do NODE …                        runs nodes for their effect
 *     feed EDGE TENSOR                 of that run
 *     out TENSOR | shape DTYPE SHAPE   expected outputs, in order; `shape` does not compare values
 *     tol [abs X] [rel X] [ulp N]      of all outputs of that run
 *     error WORDS                      the run must fail with a text that contains these words
 *   session                          ends the session; the next run starts a new one
 *
 * A line that ends with \ continues on the next line. */
#ifndef TARE_TESTS_SCRIPT_H
#define TARE_TESTS_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

struct script_file;

/* Returns NULL after printing a message to stderr. */
struct script_file *script_file_open(const char *path);
void script_file_close(struct script_file *file);
/* Number of scripts; a script with `types` counts once per dtype. */
size_t script_file_count(const struct script_file *file);
/* "name" or "name (float)"; owned by the file. */
const char *script_file_name(const struct script_file *file, size_t i);
/* Calls fn once for each op that has a node in script i. */
void script_file_each_op(const struct script_file *file, size_t i, void (*fn)(void *arg, const char *op), void *arg);
/* Runs the script; on failure fails the current cmocka test with the location and the difference. */
void script_file_run(const struct script_file *file, size_t i);

#endif
