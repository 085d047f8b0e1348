/* A model with one function, which a test annotates as a composite: what is fused, and what it computes. */
#ifndef TARE_TESTS_SUPPORT_COMPOSITE_H
#define TARE_TESTS_SUPPORT_COMPOSITE_H

#include "convert/composites/composites.h"
#include "support/mini_model.h"

enum { COMPOSITE_MOST_ARGS = 6 };

struct composite {
    struct tare_graph_model *model;
    struct tare_arena arena;
    struct tare_graph *function;
    struct tare_alias alias;
    struct tare_composites found;
};

void composite_set_up(struct composite *f);
/* The function has that name. */
void composite_set_up_named(struct composite *f, const char *name);
void composite_tear_down(struct composite *f);
struct tare_attr composite_text_attr(struct composite *f, const char *name, const char *text);
struct tare_attr composite_bool_attr(struct composite *f, const char *name, bool value);
struct tare_attr composite_float_attr(struct composite *f, const char *name, float value);
void composite_annotate(struct composite *f, struct tare_attr attr);
/* _implements in the form 'name: "NAME" attr { … }'. */
void composite_annotate_with(struct composite *f, const char *name, size_t n, const struct tare_attr *attrs);
/* Main-graph call with placeholders of these shapes, so that shapes are known in the function. */
void composite_call_with(struct composite *f, const struct tare_shape *shapes);
/* Sets `found`. */
void composite_fuse(struct composite *f);
/* The function stays as it is, with a reason that contains `part`. */
void composite_expect_reason(const struct composite *f, const char *part);
/* The function implements `name`, and its annotation is gone. */
void composite_expect_fused(const struct composite *f, const char *name);
/* Results of the function for arguments drawn anew. */
void composite_compute(struct composite *f, const struct tare_shape *shapes, struct tare_tensor *results);
/* Fuses, and expects the same bits before and after. */
void composite_expect_same_values(struct composite *f, const struct tare_shape *shapes, const char *name);

#endif
