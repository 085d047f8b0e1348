/* Models for the converter's tests, written to temporary directories, and functions that run `tare convert` on them. */
#ifndef TARE_TESTS_SUPPORT_SEED_MODEL_H
#define TARE_TESTS_SUPPORT_SEED_MODEL_H

#include "support/mini_model.h"
#include "support/process.h"

#define SEED_BATCH                                                                                                     \
    "batch_options {\n"                                                                                                \
    "  num_batch_threads: 2\n"                                                                                         \
    "  max_batch_size: 8\n"                                                                                            \
    "  batch_timeout_micros: 5000\n"                                                                                   \
    "  allowed_batch_sizes: 2\n"                                                                                       \
    "  allowed_batch_sizes: 4\n"                                                                                       \
    "  allowed_batch_sizes: 8\n"                                                                                       \
    "  max_enqueued_batches: 10\n"
#define SEED_TPU_FUNC "tpu_functions {\n  function_alias: \"tpu_func\"\n}\n"

/* ---- models ---- */

/* A Placeholder of the given shape. */
struct tare_edge seed_input(struct tare_graph *graph, const char *name, int dtype, struct tare_shape shape);
void seed_alias(struct tare_graph_model *model, const char *function, const char *alias);
/* The signature "serving_default" with one call of `function` (at most three inputs) on inputs of these shapes. */
void seed_serve(struct tare_graph_model *model, const struct tare_graph *function, const struct tare_shape *shapes);
/* A constant with normally distributed values. */
struct tare_edge seed_weight(struct tare_graph *graph, const char *name, int rows, int columns);
/* Models of the documents. class ToyModel: tpu_func(x) = x * 1.0 with x [None, 10]; __inference_serve_24 calls it on
 * the CPU. */
struct tare_graph_model *seed_toy(const char *alias);
/* The batching tutorial: my_func(A, B) = tf.matmul(A, B), or another op; shapes as asked for. */
struct tare_graph_model *seed_binary(const char *op, struct tare_shape a, struct tare_shape b);
struct tare_graph_model *seed_my_func(struct tare_shape a, struct tare_shape b);
/* class LanguageModel: model_func(input_string) = tpu_func(preprocess(input_string)). */
struct tare_graph_model *seed_language_model(void);
/* Writes and frees the model; returns the path of its directory. */
const char *seed_write(struct tare_graph_model *model, const char *name);

/* ---- running the program ---- */

extern char seed_out[512]; /* path of the last conversion's output */
struct process seed_convert(const char *model, const char *options);
/* Loads the last conversion; asserts that validation reports no errors. */
struct tare_graph_model *seed_load(void);
void seed_converts(const char *model, const char *options);
/* Asserts exit status 1, the given words on standard error, and no remaining output. */
void seed_refuses(const char *model, const char *options, const char *words);
/* Asserts exit status 0 and the given words on standard error. */
void seed_says(const char *model, const char *options, const char *words);
size_t seed_count(const struct tare_graph_model *model, const char *op);
/* y of the only signature for x = 0.37, 0.74 … in the given shape. */
struct tare_tensor seed_answer(const struct tare_graph_model *model, struct tare_shape shape);
/* Asserts that the last conversion's outputs equal the model's bit by bit. */
void seed_answers_as(const char *path, struct tare_shape shape);

#endif
