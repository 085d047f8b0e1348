/* Recipes: options of a plan, and rules that set how individual layers are quantized. The text format has one of them
 * per line:
 *
 *   # options of quant/plan.h, which those of the command precede
 *   algorithm=percentile:p=99.9
 *   passes=smooth_quant,gptq
 *   # the last rule that matches a layer applies; settings that it omits keep the values of the options
 *   op=Conv2D                          -> static granularity=per_channel
 *   name=".*dense_(1|2)/.*" op=MatMul  -> weight_only bits=4 granularity=per_block:64
 *   function=__inference_head_.*       -> float
 *   name=.*stem.*                      -> algorithm=percentile:p=99.9
 *
 * name, op and function are regular expressions (PCRE2) that must match the whole of the node's name, its op and the
 * name of its function (empty for the main graph); a rule without any holds for all layers. */
#ifndef TARE_QUANT_RECIPE_H
#define TARE_QUANT_RECIPE_H

#include "base/arena.h"
#include "quant/plan.h"

struct tare_quant_rule {
    const char *name, *op, *function;  /* regular expressions; NULL: anything */
    struct tare_quant_setting setting; /* setting.given: what the rule sets */
    const char *where;                 /* "recipe.txt:3", for messages */
    const char *comment;               /* at the end of its line; NULL: none */
};

struct tare_quant_recipe; /* allocated in its arena */

tare_status tare_quant_recipe_new(struct tare_quant_recipe **out, struct tare_arena *arena);
/* Adds a rule; its texts are borrowed. TARE_INVALID_ARGUMENT names a regular expression that does not compile, and
 * where. */
tare_status tare_quant_recipe_add(struct tare_quant_recipe *recipe, const struct tare_quant_rule *rule);
/* Parses rules and adds them. Errors name `where`, line and word. */
tare_status tare_quant_recipe_read(struct tare_quant_recipe *recipe, const char *text, size_t size, const char *where);
/* Sets the recipe of a plan to one with its rules, which stay where they are for others that use them, and those of the
 * text; frees the text. */
struct tare_strbuf;
tare_status tare_quant_recipe_extend(struct tare_quant_plan *plan, struct tare_arena *arena, struct tare_strbuf *text,
                                     const char *where) TARE_WARN_UNUSED;
/* The options that its lines set, by their masks `given`; NULL: there is no recipe. */
const struct tare_quant_plan *tare_quant_recipe_options(const struct tare_quant_recipe *recipe);
size_t tare_quant_recipe_count(const struct tare_quant_recipe *recipe);
const struct tare_quant_rule *tare_quant_recipe_rule(const struct tare_quant_recipe *recipe, size_t i);

/* Applies the last rule that matches the op to `setting`; *by_rule: there is one and it names a method. Marks every
 * matching rule in `used` (one element per rule; may be NULL). */
tare_status tare_quant_recipe_apply(struct tare_quant_setting *setting, bool *by_rule, bool *used,
                                    const struct tare_quant_recipe *recipe, const struct tare_node *op);

/* Whether an option of a plan may be in a recipe: all but those that name recipes and rules. */
bool tare_quant_recipe_takes(const struct tare_option *row);
/* Appends "activation_bits=", the name of an option as recipes have it. */
void tare_quant_option_put_name(struct tare_strbuf *out, const struct tare_option *row);
/* Writes a rule as a line. */
void tare_quant_rule_put(struct tare_strbuf *out, const struct tare_quant_rule *rule);
/* An array of structs with the fields `node` and `function`, strings that name a layer. */
struct tare_quant_layer_names {
    const char *first;
    size_t count, stride, node, function; /* in bytes, the fields from the begin of an element */
};
#define TARE_QUANT_LAYER_NAMES(array, n)                                                                               \
    {                                                                                                                  \
        (const char *)(array), (n), sizeof *(array), (size_t)((const char *)&(array)->node - (const char *)(array)),   \
            (size_t)((const char *)&(array)->function - (const char *)(array))                                         \
    }
/* Writes the conditions of a rule for layer i: name="…" function="…", without the arrow. TensorFlow numbers functions
 * anew in each export, so that the number at the end of a name may be any, unless it tells two of the layers apart. */
void tare_quant_recipe_put_layer(struct tare_strbuf *out, const struct tare_quant_layer_names *layers, size_t i);

#endif
