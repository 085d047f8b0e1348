/* Recipes. Patterns are compiled into arena memory, so a recipe is freed with its arena. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "quant/recipe.h"
#include "base/option.h"
#include "base/strbuf.h"
#include "quant/pass.h"

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
    struct tare_quant_plan options; /* those that are given */
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

const struct tare_quant_plan *tare_quant_recipe_options(const struct tare_quant_recipe *recipe) {
    return recipe ? &recipe->options : NULL;
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

static bool gives(const struct tare_quant_rule *rule, enum tare_quant_setting_row row) {
    return rule->setting.given >> row & 1;
}

static void apply(struct tare_quant_setting *setting, const struct tare_quant_rule *rule) {
    tare_options_copy(setting, &rule->setting, tare_quant_setting_rows, rule->setting.given);
    if (!setting->method) return;
    /* The rule's method has no blocks or no wide activations, and the rule sets none. */
    if (!gives(rule, TARE_SET_GRANULARITY) && setting->granularity == TARE_PER_BLOCK && !setting->method->takes_blocks)
        setting->granularity = TARE_PER_CHANNEL;
    if (gives(rule, TARE_SET_BITS) && !gives(rule, TARE_SET_FORMAT)) setting->format = TARE_FORMAT_INT;
    if (!gives(rule, TARE_SET_ACTIVATION_BITS) && (setting->format || !setting->method->takes_wide))
        setting->activation_bits = 0;
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
    *by_rule = gives(last, TARE_SET_METHOD);
    return TARE_OK;
}

/* ---- text ---- */

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

/* The text of the comment with which the rest of a line begins; NULL: it does not. */
static const char *comment_at(const char *line) {
    line += strspn(line, " \t\r");
    return *line == '#' ? line + 1 + strspn(line + 1, " ") : NULL;
}

bool tare_quant_recipe_takes(const struct tare_option *row) {
    return row->kind != TARE_OPTION_LIST && strcmp(row->name, "recipe") != 0;
}

/* Conditions and the options of a plan that a line of their own may set. */
static tare_status fail_condition(const char *word) {
    enum { MOST = 64 };
    const char *names[MOST + PATTERNS + 1] = { NULL }, *near;
    size_t count = 0;
    for (int i = 0; i < PATTERNS; i++)
        names[count++] = pattern_names[i];
    struct tare_option_walk walk = tare_option_walk(tare_plan_rows);
    for (const struct tare_option *row; count < MOST + PATTERNS && (row = tare_option_next(&walk));)
        if (tare_quant_recipe_takes(row)) names[count++] = row->name;
    near = tare_nearest_name(word, names);
    if (near) return TARE_FAIL(TARE_USAGE, "'%s' is not a condition (did you mean '%s='?)", word, near);
    return TARE_FAIL(TARE_USAGE,
                     "'%s' is not a condition (expected name=, op= or function= and a regular expression, then ->, or "
                     "OPTION=VALUE with an option of 'tare help quantize' under Method)",
                     word);
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
    return fail_condition(word);
}

/* A line "NAME=VALUE" without "->": an option of the model. The last such line applies. */
static tare_status read_option(struct tare_quant_recipe *recipe, char *word, char *rest) {
    const struct tare_quant_pass *const *list;
    struct tare_quant_plan *options = &recipe->options;
    char *value = strchr(word, '='), *more;
    TARE_TRY(next_word(&more, &rest));
    if (more) return TARE_FAIL(TARE_USAGE, "'%s' behind the option (expected nothing)", more);
    *value++ = '\0';
    TARE_TRY(tare_option_set_value(options, tare_plan_rows, word, value));
    return options->pass_names ? tare_quant_passes_parse(&list, recipe->arena, options->pass_names) : TARE_OK;
}

static bool is_option(const char *word) {
    char name[64] = "";
    const size_t size = strcspn(word, "=");
    if (!word[size] || size >= sizeof name) return false;
    memcpy(name, word, size);
    const struct tare_option *row = tare_option_find(tare_plan_rows, name);
    return row && tare_quant_recipe_takes(row);
}

/* A setting is named once in a rule; what a preset sets may be named after it. */
static tare_status name_once(unsigned *named, const char *name) {
    const struct tare_option *row = tare_option_find(tare_quant_setting_rows, name);
    const unsigned bit = row ? 1u << (row - tare_quant_setting_rows) : 0;
    if (*named & bit) return TARE_FAIL(TARE_USAGE, "duplicate %s", name);
    *named |= bit;
    return TARE_OK;
}

static tare_status read_line(struct tare_quant_recipe *recipe, char *line, struct tare_quant_rule *rule) {
    char *word;
    bool conditions = true;
    unsigned named = 0;
    TARE_TRY(next_word(&word, &line));
    if (!word) return TARE_OK;
    if (is_option(word)) return read_option(recipe, word, line);
    while (word) {
        if (strcmp(word, "->") == 0 && conditions) {
            conditions = false;
        } else if (conditions) {
            TARE_TRY(read_condition(rule, word));
        } else if (strchr(word, '=')) {
            char *value = strchr(word, '=');
            *value++ = '\0';
            TARE_TRY(name_once(&named, word));
            TARE_TRY(tare_quant_setting_read(&rule->setting, word, value));
        } else {
            TARE_TRY(name_once(&named, tare_quant_setting_rows[TARE_SET_METHOD].name));
            rule->setting.given |= 1u << TARE_SET_METHOD;
            TARE_TRY(tare_quant_method_read(&rule->setting, word));
        }
        rule->comment = comment_at(line);
        TARE_TRY(next_word(&word, &line));
    }
    if (!rule->setting.given)
        return TARE_FAIL(TARE_USAGE, "the rule sets nothing (expected -> and a method or settings)");
    if (gives(rule, TARE_SET_METHOD) && gives(rule, TARE_SET_GRANULARITY))
        TARE_TRY(tare_quant_check_setting(&rule->setting));
    return tare_quant_recipe_add(recipe, rule);
}

tare_status tare_quant_recipe_read(struct tare_quant_recipe *recipe, const char *text, size_t size, const char *where) {
    char *copy = tare_arena_strndup(recipe->arena, text, size), *line = copy;
    if (!copy) return TARE_NO_MEMORY;
    if (strlen(copy) != size) return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s: not text", where);
    if (strncmp(copy, "\xEF\xBB\xBF", 3) == 0) line += 3; /* a byte order mark, as some editors write it */
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

tare_status tare_quant_recipe_extend(struct tare_quant_plan *plan, struct tare_arena *arena, struct tare_strbuf *text,
                                     const char *where) {
    struct tare_quant_recipe *recipe;
    tare_status status = text->failed ? TARE_NO_MEMORY : tare_quant_recipe_new(&recipe, arena);
    for (size_t i = 0; i < tare_quant_recipe_count(plan->recipe) && status == TARE_OK; i++)
        status = tare_quant_recipe_add(recipe, tare_quant_recipe_rule(plan->recipe, i));
    if (status == TARE_OK) status = tare_quant_recipe_read(recipe, tare_strbuf_text(text), text->size, where);
    if (status == TARE_OK) plan->recipe = recipe;
    tare_strbuf_free(text);
    return status;
}

/* ---- writing ---- */

/* A regular expression in quotes that matches only this text. */
static void put_literal(struct tare_strbuf *out, const char *text, size_t size) {
    for (const char *c = text; c < text + size; c++) {
        if (strchr("\n\"\\^$.|?*+()[]{}", *c)) tare_strbuf_putc(out, '\\');
        tare_strbuf_putc(out, *c == '\n' ? 'n' : *c);
    }
}

/* The size of a function's name without its number: of "__inference_serve_143" up to the last "_"; 0: it has none. */
static size_t stem_of(const char *function) {
    size_t end = strlen(function);
    while (end && function[end - 1] >= '0' && function[end - 1] <= '9')
        end--;
    return function[end] && end && function[end - 1] == '_' ? end : 0;
}

static const char *name_of(const struct tare_quant_layer_names *layers, size_t i, size_t field) {
    return *(const char *const *)(const void *)(layers->first + i * layers->stride + field);
}

/* Whether another layer differs from layer i only in its function's number. */
static bool needs_number(const struct tare_quant_layer_names *layers, size_t i, size_t stem) {
    const char *node = name_of(layers, i, layers->node), *function = name_of(layers, i, layers->function);
    for (size_t k = 0; k < layers->count; k++) {
        const char *other = name_of(layers, k, layers->function);
        if (strcmp(name_of(layers, k, layers->node), node) == 0 && strcmp(other, function) != 0 &&
            stem_of(other) == stem && memcmp(other, function, stem) == 0)
            return true;
    }
    return false;
}

void tare_quant_recipe_put_layer(struct tare_strbuf *out, const struct tare_quant_layer_names *layers, size_t i) {
    const char *node = name_of(layers, i, layers->node), *function = name_of(layers, i, layers->function);
    const size_t stem = stem_of(function);
    const bool numbered = !stem || needs_number(layers, i, stem);
    tare_strbuf_puts(out, "name=\"");
    put_literal(out, node, strlen(node));
    tare_strbuf_puts(out, "\" function=\"");
    put_literal(out, function, numbered ? strlen(function) : stem);
    tare_strbuf_puts(out, numbered ? "\"" : "[0-9]+\"");
}

void tare_quant_option_put_name(struct tare_strbuf *out, const struct tare_option *row) {
    for (const char *c = row->name; *c; c++)
        tare_strbuf_putc(out, *c == '-' ? '_' : *c);
    tare_strbuf_putc(out, '=');
}

static void put_pattern(struct tare_strbuf *out, const char *name, const char *pattern) {
    if (!pattern) return;
    tare_strbuf_printf(out, "%s=\"", name);
    for (; *pattern; pattern++) {
        if (*pattern == '"') tare_strbuf_putc(out, '\\');
        tare_strbuf_putc(out, *pattern);
    }
    tare_strbuf_puts(out, "\" ");
}

void tare_quant_rule_put(struct tare_strbuf *out, const struct tare_quant_rule *rule) {
    put_pattern(out, "name", rule->name);
    put_pattern(out, "op", rule->op);
    put_pattern(out, "function", rule->function);
    tare_strbuf_puts(out, "->");
    for (size_t i = 0; tare_quant_setting_rows[i].name; i++) {
        if (!(rule->setting.given >> i & 1)) continue;
        tare_strbuf_putc(out, ' ');
        if (i != TARE_SET_METHOD) tare_quant_option_put_name(out, &tare_quant_setting_rows[i]);
        tare_option_put_value(out, &tare_quant_setting_rows[i], &rule->setting);
    }
    if (rule->comment) tare_strbuf_printf(out, "  # %s", rule->comment);
    tare_strbuf_putc(out, '\n');
}
