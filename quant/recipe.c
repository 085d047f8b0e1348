/* Recipes. Patterns are compiled into arena memory, so a recipe is freed with its arena. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "quant/recipe.h"
#include "base/option.h"
#include "base/strbuf.h"
#include "calib/algorithm.h"

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

enum { NAME, OP, FUNCTION, PATTERNS };
static const char *const pattern_names[PATTERNS] = { "name", "op", "function" };
static const uint32_t MOST_STEPS = 1000000; /* limit of matching steps: a pattern must not run forever */

struct entry {
    struct tare_quant_rule rule;
    pcre2_code *patterns[PATTERNS];
};

struct tare_quant_recipe {
    struct tare_arena *arena;
    struct entry *entries;
    size_t count;
    const char *passes;
    pcre2_compile_context *compile;
    pcre2_match_context *limits;
    pcre2_match_data *match;
};

static void *allocate(size_t size, void *arena) {
    return tare_arena_alloc(arena, size);
}
static void release(void *memory, void *arena) {
    (void)memory;
    (void)arena;
}

tare_status tare_quant_recipe_new(struct tare_quant_recipe **out, struct tare_arena *arena) {
    struct tare_quant_recipe *recipe = TARE_NEW(arena, struct tare_quant_recipe);
    pcre2_general_context *memory = pcre2_general_context_create(allocate, release, arena);
    if (!recipe || !memory) return TARE_NO_MEMORY;
    recipe->arena = arena;
    recipe->compile = pcre2_compile_context_create(memory);
    recipe->limits = pcre2_match_context_create(memory);
    recipe->match = pcre2_match_data_create(1, memory);
    if (!recipe->compile || !recipe->limits || !recipe->match) return TARE_NO_MEMORY;
    pcre2_set_match_limit(recipe->limits, MOST_STEPS);
    *out = recipe;
    return TARE_OK;
}

static tare_status compile(pcre2_code **out, const struct tare_quant_recipe *recipe, const char *what,
                           const char *pattern) {
    PCRE2_SIZE at = 0;
    int error = 0;
    char text[128];
    if (!pattern) return TARE_OK;
    *out = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_ANCHORED | PCRE2_ENDANCHORED, &error, &at,
                         recipe->compile);
    if (*out) return TARE_OK;
    pcre2_get_error_message(error, (PCRE2_UCHAR *)text, sizeof text);
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s '%s' is not a regular expression: %s at character %zu", what, pattern,
                     text, (size_t)at + 1);
}

tare_status tare_quant_recipe_add(struct tare_quant_recipe *recipe, const struct tare_quant_rule *rule) {
    struct entry *grown = tare_arena_append(recipe->arena, recipe->entries, recipe->count, sizeof *grown);
    const char *const patterns[PATTERNS] = { rule->name, rule->op, rule->function };
    if (!grown) return TARE_NO_MEMORY;
    recipe->entries = grown;
    grown[recipe->count].rule = *rule;
    for (int i = 0; i < PATTERNS; i++)
        TARE_TRY(compile(&grown[recipe->count].patterns[i], recipe, pattern_names[i], patterns[i]));
    recipe->count++;
    return TARE_OK;
}

const char *tare_quant_recipe_passes(const struct tare_quant_recipe *recipe) {
    return recipe ? recipe->passes : NULL;
}

size_t tare_quant_recipe_count(const struct tare_quant_recipe *recipe) {
    return recipe ? recipe->count : 0;
}

const struct tare_quant_rule *tare_quant_recipe_rule(const struct tare_quant_recipe *recipe, size_t i) {
    return &recipe->entries[i].rule;
}

/* ---- matching ---- */

static tare_status matches(bool *out, const struct tare_quant_recipe *recipe, const struct entry *entry,
                           const struct tare_node *op) {
    const char *const texts[PATTERNS] = { op->name, op->op, op->graph->name };
    *out = true;
    for (int i = 0; i < PATTERNS && *out; i++) {
        int count;
        if (!entry->patterns[i]) continue;
        count = pcre2_match(entry->patterns[i], (PCRE2_SPTR)texts[i], PCRE2_ZERO_TERMINATED, 0, 0, recipe->match,
                            recipe->limits);
        if (count < 0 && count != PCRE2_ERROR_NOMATCH)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s: %s takes too long to match '%s'", entry->rule.where,
                             pattern_names[i], texts[i]);
        *out = count >= 0;
    }
    return TARE_OK;
}

