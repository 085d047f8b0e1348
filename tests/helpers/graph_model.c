/* Writes SavedModels that are nearly all graph, of a expected number of nodes, to measure what a command needs for
 * them:
 *
 *   graph_model main|function|functions|captures DIR NODES short|long
 *       main: all nodes in the main graph; function: in the body of one function; functions: in bodies of 100 nodes
 * each; captures: functions of 100 arguments with hardly a body short: names of a few letters, one attribute; long:
 * names of scopes, attributes with shapes, as exporters write
 *
 * The bytes are put together here, field by field, so that a large model takes no more memory than its file. */
#include "base/varint.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct bytes {
    unsigned char *data;
    size_t size, capacity;
};

static void put(struct bytes *out, const void *data, size_t size) {
    if (out->size + size > out->capacity) {
        out->capacity = (out->size + size) * 2;
        out->data = realloc(out->data, out->capacity);
        if (!out->data) exit(1);
    }
    memcpy(out->data + out->size, data, size);
    out->size += size;
}

static void put_varint(struct bytes *out, unsigned long long value) {
    uint8_t bytes[TARE_VARINT_MAX];
    put(out, bytes, tare_varint_write(bytes, value));
}

static void put_number(struct bytes *out, unsigned field, unsigned long long value) {
    put_varint(out, field << 3);
    put_varint(out, value);
}

static void put_bytes(struct bytes *out, unsigned field, const void *data, size_t size) {
    put_varint(out, field << 3 | 2);
    put_varint(out, size);
    put(out, data, size);
}

static void put_text(struct bytes *out, unsigned field, const char *text) {
    put_bytes(out, field, text, strlen(text));
}

/* Puts `inner` as a field and empties it. */
static void put_message(struct bytes *out, unsigned field, struct bytes *inner) {
    put_bytes(out, field, inner->data, inner->size);
    inner->size = 0;
}

static void put_entry(struct bytes *out, unsigned field, const char *key, struct bytes *value) {
    static struct bytes entry;
    put_text(&entry, 1, key);
    put_message(&entry, 2, value);
    put_message(out, field, &entry);
}

/* ---- nodes ---- */

enum { FLOAT = 1, NODE_NAME = 1, NODE_OP = 2, NODE_INPUT = 3, NODE_ATTR = 5, BODY_NODES = 100 };

static void put_type(struct bytes *node, const char *key, int dtype) {
    static struct bytes value;
    put_number(&value, 6, (unsigned)dtype);
    put_entry(node, NODE_ATTR, key, &value);
}

/* Rows of 768 elements, or a scalar. */
static void put_shape(struct bytes *out, unsigned field, int is_scalar) {
    static struct bytes shape, dim;
    for (int i = 0; i < 2 && !is_scalar; i++) {
        put_number(&dim, 1, i ? 768 : ~0ull);
        put_message(&shape, 2, &dim);
    }
    put_message(out, field, &shape);
}

static void put_output_shapes(struct bytes *node, int is_scalar) {
    static struct bytes list, value;
    put_shape(&list, 7, is_scalar);
    put_message(&value, 1, &list);
    put_entry(node, NODE_ATTR, "_output_shapes", &value);
}

static void put_scalar(struct bytes *node, unsigned number) {
    static struct bytes tensor, value, shape;
    float scalar = (float)number;
    put_number(&tensor, 1, FLOAT);
    put_message(&tensor, 2, &shape);
    put_bytes(&tensor, 5, &scalar, sizeof scalar);
    put_message(&value, 8, &tensor);
    put_entry(node, NODE_ATTR, "value", &value);
}

static void name_of(char out[100], size_t i, bool is_long) {
    if (is_long)
        snprintf(out, 100, "model/transformer/encoder/layer_%zu/attention/self/operation_%zu", i / 40 % 24, i);
    else
        snprintf(out, 100, "n%zu", i);
}

/* Node 0 takes `first`; every fourth is a constant that the next one adds. */
static void put_node(struct bytes *out, unsigned field, size_t i, const char *first, bool in_function, bool is_long) {
    static struct bytes node;
    const bool constant = i % 4 == 3;
    char name[100], input[128];
    size_t behind = i % 4 == 0 && i ? 2 : 1; /* over the constant */
    name_of(name, i, is_long);
    put_text(&node, NODE_NAME, name);
    put_text(&node, NODE_OP, constant ? "Const" : "AddV2");
    for (int k = 0; k < 2 && !constant; k++) {
        if (i) name_of(name, k && behind == 2 ? i - 1 : i - behind, is_long);
        snprintf(input, sizeof input, "%s%s", i ? name : first,
                 !i || !in_function ? ""
                 : k && behind == 2 ? ":output:0"
                                    : ":z:0");
        put_text(&node, NODE_INPUT, input);
    }
    put_type(&node, constant ? "dtype" : "T", FLOAT);
    if (is_long) put_output_shapes(&node, constant);
    if (constant) put_scalar(&node, (unsigned)(i % 1000));
    put_message(out, field, &node);
}

/* The number of the last node of `count` that is no constant. */
static size_t last_of(size_t count) {
    return (count - 1) % 4 == 3 ? count - 2 : count - 1;
}

/* ---- graphs ---- */

static void put_argument(struct bytes *signature, unsigned field, const char *name, int dtype) {
    static struct bytes argument;
    put_text(&argument, 1, name);
    put_number(&argument, 3, (unsigned)dtype);
    put_message(signature, field, &argument);
}

