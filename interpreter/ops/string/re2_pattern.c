/* Reads the syntax of RE2 (https://github.com/google/re2/wiki/Syntax) and writes it for PCRE2. Flags, escapes and
 * classes are resolved here, so that nothing depends on PCRE2's own: what is written has characters by number, classes,
 * groups, alternatives, repeats, and assertions for the ends of lines. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "interpreter/ops/string/re2_pattern.h"
#include "base/alloc.h"
#include "interpreter/ops/string/codepoint.h"

#include <pcre2.h>
#include <stdio.h>
#include <string.h>

enum { MOST_REPEATS = 1000, MOST_NESTED = 1000, LAST_CODE = 0x10ffff, LONG_S = 0x17f, KELVIN = 0x212a };

enum flag { FOLD = 1, LINES = 2, DOT_NEWLINE = 4, LAZY = 8 };

/* What the text before the place that is read leaves for it. */
struct group {
    unsigned flags;  /* to restore after the group */
    size_t start;    /* in the output */
    int64_t repeats; /* the largest product of nested repeats so far */
};

struct translator {
    struct tare_strbuf *out;
    struct tare_str pattern;
    size_t at;
    unsigned flags;
    struct group groups[MOST_NESTED];
    size_t depth;
    bool has_atom;     /* something that can be repeated is before `at` */
    bool is_repeated;  /* a repeat is directly before `at` */
    bool was_repeated; /* the last atom has a repeat */
    size_t atom;       /* where it starts in the output */
    int64_t repeats;   /* the product of repeats in it */
    bool with_bytes;   /* TARE_RE2_BYTE stands for a byte that is not text */
};

static tare_status refuse(const struct translator *t, const char *reason, size_t from, size_t to) {
    if (to > t->pattern.size) to = t->pattern.size;
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "Invalid pattern: %.*s, error: %s: %.*s", (int)t->pattern.size,
                     t->pattern.data, reason, (int)(to - from), t->pattern.data + from);
}

static int peek(const struct translator *t, size_t ahead) {
    return t->at + ahead < t->pattern.size ? (unsigned char)t->pattern.data[t->at + ahead] : -1;
}

static bool follows(const struct translator *t, const char *text) {
    const size_t size = strlen(text);
    return t->pattern.size - t->at >= size && memcmp(t->pattern.data + t->at, text, size) == 0;
}

static tare_status read_code(uint32_t *code, struct translator *t) {
    bool bad;
    const size_t size = tare_codepoint_read(code, &bad, TARE_ENCODING_UTF8,
                                            (const unsigned char *)t->pattern.data + t->at, t->pattern.size - t->at);
    if (bad || !size) return refuse(t, "invalid UTF-8", t->at, t->at);
    t->at += size;
    return TARE_OK;
}

/* ---- atoms ---- */

static void begin_atom(struct translator *t) {
    t->has_atom = true;
    t->was_repeated = false;
    t->atom = t->out->size;
    t->repeats = 1;
}

static void put_code(struct translator *t, uint32_t code) {
    tare_strbuf_printf(t->out, "\\x{%x}", code);
}

/* Before a class: it does not have what stands for a byte. */
static void begin_class(struct translator *t) {
    begin_atom(t);
    if (t->with_bytes) tare_strbuf_printf(t->out, "(?:(?!\\x{%x})", TARE_RE2_BYTE);
    tare_strbuf_puts(t->out, t->flags & FOLD ? "(?i:[" : "[");
}

static void end_class(struct translator *t) {
    tare_strbuf_puts(t->out, t->flags & FOLD ? "])" : "]");
    if (t->with_bytes) tare_strbuf_putc(t->out, ')');
}

static void put_literal(struct translator *t, uint32_t code) {
    begin_atom(t);
    if (t->flags & FOLD) tare_strbuf_puts(t->out, "(?i:");
    put_code(t, code);
    if (t->flags & FOLD) tare_strbuf_putc(t->out, ')');
}

static void put_assertion(struct translator *t, const char *text) {
    begin_atom(t);
    tare_strbuf_printf(t->out, "(?:%s)", text);
}

/* ---- escapes ---- */

static int digit_of(int c, int base) {
    const int value = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : base;
    return value < base ? value : -1;
}