static void apply(struct tare_quant_setting *setting, const struct tare_quant_rule *rule) {
    const struct tare_quant_setting *from = &rule->setting;
    if (rule->sets & TARE_RULE_METHOD) setting->method = from->method;
    if (rule->sets & TARE_RULE_BITS) setting->bits = from->bits;
    if (rule->sets & TARE_RULE_GRANULARITY) {
        setting->granularity = from->granularity;
        setting->block = from->block;
    } else if (setting->granularity == TARE_PER_BLOCK && setting->method && !setting->method->takes_blocks) {
        setting->granularity = TARE_PER_CHANNEL; /* the rule's method has no blocks, and the rule sets none */
    }
    if (rule->sets & TARE_RULE_FULL_RANGE) setting->full_range = from->full_range;
    if (rule->sets & TARE_RULE_SYMMETRIC) setting->symmetric = from->symmetric;
    if (rule->sets & TARE_RULE_ALGORITHM) setting->algorithm = from->algorithm;
    if (rule->sets & TARE_RULE_ACTIVATION_BITS)
        setting->activation_bits = from->activation_bits;
    else if (setting->method && !setting->method->takes_wide)
        setting->activation_bits = 0; /* as with blocks */
}

tare_status tare_quant_recipe_apply(struct tare_quant_setting *setting, bool *by_rule, bool *used,
                                    const struct tare_quant_recipe *recipe, const struct tare_node *op) {
    const struct tare_quant_rule *last = NULL;
    *by_rule = false;
    for (size_t i = 0; i < tare_quant_recipe_count(recipe); i++) {
        bool match;
        TARE_TRY(matches(&match, recipe, &recipe->entries[i], op));
        if (!match) continue;
        last = &recipe->entries[i].rule;
        if (used) used[i] = true;
    }
    if (!last) return TARE_OK;
    apply(setting, last);
    *by_rule = (last->sets & TARE_RULE_METHOD) != 0;
    return TARE_OK;
}

/* ---- text ---- */

static tare_status read_granularity(struct tare_quant_setting *setting, const char *text) {
    static const char BLOCK[] = "per_block:";
    char *end;
    setting->block = 0;
    if (strcmp(text, "per_tensor") == 0) {
        setting->granularity = TARE_PER_TENSOR;
    } else if (strcmp(text, "per_channel") == 0) {
        setting->granularity = TARE_PER_CHANNEL;
    } else if (strncmp(text, BLOCK, sizeof BLOCK - 1) == 0) {
        setting->granularity = TARE_PER_BLOCK;
        setting->block = strtoll(text + sizeof BLOCK - 1, &end, 10);
        if (*end || (setting->block != 32 && setting->block != 64 && setting->block != 128 && setting->block != 256))
            return TARE_FAIL(TARE_USAGE, "granularity '%s': blocks have 32, 64, 128 or 256 rows", text);
    } else {
        return TARE_FAIL(TARE_USAGE, "granularity is '%s' (expected per_tensor, per_channel or per_block:N)", text);
    }
    return TARE_OK;
}

static tare_status read_flag(bool *out, const char *name, const char *text) {
    *out = strcmp(text, "true") == 0;
    if (*out || strcmp(text, "false") == 0) return TARE_OK;
    return TARE_FAIL(TARE_USAGE, "%s is '%s' (expected true or false)", name, text);
}

tare_status tare_quant_setting_read(struct tare_quant_setting *setting, unsigned *sets, const char *name,
                                    const char *text) {
    static const char *const names[] = { "bits",      "granularity",     "full_range", "symmetric",
                                         "algorithm", "activation_bits", NULL };
    int part = 0;
    while (names[part] && strcmp(names[part], name) != 0)
        part++;
    if (!names[part]) {
        const char *nearest = tare_nearest_name(name, names);
        return TARE_FAIL(TARE_USAGE, "there is no setting '%s' (%s%s)", name,
                         nearest ? "did you mean "
                                 : "known: bits, granularity, full_range, symmetric, algorithm, activation_bits",
                         nearest ? nearest : "");
    }
    *sets |= TARE_RULE_BITS << part;
    switch (part) {
    case 0:
        if (strcmp(text, "8") != 0 && strcmp(text, "4") != 0)
            return TARE_FAIL(TARE_USAGE, "bits is '%s' (expected 8 or 4)", text);
        setting->bits = text[0] - '0';
        return TARE_OK;
    case 1:
        return read_granularity(setting, text);
    case 2:
        return read_flag(&setting->full_range, name, text);
    case 3:
        return read_flag(&setting->symmetric, name, text);
    case 4:
        return tare_algorithm_parse(&setting->algorithm, text);
    default:
        if (strcmp(text, "8") != 0 && strcmp(text, "16") != 0)
            return TARE_FAIL(TARE_USAGE, "activation_bits is '%s' (expected 8 or 16)", text);
        setting->activation_bits = text[0] == '8' ? 8 : 16;
        return TARE_OK;
    }
}

/* The next word of a line, or NULL at its end; quotes keep spaces and '#'. */
static tare_status next_word(char **out, char **at) {
    char *from = *at, *to;
    bool quoted = false;
    while (*from == ' ' || *from == '\t' || *from == '\r')
        from++;
    *out = *from && *from != '#' ? from : NULL;
    for (to = from; *from && (quoted || !strchr(" \t\r", *from)); from++) {
        if (*from == '"')
            quoted = !quoted;
        else if (quoted && *from == '\\' && from[1] == '"')
            *to++ = *++from;
        else
            *to++ = *from;
    }
    if (quoted) return TARE_FAIL(TARE_USAGE, "a quotation mark is not closed");
    *at = *from ? from + 1 : from;
    if (*out) *to = '\0';
    return TARE_OK;
}

