/* Quantization of a whole model. */
#ifndef TARE_QUANT_QUANTIZE_H
#define TARE_QUANT_QUANTIZE_H

#include "calib/observed.h"
#include "graph/model.h"
#include "quant/pass.h"
#include "quant/plan.h"

struct tare_statistics; /* calib/statistics.h */
struct tare_hessian;    /* calib/hessian.h */
struct tare_hessian_form;

/* The source of activation ranges: a calibration, or a test. Called before anything is rewritten. */
struct tare_quant_ranges {
    /* The range of a tensor from the setting's algorithm, for the integer type of the setting's activations. *found is
     * false if the tensor was not observed, or had no finite value. */
    tare_status (*find)(void *arg, struct tare_edge edge, const struct tare_quant_setting *setting, bool *found,
                        double *low, double *high);
    void *arg;
    /* The same for one entry of the tensor's counter: one iteration. NULL: there are none by entry. */
    tare_status (*find_entry)(void *arg, struct tare_edge edge, int64_t entry, const struct tare_quant_setting *setting,
                              bool *found, double *low, double *high);
    /* The statistics of a tensor, for accuracy passes; NULL where it was not observed. The function may be NULL. */
    const struct tare_statistics *(*statistics)(void *arg, struct tare_edge edge);
    /* The same for one entry of the tensor's counter. NULL: there are none by entry. */
    const struct tare_statistics *(*entry_statistics)(void *arg, struct tare_edge edge, int64_t entry);
    /* The Hessian of a layer's input (calib/hessian.h), for accuracy passes, of one entry (below 0: all); NULL where
     * there is none. The function may be NULL. */
    const struct tare_hessian *(*hessian)(void *arg, struct tare_edge edge, int64_t entry,
                                          const struct tare_hessian_form *form);
};

/* Result for one weighted op, for reports. */
struct tare_quant_outcome {
    const char *function, *node, *op;
    const char *refused;               /* why it stays float; NULL: quantized */
    const char *method;                /* NULL when refused */
    struct tare_quant_setting setting; /* that it was quantized by */
    int bits;                          /* of the weight */
    const char *input_node;            /* whose output `input_output` is the activation, before any rewrite */
    int input_output;
    struct tare_qparams input;   /* of the activation; scale 0 if there is none or it is computed at run time */
    const double *weight_scales; /* in the memory of the report; NULL: no weight */
    int64_t n_weight_scales;
    double weight_scale_min, weight_scale_max;
    double channel_spread; /* largest ÷ median magnitude of the weight's columns (channels); 1: equal */
    double weight_sqnr_db; /* of the dequantized weight against the original */
    bool weight_vanishes;  /* its integers are all 0, the original is not */
    int64_t weight_elements;
};

struct tare_quant_report {
    struct tare_quant_outcome *outcomes; /* arena memory */
    size_t count;
    size_t quantized;
    size_t integer_products;   /* of the model itself */
    const char **unused_rules; /* "recipe.txt:3": rules that matched no layer */
    const char **unused_hints; /* of each, the op or layer that it may mean: "op=Conv2D"; NULL: none is near */
    size_t n_unused_rules;
    const char **warnings; /* with plan.warns: layers with avoidable loss and the option that helps; a slower model */
    size_t n_warnings;
    const char **notes; /* what was not done as the plan says, and why */
    size_t n_notes;
};

/* Add a warning or a note of at most 1,023 bytes. */
tare_status tare_quant_add_warning(struct tare_quant_report *report, struct tare_arena *arena, const char *format, ...)
    TARE_PRINTF(3, 4);
tare_status tare_quant_add_note(struct tare_quant_report *report, struct tare_arena *arena, const char *format, ...)
    TARE_PRINTF(3, 4);

/* Quantizes every layer of every graph of the model (function bodies that loops, branches or several callers share
 * included) according to the plan. `ranges` may be NULL if no method in use needs them. */
tare_status tare_quantize(struct tare_quant_report *report, struct tare_arena *arena, struct tare_graph_model *model,
                          const struct tare_quant_ranges *ranges, const struct tare_quant_plan *plan);

/* The edges that calibration must observe for any plan: inputs and outputs of all quantizable layers. */
struct tare_quant_counter {
    struct tare_edge edge;
    struct tare_observed_counter counter; /* of arguments of the edge's function */
};
struct tare_edge_list {
    struct tare_edge *edges;
    size_t count;
    struct tare_quant_counter *counters; /* of those edges whose ranges may differ between the iterations of a loop */
    size_t n_counters;
};
tare_status tare_quant_observed_edges(struct tare_edge_list *out, struct tare_arena *arena,
                                      const struct tare_graph_model *model);

#endif
