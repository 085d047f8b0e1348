/* Recipes: rules that set how individual layers are quantized. The text format has one rule per line:
 *
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
#include "quant/rewrite.h"

/* Which parts of a setting a rule sets. */
enum tare_rule_sets {
    TARE_RULE_METHOD = 1 << 0,
    TARE_RULE_BITS = 1 << 1,
    TARE_RULE_GRANULARITY = 1 << 2,
    TARE_RULE_FULL_RANGE = 1 << 3,
    TARE_RULE_SYMMETRIC = 1 << 4,
    TARE_RULE_ALGORITHM = 1 << 5,
    TARE_RULE_ACTIVATION_BITS = 1 << 6,
};

struct tare_quant_rule {
    const char *name, *op, *function; /* regular expressions; NULL: anything */
    struct tare_quant_setting setting;
    unsigned sets;     /* tare_rule_sets */
    const char *where; /* "recipe.txt:3", for messages */
};

struct tare_quant_recipe; /* allocated in its arena */

tare_status tare_quant_recipe_new(struct tare_quant_recipe **out, struct tare_arena *arena);
/* Adds a rule; its texts are borrowed. TARE_INVALID_ARGUMENT names a regular expression that does not compile, and
 * where. */
tare_status tare_quant_recipe_add(struct tare_quant_recipe *recipe, const struct tare_quant_rule *rule);
/* Parses rules and adds them. Errors name `where`, line and word. */
tare_status tare_quant_recipe_read(struct tare_quant_recipe *recipe, const char *text, size_t size, const char *where);
/* The accuracy passes of a line "passes=P,…", in the syntax of tare_quant_passes_parse; NULL: no such line. */
const char *tare_quant_recipe_passes(const struct tare_quant_recipe *recipe);
size_t tare_quant_recipe_count(const struct tare_quant_recipe *recipe);
const struct tare_quant_rule *tare_quant_recipe_rule(const struct tare_quant_recipe *recipe, size_t i);

/* Applies the last rule that matches the op to `setting`; *by_rule: there is one and it names a method. Marks every
 * matching rule in `used` (one element per rule; may be NULL). */
tare_status tare_quant_recipe_apply(struct tare_quant_setting *setting, bool *by_rule, bool *used,
                                    const struct tare_quant_recipe *recipe, const struct tare_node *op);

/* Sets one part from its name and value: bits=4, granularity=per_block:64, symmetric=true, full_range=true,
 * algorithm=entropy. Adds the part's bit to *sets. For TARE_USAGE the message describes the error. The strings are
 * borrowed. */
tare_status tare_quant_setting_read(struct tare_quant_setting *setting, unsigned *sets, const char *name,
                                    const char *text);

/* Writes the conditions of a rule for a single layer: name="…" function="…", without the arrow. */
struct tare_strbuf;
void tare_quant_recipe_put_layer(struct tare_strbuf *out, const char *node, const char *function);

#endif