/* Digits after "\x": two, or any number in braces. */
static bool read_hexadecimal(uint32_t *code, struct translator *t) {
    const bool braces = peek(t, 0) == '{';
    size_t count = 0;
    *code = 0;
    t->at += braces;
    for (; digit_of(peek(t, 0), 16) >= 0 && (braces || count < 2); t->at++, count++) {
        *code = *code * 16 + (uint32_t)digit_of(peek(t, 0), 16);
        if (*code > LAST_CODE) return false;
    }
    if (!braces) return count == 2;
    return peek(t, 0) == '}' && count > 0 && ++t->at;
}

/* \0, \012, or \12: one digit from 1 on would be a back-reference. */
static bool read_octal(uint32_t *code, struct translator *t, int first) {
    *code = (uint32_t)(first - '0');
    if (first != '0' && digit_of(peek(t, 0), 8) < 0) return false;
    for (int i = 0; i < 2 && digit_of(peek(t, 0), 8) >= 0; i++)
        *code = *code * 8 + (uint32_t)digit_of(t->pattern.data[t->at++], 8);
    return true;
}

/* A character after a backslash at t->at. */
static tare_status read_escape(uint32_t *code, struct translator *t) {
    static const char letters[] = "ntrafv", values[] = "\n\t\r\a\f\v";
    const size_t start = t->at++;
    const int c = peek(t, 0);
    if (c < 0) return refuse(t, "trailing \\", start, start);
    const char *letter = strchr(letters, c);
    bool good = true;
    t->at++;
    if (c >= '0' && c <= '7')
        good = read_octal(code, t, c);
    else if (c == 'x')
        good = read_hexadecimal(code, t);
    else if (c && letter)
        *code = (uint32_t)(unsigned char)values[letter - letters];
    else if (c < 0x80 && !(c >= '0' && c <= '9') && !((c | 32) >= 'a' && (c | 32) <= 'z'))
        *code = (uint32_t)c;
    else
        good = false;
    return good ? TARE_OK : refuse(t, "invalid escape sequence", start, t->at);
}

/* ---- classes of ASCII characters ---- */

struct ascii_class {
    const char *name, *ranges; /* pairs of characters */
};

static const struct ascii_class perl_classes[] = { { "d", "09" }, { "s", "\t\n\f\r  " }, { "w", "09AZ__az" } };

static const struct ascii_class posix_classes[] = {
    { "alnum", "09AZaz" }, { "alpha", "AZaz" }, { "ascii", NULL },      { "blank", "\t\t  " },  { "cntrl", NULL },
    { "digit", "09" },     { "graph", "!~" },   { "lower", "az" },      { "print", " ~" },      { "punct", "!/:@[`{~" },
    { "space", "\t\r  " }, { "upper", "AZ" },   { "word", "09AZ__az" }, { "xdigit", "09AFaf" },
};

static void mark_class(bool marks[128], const struct ascii_class *class) {
    const bool is_control = !class->ranges && class->name[0] == 'c';
    for (int c = 0; c < 128; c++)
        marks[c] = !class->ranges && (!is_control || c < ' ' || c == 0x7f);
    for (const char *range = class->ranges; range && *range; range += 2)
        for (int c = range[0]; c <= range[1]; c++)
            marks[c] = true;
}

static void put_range(struct translator *t, uint32_t low, uint32_t high) {
    put_code(t, low);
    if (high == low) return;
    tare_strbuf_putc(t->out, '-');
    put_code(t, high);
}

/* The characters of a class, or all others: with FOLD those that no character of the class is equal to. */
static void put_ascii_class(struct translator *t, const struct ascii_class *class, bool negated) {
    bool marks[128];
    mark_class(marks, class);
    for (int c = 'a'; c <= 'z' && (t->flags & FOLD); c++)
        marks[c] = marks[c - 32] = marks[c] || marks[c - 32];
    for (int c = 0; c < 128; c++) {
        const int low = c;
        if (marks[c] == negated) continue;
        while (c < 127 && marks[c + 1] != negated)
            c++;
        put_range(t, (uint32_t)low, (uint32_t)c);
    }
    if (!negated) return;
    const bool no_s = (t->flags & FOLD) && marks['s'], no_k = (t->flags & FOLD) && marks['k'];
    put_range(t, 0x80, no_s ? LONG_S - 1 : no_k ? KELVIN - 1 : LAST_CODE);
    if (no_s) put_range(t, LONG_S + 1, no_k ? KELVIN - 1 : LAST_CODE);
    if (no_k) put_range(t, KELVIN + 1, LAST_CODE);
}