static tare_status read_condition(struct tare_quant_rule *rule, char *word) {
    const char **const fields[PATTERNS] = { &rule->name, &rule->op, &rule->function };
    char *value = strchr(word, '=');
    if (value) *value++ = '\0';
    for (int i = 0; i < PATTERNS && value; i++) {
        if (strcmp(word, pattern_names[i]) != 0) continue;
        if (*fields[i]) return TARE_FAIL(TARE_USAGE, "duplicate %s", word);
        *fields[i] = value;
        return TARE_OK;
    }
    return TARE_FAIL(TARE_USAGE,
                     "'%s' is not a condition (expected name=, op= or function= and a regular expression, then ->)",
                     word);
}

static tare_status read_method(struct tare_quant_rule *rule, const char *word) {
    const char *known[16] = { "float" };
    const char *nearest;
    size_t count = 1;
    rule->sets |= TARE_RULE_METHOD;
    rule->setting.method = tare_quant_method_find(word);
    if (rule->setting.method || strcmp(word, "float") == 0) return TARE_OK;
    for (size_t i = 0; tare_quant_methods[i] && count < 15; i++)
        known[count++] = tare_quant_methods[i]->name;
    nearest = tare_nearest_name(word, known);
    return TARE_FAIL(TARE_USAGE, "there is no method '%s' (%s%s)", word,
                     nearest ? "did you mean " : "tare help quantize lists them", nearest ? nearest : "");
}

static const char PASSES[] = "passes=";

/* For the whole model; the last such line applies. */
static tare_status read_passes(struct tare_quant_recipe *recipe, const char *passes, char *rest) {
    const struct tare_quant_pass *const *list;
    char *word;
    TARE_TRY(next_word(&word, &rest));
    if (word) return TARE_FAIL(TARE_USAGE, "'%s' behind the passes (expected nothing)", word);
    recipe->passes = passes;
    return tare_quant_passes_parse(&list, recipe->arena, passes);
}

static tare_status read_line(struct tare_quant_recipe *recipe, char *line, struct tare_quant_rule *rule) {
    char *word;
    bool conditions = true;
    TARE_TRY(next_word(&word, &line));
    if (!word) return TARE_OK;
    if (strncmp(word, PASSES, sizeof PASSES - 1) == 0) return read_passes(recipe, word + sizeof PASSES - 1, line);
    while (word) {
        if (strcmp(word, "->") == 0 && conditions) {
            conditions = false;
        } else if (conditions) {
            TARE_TRY(read_condition(rule, word));
        } else if (strchr(word, '=')) {
            char *value = strchr(word, '=');
            *value++ = '\0';
            TARE_TRY(tare_quant_setting_read(&rule->setting, &rule->sets, word, value));
        } else {
            TARE_TRY(read_method(rule, word));
        }
        TARE_TRY(next_word(&word, &line));
    }
    if (!rule->sets) return TARE_FAIL(TARE_USAGE, "the rule sets nothing (expected -> and a method or settings)");
    if (rule->sets & TARE_RULE_METHOD && rule->sets & TARE_RULE_GRANULARITY)
        TARE_TRY(tare_quant_check_setting(&rule->setting));
    return tare_quant_recipe_add(recipe, rule);
}

tare_status tare_quant_recipe_read(struct tare_quant_recipe *recipe, const char *text, size_t size, const char *where) {
    char *copy = tare_arena_strndup(recipe->arena, text, size), *line = copy;
    if (!copy) return TARE_NO_MEMORY;
    if (strlen(copy) != size) return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s: not text", where);
    for (int number = 1; line; number++) {
        char *end = strchr(line, '\n');
        struct tare_quant_rule rule = { .where = tare_arena_printf(recipe->arena, "%s:%d", where, number) };
        if (!rule.where) return TARE_NO_MEMORY;
        if (end) *end++ = '\0';
        TARE_TRY(tare_error_prefix(read_line(recipe, line, &rule), "%s:%d", where, number));
        line = end;
    }
    return TARE_OK;
}

/* ---- writing ---- */

/* A regular expression that matches only this name. */
static void put_literal(struct tare_strbuf *out, const char *text) {
    for (; *text; text++) {
        if (strchr("\\^$.|?*+()[]{}", *text)) tare_strbuf_putc(out, '\\');
        tare_strbuf_putc(out, *text);
    }
}

void tare_quant_recipe_put_layer(struct tare_strbuf *out, const char *node, const char *function) {
    tare_strbuf_puts(out, "name=\"");
    put_literal(out, node);
    tare_strbuf_puts(out, "\" function=\"");
    put_literal(out, function);
    tare_strbuf_puts(out, "\"");
}
