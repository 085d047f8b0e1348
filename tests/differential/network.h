/* A random network that is built layer by layer from a seed. The same seed builds the same network.
 *
 * A file layers_*.c has the layers of one kind and a table of them. A layer is a function and a row of that table. */
#ifndef TARE_TESTS_DIFFERENTIAL_NETWORK_H
#define TARE_TESTS_DIFFERENTIAL_NETWORK_H

#include "base/strbuf.h"
#include "support/mini_model.h"

enum { MOST_EARLIER = 24, MOST_RANK = 4 };

/* A value: image (batch, height, width, channels), sequence (batch, steps, channels) or vector (batch, channels). */
struct network_value {
    struct tare_edge edge;
    int rank;
    int64_t dims[MOST_RANK]; /* the first one, the batch, is not used */
};

struct network {
    struct tare_graph_model *model;
    struct tare_graph *graph;
    uint64_t seed;
    struct network_value x;                     /* what the next layer takes */
    struct network_value earlier[MOST_EARLIER]; /* outputs of the layers before */
    int n_earlier;
    int n_names;
    bool is_open;            /* images of other sizes may be fed, too */
    bool mixes;              /* outputs of an example depend on the others */
    bool rounds;             /* to integers or narrow floats: a difference in the last bits may become a large one */
    int depth;               /* of the function that the next layer is added to */
    struct tare_shape shape; /* of the input */
    int64_t batch;           /* examples to run it with */
    int64_t most_blocks;     /* of 16 channels, for layers whose channels are a multiple of it */
    int64_t work;            /* multiply-adds that layers may still add */
    struct tare_strbuf text; /* describes the layers */
};

struct network_layer {
    const char *name;
    int rank;                       /* of the values that it takes; 0: any */
    int weight;                     /* how often it is chosen, compared with the others */
    bool (*add)(struct network *n); /* changes n->x; false if it cannot take this value, which it has not changed */
    bool needs_size;                /* the numbers of lines, columns and steps are constants of the graph */
};

/* Tables, each ends with a row without a name. */
extern const struct network_layer network_conv_layers[], network_image_layers[], network_vector_layers[],
    network_elementwise_layers[], network_type_layers[], network_move_layers[], network_call_layers[],
    network_math_layers[];

/* Builds the network of a seed, with at most `most` layers. The model has a signature with the input x and one or two
 * outputs, all with an open batch. Release with network_free. */
void network_build(struct network *n, uint64_t seed, int most);
void network_free(struct network *n);

/* ---- for layers ---- */

/* Adds some random layers to n->graph. */
void network_add_layers(struct network *n, int count);
/* A number in [0, count). */
int network_draw(struct network *n, int count);
/* A number in [least, most]. */
int64_t network_between(struct network *n, int64_t least, int64_t most);
/* True with the probability 1 / count. */
bool network_rarely(struct network *n, int count);
/* A number of channels: any, or what many vectors hold without rest. */
int64_t network_channels(struct network *n);
/* Appends to the description. */
void network_note(struct network *n, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A new node name. */
const char *network_name(struct network *n, const char *stem);
/* True if so many multiply-adds for each example are left, which it takes. */
bool network_spend(struct network *n, int64_t work);

/* Constants: normally distributed floats of standard deviation `size`, and given integers. */
struct tare_edge network_random(struct network *n, struct tare_shape shape, double size);
struct tare_edge network_ints(struct network *n, int count, const int32_t *values);
/* A matrix of integers with two columns. */
struct tare_edge network_pairs(struct network *n, int rows, const int32_t *values);

/* Nodes with one and two inputs. */
struct tare_edge network_unary(struct network *n, const char *op, struct tare_edge x);
struct tare_edge network_binary(struct network *n, const char *op, struct tare_edge x, struct tare_edge y);
struct tare_edge network_reshape(struct network *n, struct tare_edge x, int rank, const int64_t *dims);
/* Adds nothing, a bias, an activation function, or both. */
struct tare_edge network_follow(struct network *n, struct tare_edge x, int64_t channels);
/* A Conv2D of n->x with random attributes, a pointwise one to `out` channels, and a dense layer of units; false if it
 * is too large. */
bool network_conv(struct network *n);
bool network_pointwise(struct network *n, int64_t out);
bool network_dense(struct network *n, int64_t units);
/* An earlier value of the same dims as n->x that is not n->x; NULL if there is none. From the first of the dims that
 * are not compared on, they may differ. */
const struct network_value *network_same(struct network *n, int compared);

#endif