/* "\d" … "\W" at t->at; false: something else is there. */
static bool put_perl_class(struct translator *t) {
    const int c = peek(t, 0) == '\\' ? peek(t, 1) : -1;
    for (size_t i = 0; i < sizeof perl_classes / sizeof *perl_classes; i++) {
        const int letter = perl_classes[i].name[0];
        if (c != letter && c != letter - 32) continue;
        put_ascii_class(t, &perl_classes[i], c != letter);
        t->at += 2;
        return true;
    }
    return false;
}

/* "[:alpha:]", "[:^alpha:]" at t->at. */
static tare_status put_posix_class(bool *found, struct translator *t) {
    const char *text = t->pattern.data + t->at;
    const char *end = follows(t, "[:") ? memmem(text + 2, t->pattern.size - t->at - 2, ":]", 2) : NULL;
    *found = end != NULL;
    if (!end) return TARE_OK;
    const bool negated = text[2] == '^';
    const char *name = text + 2 + negated;
    const size_t start = t->at;
    t->at += (size_t)(end - text) + 2;
    for (size_t i = 0; i < sizeof posix_classes / sizeof *posix_classes; i++) {
        const size_t size = strlen(posix_classes[i].name);
        if (name > end || (size_t)(end - name) != size || memcmp(name, posix_classes[i].name, size) != 0) continue;
        put_ascii_class(t, &posix_classes[i], negated);
        return TARE_OK;
    }
    return refuse(t, "invalid character class range", start, t->at);
}

/* ---- properties ---- */

static bool is_category(const char *name, size_t size) {
    static const char *const all[] = { "Cc", "Cf", "Co", "Cs", "L",  "Ll", "Lm", "Lo", "Lt", "Lu", "M",  "Mc",
                                       "Me", "Mn", "N",  "Nd", "Nl", "No", "P",  "Pc", "Pd", "Pe", "Pf", "Pi",
                                       "Po", "Ps", "S",  "Sc", "Sk", "Sm", "So", "Z",  "Zl", "Zp", "Zs" };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strlen(all[i]) == size && memcmp(all[i], name, size) == 0) return true;
    return false;
}

static bool is_script(const char *name, size_t size) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
    char property[64];
    int error;
    PCRE2_SIZE at;
    if (size <= 2 || size > 40 || *name < 'A' || *name > 'Z' || strspn(name, letters) < size) return false;
    const int length = snprintf(property, sizeof property, "\\p{sc:%.*s}", (int)size, name);
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)property, (size_t)length, PCRE2_UTF, &error, &at, NULL);
    pcre2_code_free(code);
    return code != NULL;
}

/* "\pL", "\p{Greek}", "\P{^Lu}" at t->at: a category, or the name of a script. */
static tare_status put_property(bool *found, struct translator *t) {
    const size_t start = t->at;
    bool negated = peek(t, 1) == 'P';
    *found = peek(t, 0) == '\\' && (peek(t, 1) == 'p' || negated);
    if (!*found) return TARE_OK;
    const char *name = t->pattern.data + t->at + 2;
    size_t size = 1;
    if (peek(t, 2) == '{') {
        const char *end = memchr(++name, '}', t->pattern.size - t->at - 3);
        if (!end) return refuse(t, "invalid character class range", start, t->pattern.size);
        t->at = (size_t)(end - t->pattern.data) + 1;
        size = (size_t)(end - name);
        if (size && *name == '^') negated = !negated, name++, size--;
    } else {
        t->at += 3;
    }
    if (t->at > t->pattern.size) return refuse(t, "invalid character class range", start, t->pattern.size);
    const bool is_cased = size == 2 && *name == 'L' && memchr("ult", name[1], 3);
    if (is_cased && (t->flags & FOLD))
        return TARE_FAIL(TARE_UNSUPPORTED, "pattern '%.*s': \\p{%.*s} with (?i) (write \\pL)", (int)t->pattern.size,
                         t->pattern.data, (int)size, name);
    if (size == 1 && *name == 'C') { /* without what is not assigned */
        if (negated)
            return TARE_FAIL(TARE_UNSUPPORTED, "pattern '%.*s': \\PC (write the categories L, M, N, P, S and Z)",
                             (int)t->pattern.size, t->pattern.data);
        tare_strbuf_puts(t->out, "\\p{Cc}\\p{Cf}\\p{Co}\\p{Cs}");
    } else if (size == 3 && memcmp(name, "Any", 3) == 0) {
        if (!negated) put_range(t, 0, LAST_CODE);
    } else if (is_category(name, size)) {
        tare_strbuf_printf(t->out, "\\%c{%.*s}", negated ? 'P' : 'p', (int)size, name);
    } else if (is_script(name, size)) {
        tare_strbuf_printf(t->out, "\\%c{sc:%.*s}", negated ? 'P' : 'p', (int)size, name);
    } else {
        return refuse(t, "invalid character class range", start, t->at);
    }
    return TARE_OK;
}

