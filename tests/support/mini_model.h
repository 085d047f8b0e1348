/* Small models built in C, one line per node, with additional test ops that record how they are executed. */
#ifndef TARE_TESTS_SUPPORT_MINI_MODEL_H
#define TARE_TESTS_SUPPORT_MINI_MODEL_H

#include "interpreter/session.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

/* Records of the Test… ops since mini_model_new. */
struct mini_log {
    char order[1024]; /* names of the executed nodes, separated by spaces */
    int runs;
    int reused;         /* number of runs that wrote into input 0 */
    int64_t most_alive; /* not set here; available to tests */
};
extern struct mini_log mini_log;

/* Creates a model whose registry adds to the built-in ops: TestAdd(a: T, b: T) -> T (float, int32; writes in place),
 * TestLess(a: T, b: T) -> bool, TestEffect(x: T) -> T (stateful, forwards), TestNothing (a definition without
 * kernel), TestFail(x: T) -> T (fails). */
struct tare_graph_model *mini_model_new(void);

/* Adds a node with n inputs (struct tare_edge …) and the attributes T and N derived from them. Returns its output 0. */
struct tare_edge mini_node(struct tare_graph *graph, const char *op, const char *name, int n, ...);
/* The same, but left open for attributes until mini_done. */
struct tare_node *mini_open(struct tare_graph *graph, const char *op, const char *name, int n, ...);
/* Sets the attributes T, N and similar ones from the inputs. */
void mini_infer_attrs(struct tare_node *node);
struct tare_edge mini_done(struct tare_node *node);
struct tare_edge mini_output(struct tare_edge edge, int index);
struct tare_edge mini_placeholder(struct tare_graph *graph, const char *name, int dtype);
struct tare_edge mini_float(struct tare_graph *graph, const char *name, float value);
struct tare_edge mini_int(struct tare_graph *graph, const char *name, int32_t value);
struct tare_edge mini_ints(struct tare_graph *graph, const char *name, int n, const int32_t *values);
struct tare_edge mini_bool(struct tare_graph *graph, const char *name, bool value);
struct tare_edge mini_strings(struct tare_graph *graph, const char *name, int n, const char *const *values);
struct tare_edge mini_arg(struct tare_graph *function, const char *name, int dtype);
void mini_return(struct tare_graph *function, const char *name, struct tare_edge edge);
/* Adds a call node of op `op` with attribute f (or as named); Tin and Tout follow from the inputs and the callee. */
struct tare_edge mini_call(struct tare_graph *graph, const char *op, const char *name, const struct tare_graph *callee,
                           int n, ...);
/* Adds a float variable to the model and returns its VarHandleOp. */
struct tare_edge mini_variable(struct tare_graph_model *model, const char *name, float value);
/* Adds the variable of a node that returns a handle or a reference; takes ownership of the value. */
void mini_add_variable(struct tare_graph_model *model, struct tare_node *node, struct tare_tensor value);

struct tare_session *mini_session(const struct tare_graph_model *model);
/* Asserts that the status is OK; prints the error text otherwise. */
void mini_ok(tare_status status);
/* Asserts failure with an error text that contains `part`. */
void mini_fails(tare_status status, const char *part);
/* Runs a fetch of the main graph with at most one feed (node NULL: none). */
struct tare_tensor mini_run(struct tare_session *session, struct tare_edge feed, double value, struct tare_edge fetch);
/* The same; asserts one element and returns it. */
double mini_number(struct tare_session *session, struct tare_edge feed, double value, struct tare_edge fetch);
/* A scalar of the dtype. */
struct tare_tensor mini_scalar(int dtype, double value);

#endif
