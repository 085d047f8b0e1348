/* The few messages of an ONNX file that bench/onnx_writer.c needs, written as they come. Header only: every benchmark
 * is one source file. Memory errors stick and show in onnx_finish. */
#ifndef TARE_BENCH_ONNX_MESSAGE_H
#define TARE_BENCH_ONNX_MESSAGE_H

#include "base/arena.h"
#include "base/strbuf.h"
#include "base/tensor/shape.h"

#include <stdio.h>
#include <string.h>

/* An attribute of integers (ints not NULL) or of one integer. */
struct onnx_attr {
    const char *name;
    const int64_t *ints;
    size_t count;
    int64_t i;
};

struct onnx_graph {
    struct tare_arena *arena;               /* of names */
    struct tare_strbuf nodes, initializers; /* fields of a GraphProto */
    int names;
};

/* ---- wire format ---- */

static inline void onnx_int(struct tare_strbuf *to, int field, int64_t x) {
    tare_strbuf_append_varint(to, (uint64_t)field << 3);
    tare_strbuf_append_varint(to, (uint64_t)x);
}
static inline void onnx_bytes(struct tare_strbuf *to, int field, const void *data, size_t size) {
    tare_strbuf_append_varint(to, (uint64_t)field << 3 | 2);
    tare_strbuf_append_varint(to, size);
    tare_strbuf_append(to, data, size);
}
static inline void onnx_text(struct tare_strbuf *to, int field, const char *text) {
    onnx_bytes(to, field, text, strlen(text));
}
/* Puts a finished message into a field and ends it. */
static inline void onnx_close(struct tare_strbuf *to, int field, struct tare_strbuf *message) {
    onnx_bytes(to, field, tare_strbuf_text(message), message->size);
    to->failed |= message->failed;
    tare_strbuf_free(message);
}

/* ---- nodes and weights ---- */

static inline const char *onnx_name(struct onnx_graph *graph, const char *stem) {
    const char *name = tare_arena_printf(graph->arena, "%s_%d", stem, graph->names++);
    if (name) return name;
    graph->nodes.failed = true;
    return "";
}

/* Adds a node with one output and gives the output's name. */
static inline const char *onnx_node(struct onnx_graph *graph, const char *op, const char *const *inputs,
                                    size_t n_inputs, const struct onnx_attr *attrs, size_t n_attrs) {
    const char *name = onnx_name(graph, op);
    struct tare_strbuf node = { 0 };
    for (size_t i = 0; i < n_inputs; i++)
        onnx_text(&node, 1, inputs[i]);
    onnx_text(&node, 2, name);
    onnx_text(&node, 3, name);
    onnx_text(&node, 4, op);
    for (size_t i = 0; i < n_attrs; i++) {
        struct tare_strbuf attr = { 0 };
        onnx_text(&attr, 1, attrs[i].name);
        if (!attrs[i].ints) onnx_int(&attr, 3, attrs[i].i);
        for (size_t j = 0; attrs[i].ints && j < attrs[i].count; j++)
            onnx_int(&attr, 8, attrs[i].ints[j]);
        onnx_int(&attr, 20, attrs[i].ints ? 7 : 2);
        onnx_close(&node, 5, &attr);
    }
    onnx_close(&graph->nodes, 1, &node);
    return name;
}

static inline const char *onnx_tensor(struct onnx_graph *graph, int type, const void *data, size_t size,
                                      const int64_t *dims, int64_t rank) {
    const char *name = onnx_name(graph, "weight");
    struct tare_strbuf tensor = { 0 };
    for (int64_t i = 0; i < rank; i++)
        onnx_int(&tensor, 1, dims[i]);
    onnx_int(&tensor, 2, type);
    onnx_text(&tensor, 8, name);
    onnx_bytes(&tensor, 9, data, size);
    onnx_close(&graph->initializers, 5, &tensor);
    return name;
}
/* An initializer of floats (rank 0: one) or of `count` int64. */
static inline const char *onnx_floats(struct onnx_graph *graph, const float *values, const int64_t *dims,
                                      int64_t rank) {
    size_t count = 1;
    for (int64_t i = 0; i < rank; i++)
        count *= (size_t)dims[i];
    return onnx_tensor(graph, 1, values, count * sizeof *values, dims, rank);
}
static inline const char *onnx_ints(struct onnx_graph *graph, const int64_t *values, int64_t count) {
    return onnx_tensor(graph, 7, values, (size_t)count * sizeof *values, &count, 1);
}

/* ---- the file ---- */

/* A float tensor of the graph's interface; its first dimension is the batch. */
static inline void onnx_value(struct tare_strbuf *to, int field, const char *name, const struct tare_shape *shape) {
    struct tare_strbuf value = { 0 }, type = { 0 }, tensor = { 0 }, dims = { 0 };
    for (int i = 0; i < shape->rank; i++) {
        struct tare_strbuf dim = { 0 };
        if (i == 0)
            onnx_text(&dim, 2, "batch");
        else
            onnx_int(&dim, 1, shape->dims[i]);
        onnx_close(&dims, 1, &dim);
    }
    onnx_int(&tensor, 1, 1);
    onnx_close(&tensor, 2, &dims);
    onnx_close(&type, 1, &tensor);
    onnx_text(&value, 1, name);
    onnx_close(&value, 2, &type);
    onnx_close(to, field, &value);
}

static inline tare_status onnx_finish(struct onnx_graph *graph, const char *path, const char *input,
                                      const struct tare_shape *input_shape, const char *output,
                                      const struct tare_shape *output_shape) {
    struct tare_strbuf whole = { 0 }, model = { 0 }, opset = { 0 };
    tare_strbuf_append(&whole, tare_strbuf_text(&graph->nodes), graph->nodes.size);
    onnx_text(&whole, 2, "network");
    tare_strbuf_append(&whole, tare_strbuf_text(&graph->initializers), graph->initializers.size);
    onnx_value(&whole, 11, input, input_shape);
    onnx_value(&whole, 12, output, output_shape);
    whole.failed |= graph->nodes.failed || graph->initializers.failed;
    onnx_int(&model, 1, 8);
    onnx_close(&model, 7, &whole);
    onnx_text(&opset, 1, "");
    onnx_int(&opset, 2, 13);
    onnx_close(&model, 8, &opset);
    FILE *file = model.failed ? NULL : fopen(path, "wb");
    const bool written = file && fwrite(tare_strbuf_text(&model), 1, model.size, file) == model.size;
    const bool closed = file && fclose(file) == 0;
    tare_strbuf_free(&model);
    return written && closed ? TARE_OK : TARE_FAIL(TARE_IO, "%s: cannot be written", path);
}

static inline void onnx_free(struct onnx_graph *graph) {
    tare_strbuf_free(&graph->nodes);
    tare_strbuf_free(&graph->initializers);
}

#endif