/* ---- classes in brackets ---- */

static tare_status read_class_character(uint32_t *code, struct translator *t) {
    return peek(t, 0) == '\\' ? read_escape(code, t) : read_code(code, t);
}

static tare_status put_class_range(struct translator *t) {
    const size_t start = t->at;
    uint32_t low, high;
    TARE_TRY(read_class_character(&low, t));
    high = low;
    if (peek(t, 0) == '-' && peek(t, 1) >= 0 && peek(t, 1) != ']') {
        t->at++;
        TARE_TRY(read_class_character(&high, t));
    }
    if (high < low) return refuse(t, "invalid character class range", start, t->at);
    put_range(t, low, high);
    return TARE_OK;
}

static tare_status translate_class(struct translator *t) {
    const size_t start = t->at++;
    const bool negated = peek(t, 0) == '^';
    bool found;
    begin_class(t);
    if (negated) tare_strbuf_putc(t->out, '^');
    t->at += negated;
    const size_t first = t->at, before = t->out->size;
    while (t->at == first || peek(t, 0) != ']') {
        if (peek(t, 0) < 0) return refuse(t, "missing closing ]", start, t->pattern.size);
        TARE_TRY(put_posix_class(&found, t));
        if (!found) TARE_TRY(put_property(&found, t));
        if (!found && !put_perl_class(t)) TARE_TRY(put_class_range(t));
    }
    if (t->out->size == before) put_range(t, 0xd800, 0xdfff); /* \P{Any} alone: nothing that UTF-8 has */
    t->at++;
    end_class(t);
    return TARE_OK;
}

/* A class or property that is an atom of its own. */
static tare_status translate_named_class(bool *found, struct translator *t) {
    struct translator before = *t;
    const size_t size = t->out->size;
    begin_class(t);
    const size_t opened = t->out->size;
    TARE_TRY(put_property(found, t));
    if (!*found) *found = put_perl_class(t);
    if (!*found) {
        *t = before;
        t->out->size = size;
        return TARE_OK;
    }
    if (t->out->size == opened) put_range(t, 0xd800, 0xdfff);
    end_class(t);
    return TARE_OK;
}

/* ---- repeats ---- */

static bool read_number(int64_t *out, const struct translator *t, size_t *at) {
    const size_t start = *at;
    *out = 0;
    for (; *at < t->pattern.size && digit_of(t->pattern.data[*at], 10) >= 0; ++*at)
        if (*out < 100000000) *out = *out * 10 + (t->pattern.data[*at] - '0');
    return *at > start && !(*at > start + 1 && t->pattern.data[start] == '0');
}

/* "{2}", "{2,}", "{2,3}" at t->at; false: the brace is a character. */
static bool read_counts(int64_t *low, int64_t *high, struct translator *t) {
    size_t at = t->at + 1;
    if (!read_number(low, t, &at)) return false;
    *high = *low;
    if (at < t->pattern.size && t->pattern.data[at] == ',') {
        at++;
        *high = -1;
        if (at < t->pattern.size && t->pattern.data[at] != '}' && !read_number(high, t, &at)) return false;
    }
    if (at >= t->pattern.size || t->pattern.data[at] != '}') return false;
    t->at = at + 1;
    return true;
}

/* Encloses the last atom in a group. */
static tare_status wrap_atom(struct translator *t) {
    struct tare_strbuf rest = { 0 };
    tare_strbuf_append(&rest, tare_strbuf_text(t->out) + t->atom, t->out->size - t->atom);
    t->out->size = t->atom;
    tare_strbuf_printf(t->out, "(?:%s)", tare_strbuf_text(&rest));
    const tare_status status = tare_strbuf_status(&rest);
    tare_strbuf_free(&rest);
    return status;
}