static void put_user_name(struct bytes *function, size_t i, const char *name) {
    static struct bytes entry, attributes, value;
    put_text(&value, 2, name);
    put_entry(&attributes, 1, "_user_specified_name", &value);
    put_number(&entry, 1, i);
    put_message(&entry, 2, &attributes);
    put_message(function, 7, &entry);
}

static void put_function(struct bytes *library, const char *name, size_t n_args, size_t n_nodes, bool is_long) {
    static struct bytes function, signature, ret;
    char text[128];
    put_text(&signature, 1, name);
    for (size_t i = 0; i < n_args; i++) {
        snprintf(text, sizeof text, i ? "unknown_%zu" : "x", i);
        put_argument(&signature, 2, text, FLOAT);
    }
    put_argument(&signature, 3, "y", FLOAT);
    put_message(&function, 1, &signature);
    for (size_t i = 0; i < n_nodes; i++)
        put_node(&function, 3, i, "x", true, is_long);
    name_of(text, last_of(n_nodes), is_long);
    strcat(text, ":z:0");
    put_text(&ret, 1, "y");
    put_text(&ret, 2, text);
    put_message(&function, 4, &ret);
    for (size_t i = 0; i < n_args && is_long; i++) {
        snprintf(text, sizeof text, "argument_%zu", i);
        put_user_name(&function, i, text);
    }
    put_message(library, 1, &function);
}

static void put_call(struct bytes *graph, size_t i, const char *function, const char *input, size_t n_args) {
    static struct bytes node, value, name, list;
    char text[64];
    snprintf(text, sizeof text, "call_%zu", i);
    put_text(&node, NODE_NAME, text);
    put_text(&node, NODE_OP, "PartitionedCall");
    for (size_t k = 0; k < n_args; k++)
        put_text(&node, NODE_INPUT, input);
    put_text(&name, 1, function);
    put_message(&value, 10, &name);
    put_entry(&node, NODE_ATTR, "f", &value);
    for (size_t k = 0; k < n_args; k++)
        put_number(&list, 6, FLOAT);
    put_message(&value, 1, &list);
    put_entry(&node, NODE_ATTR, "Tin", &value);
    put_number(&list, 6, FLOAT);
    put_message(&value, 1, &list);
    put_entry(&node, NODE_ATTR, "Tout", &value);
    put_message(graph, 1, &node);
}

static void put_placeholder(struct bytes *graph) {
    static struct bytes node;
    put_text(&node, NODE_NAME, "input");
    put_text(&node, NODE_OP, "Placeholder");
    put_type(&node, "dtype", FLOAT);
    put_message(graph, 1, &node);
}

/* `functions` bodies, each called with the result of the one before; the last result's name goes to `result`. */
static void put_calls(char result[100], struct bytes *graph, size_t functions, size_t n_args, size_t n_nodes,
                      bool is_long) {
    static struct bytes library;
    char name[64], input[100] = "input";
    for (size_t i = 0; i < functions; i++) {
        snprintf(name, sizeof name, "__inference_body_%zu", i);
        put_function(&library, name, n_args, n_nodes, is_long);
        put_call(graph, i, name, input, n_args);
        snprintf(input, sizeof input, "call_%zu", i);
    }
    put_message(graph, 2, &library);
    strcpy(result, input);
}

static void put_tensor_info(struct bytes *signature, unsigned field, const char *key, const char *name) {
    static struct bytes info;
    put_text(&info, 1, name);
    put_number(&info, 2, FLOAT);
    put_shape(&info, 3, 0);
    put_entry(signature, field, key, &info);
}

static int write_model(const char *directory, const struct bytes *model) {
    char path[4096];
    FILE *file;
    mkdir(directory, 0777);
    snprintf(path, sizeof path, "%s/saved_model.pb", directory);
    file = fopen(path, "wb");
    if (!file || fwrite(model->data, 1, model->size, file) != model->size || fclose(file) != 0) {
        perror(path);
        return 1;
    }
    printf("%zu\n", model->size);
    return 0;
}

int main(int argc, char **argv) {
    struct bytes model = { 0 }, meta = { 0 }, graph = { 0 }, info = { 0 }, signature = { 0 };
    size_t nodes = argc == 5 ? strtoull(argv[3], NULL, 10) : 0;
    char result[100];
    bool is_long;
    if (!nodes) {
        fprintf(stderr, "usage: graph_model main|function|functions|captures DIR NODES short|long\n");
        return 2;
    }
    is_long = strcmp(argv[4], "long") == 0;
    put_placeholder(&graph);
    if (strcmp(argv[1], "main") == 0) {
        for (size_t i = 0; i < nodes; i++)
            put_node(&graph, 1, i, "input", false, is_long);
        name_of(result, last_of(nodes), is_long);
    } else if (strcmp(argv[1], "function") == 0) {
        put_calls(result, &graph, 1, 1, nodes, is_long);
    } else if (strcmp(argv[1], "functions") == 0) {
        put_calls(result, &graph, nodes / BODY_NODES + 1, 1, BODY_NODES, is_long);
    } else {
        put_calls(result, &graph, nodes / BODY_NODES + 1, BODY_NODES, 1, is_long);
    }
    put_text(&info, 4, "serve");
    put_text(&info, 5, "2.15.0");
    put_message(&meta, 1, &info);
    put_message(&meta, 2, &graph);
    strcat(result, ":0");
    put_tensor_info(&signature, 1, "x", "input:0");
    put_tensor_info(&signature, 2, "y", result);
    put_entry(&meta, 5, "serving_default", &signature);
    put_number(&model, 1, 1);
    put_message(&model, 2, &meta);
    return write_model(argv[2], &model);
}