/* `from`: where the repeat begins; t->at is after it. */
static tare_status put_repeat(struct translator *t, size_t from, int64_t low, int64_t high) {
    const size_t end = t->at;
    bool lazy = t->flags & LAZY;
    if (peek(t, 0) == '?') lazy = !lazy, t->at++;
    if (!t->has_atom) return refuse(t, "no argument for repetition operator", from, t->at);
    if (t->is_repeated) return refuse(t, "bad repetition operator", from, t->at);
    if ((high >= 0 && high < low) || low > MOST_REPEATS || high > MOST_REPEATS)
        return refuse(t, "invalid repetition size", from, end);
    if (low >= 2 || high >= 2) t->repeats *= high > 0 ? high : low;
    if (t->repeats > MOST_REPEATS) return refuse(t, "invalid repetition size", from, end);
    if (t->was_repeated) TARE_TRY(wrap_atom(t));
    tare_strbuf_printf(t->out, "{%lld,", (long long)low);
    if (high >= 0) tare_strbuf_printf(t->out, "%lld", (long long)high);
    tare_strbuf_puts(t->out, lazy ? "}?" : "}");
    t->was_repeated = true;
    return TARE_OK;
}

/* *found: a repeat is at t->at. */
static tare_status translate_repeat(bool *found, struct translator *t) {
    const size_t from = t->at;
    const int c = peek(t, 0);
    int64_t low = c == '+', high = c == '?' ? 1 : -1;
    *found = c == '*' || c == '+' || c == '?';
    if (*found)
        t->at++;
    else if (c == '{')
        *found = read_counts(&low, &high, t);
    return *found ? put_repeat(t, from, low, high) : TARE_OK;
}

/* ---- groups ---- */

static tare_status open_group(struct translator *t, const char *text, unsigned flags) {
    if (t->depth == MOST_NESTED) return refuse(t, "expression nests too deeply", 0, t->pattern.size);
    t->groups[t->depth++] = (struct group){ flags, t->out->size, 1 };
    tare_strbuf_puts(t->out, text);
    t->has_atom = false;
    t->repeats = 1;
    return TARE_OK;
}

/* After "(?P<". Two groups may have one name. */
static tare_status open_named(struct translator *t, size_t start) {
    const size_t first = t->at;
    size_t size = 0;
    while (peek(t, size) >= 0 && peek(t, size) != '>')
        size++;
    const char *name = t->pattern.data + first;
    static const char word[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz0123456789";
    t->at += size + 1;
    if (t->at > t->pattern.size || !size) return refuse(t, "invalid named capture group", start, t->at);
    for (size_t i = 0; i < size; i++)
        if (!memchr(word, name[i], sizeof word - 1)) return refuse(t, "invalid named capture group", start, t->at);
    return open_group(t, "(", t->flags);
}

/* After "(?": flags, then ')' or ':'. */
static tare_status translate_flags(struct translator *t, size_t start) {
    static const char letters[] = "imsU";
    unsigned flags = t->flags;
    bool negated = false, any = false;
    for (;; t->at++) {
        const int c = peek(t, 0);
        const char *letter = c > 0 ? strchr(letters, c) : NULL;
        if (letter) {
            const unsigned bit = 1u << (letter - letters);
            flags = negated ? flags & ~bit : flags | bit;
            any = true;
        } else if (c == '-' && !negated) {
            negated = true;
            any = false;
        } else if ((c == ':' || c == ')') && (any || !negated)) {
            t->at++;
            if (c == ':') TARE_TRY(open_group(t, "(?:", t->flags));
            t->flags = flags;
            return TARE_OK;
        } else if (c < 0) {
            return refuse(t, "missing )", start, t->pattern.size);
        } else {
            return refuse(t, "invalid perl operator", start, t->at + 1);
        }
    }
}

static tare_status translate_open(struct translator *t) {
    const size_t start = t->at;
    if (!follows(t, "(?")) {
        t->at++;
        return open_group(t, "(", t->flags);
    }
    if (follows(t, "(?P<")) {
        t->at += 4;
        return open_named(t, start);
    }
    t->at += 2;
    return translate_flags(t, start);
}

static tare_status translate_close(struct translator *t) {
    if (!t->depth) return refuse(t, "unexpected )", 0, t->pattern.size);
    const struct group group = t->groups[--t->depth];
    tare_strbuf_putc(t->out, ')');
    t->at++;
    const int64_t inner = group.repeats > t->repeats && t->has_atom ? group.repeats
                          : t->has_atom                             ? t->repeats
                                                                    : group.repeats;
    begin_atom(t);
    t->atom = group.start;
    t->repeats = inner;
    t->flags = group.flags;
    return TARE_OK;
}

/* ---- the pattern ---- */

/* Remembers the repeats of an atom that another one follows. */
static void keep_repeats(struct translator *t, int64_t repeats) {
    if (t->depth && t->groups[t->depth - 1].repeats < repeats) t->groups[t->depth - 1].repeats = repeats;
}

static void translate_quoted(struct translator *t) {
    uint32_t code;
    t->at += 2;
    while (t->at < t->pattern.size && !follows(t, "\\E")) {
        if (read_code(&code, t) != TARE_OK) return;
        put_literal(t, code);
    }
    t->at += follows(t, "\\E") ? 2 : 0;
}

/* *found: an escape that is not a character is at t->at. */
static tare_status translate_special(bool *found, struct translator *t) {
    static const struct {
        const char *text, *written;
    } assertions[] = { { "\\A", "\\A" }, { "\\z", "\\z" }, { "\\b", "\\b" }, { "\\B", "\\B" } };
    *found = true;
    for (size_t i = 0; i < sizeof assertions / sizeof *assertions; i++)
        if (follows(t, assertions[i].text)) {
            put_assertion(t, assertions[i].written);
            t->at += 2;
            return TARE_OK;
        }
    if (follows(t, "\\C"))
        return TARE_FAIL(TARE_UNSUPPORTED, "pattern '%.*s': \\C, a single byte (write a dot with (?s))",
                         (int)t->pattern.size, t->pattern.data);
    if (!follows(t, "\\Q")) return translate_named_class(found, t);
    translate_quoted(t);
    return TARE_OK;
}

static tare_status translate_character(struct translator *t) {
    uint32_t code;
    switch (peek(t, 0)) {
    case '.':
        begin_class(t);
        if (!(t->flags & DOT_NEWLINE)) tare_strbuf_putc(t->out, '^');
        put_range(t, t->flags & DOT_NEWLINE ? 0 : '\n', t->flags & DOT_NEWLINE ? LAST_CODE : '\n');
        end_class(t);
        break;
    case '^':
        put_assertion(t, t->flags & LINES ? "\\A|(?<=\\x{a})" : "\\A");
        break;
    case '$':
        put_assertion(t, t->flags & LINES ? "(?=\\x{a})|\\z" : "\\z");
        break;
    case '|':
        tare_strbuf_putc(t->out, '|');
        t->has_atom = false;
        break;
    case '\\':
        TARE_TRY(read_escape(&code, t));
        put_literal(t, code);
        return TARE_OK;
    default:
        TARE_TRY(read_code(&code, t));
        put_literal(t, code);
        return TARE_OK;
    }
    t->at++;
    return TARE_OK;
}

static tare_status translate_next(struct translator *t) {
    const int64_t before = t->repeats;
    bool found;
    TARE_TRY(translate_repeat(&found, t));
    t->is_repeated = found;
    if (found) return TARE_OK;
    keep_repeats(t, before);
    switch (peek(t, 0)) {
    case '(':
        return translate_open(t);
    case ')':
        return translate_close(t);
    case '[':
        return translate_class(t);
    default:
        TARE_TRY(peek(t, 0) == '\\' ? translate_special(&found, t) : TARE_OK);
        return found ? TARE_OK : translate_character(t);
    }
}

tare_status tare_re2_translate(struct tare_strbuf *out, struct tare_str pattern, bool with_bytes) {
    struct translator *t = tare_calloc(1, sizeof *t);
    tare_status status = t ? TARE_OK : TARE_NO_MEMORY;
    if (t) *t = (struct translator){ .out = out, .pattern = pattern, .repeats = 1, .with_bytes = with_bytes };
    while (status == TARE_OK && t->at < pattern.size)
        status = translate_next(t);
    if (status == TARE_OK && t->depth) status = refuse(t, "missing )", 0, pattern.size);
    tare_free(t);
    return status == TARE_OK ? tare_strbuf_status(out) : status;
}
