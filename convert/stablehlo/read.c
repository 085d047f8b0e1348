/* Reading a module: header, sections, strings, dialects and op names, and where attributes and types are stored.
 * Strings come late in the file, so all sections are located first. Source: mlir/docs/BytecodeFormat.md. */
#include "convert/stablehlo/codes.h"
#include "convert/stablehlo/reader.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

enum { N_SECTIONS = 9 };

struct sections {
    struct tare_mlir_input content[N_SECTIONS];
    bool present[N_SECTIONS];
};

bool tare_shlo_is_bytecode(const uint8_t *data, size_t size) {
    return size >= sizeof tare_mlir_magic && memcmp(data, tare_mlir_magic, sizeof tare_mlir_magic) == 0;
}

/* "StableHLO_v1.8.0"; other producers wrote the oldest version. */
static tare_status read_version(struct tare_shlo_module *module) {
    unsigned major, minor, patch;
    int used = 0;
    module->version = TARE_VHLO_OLDEST;
    if (sscanf(module->producer, "StableHLO_v%3u.%3u.%3u%n", &major, &minor, &patch, &used) != 3 ||
        module->producer[used])
        return TARE_OK;
    module->version = TARE_VHLO_VERSION((int)major, (int)minor, (int)patch);
    if (module->version > TARE_VHLO_NEWEST)
        return TARE_FAIL(TARE_UNSUPPORTED,
                         "VHLO version %u.%u.%u is too new (expected 0.9.0 to 1.20.0); export for an older version",
                         major, minor, patch);
    return TARE_OK;
}

static tare_status read_header(struct tare_shlo_module *module, struct tare_mlir_input *in) {
    uint64_t version;
    const uint8_t *end;
    if (!tare_shlo_is_bytecode(in->data, in->end))
        return TARE_FAIL(TARE_CORRUPT, "not MLIR bytecode (bad magic number)");
    in->at = sizeof tare_mlir_magic;
    TARE_TRY(tare_mlir_varint(&version, in));
    if (version > TARE_MLIR_NEWEST_BYTECODE)
        return TARE_FAIL(TARE_UNSUPPORTED, "MLIR bytecode version %llu (expected 0 to %d)", (unsigned long long)version,
                         TARE_MLIR_NEWEST_BYTECODE);
    module->bytecode_version = (int)version;
    end = memchr(in->data + in->at, 0, tare_mlir_left(in));
    if (!end) return tare_mlir_corrupt(in, "the producer's name has no end");
    module->producer = (const char *)in->data + in->at;
    in->at = (size_t)(end - in->data) + 1;
    return read_version(module);
}

static tare_status find_sections(struct sections *sections, struct tare_mlir_input *in, int version) {
    while (tare_mlir_left(in)) {
        struct tare_mlir_input content;
        int id;
        TARE_TRY(tare_mlir_section(&id, &content, in));
        if (id >= N_SECTIONS || id == 7)
            return TARE_FAIL(TARE_UNSUPPORTED, "unknown section %d at byte %zu", id, in->at);
        if (sections->present[id]) return TARE_FAIL(TARE_CORRUPT, "duplicate section %d at byte %zu", id, in->at);
        sections->present[id] = true;
        sections->content[id] = content;
    }
    for (int id = 0; id < N_SECTIONS; id++) {
        const bool optional = id == TARE_MLIR_SECTION_RESOURCES || id == TARE_MLIR_SECTION_RESOURCE_OFFSETS ||
                              id == 7 || (id == TARE_MLIR_SECTION_PROPERTIES && version < 5);
        if (!sections->present[id] && !optional) return TARE_FAIL(TARE_CORRUPT, "section %d is missing", id);
    }
    return TARE_OK;
}

/* Sizes in reverse order, then the bytes; each string ends with a NUL that its size counts. */
static tare_status read_strings(struct tare_shlo_reader *reader, struct tare_mlir_input in) {
    TARE_TRY(tare_mlir_count(&reader->n_strings, &in, 2));
    reader->strings = TARE_NEW_ARRAY(reader->arena, struct tare_shlo_text, reader->n_strings + 1);
    if (!reader->strings) return TARE_NO_MEMORY;
    for (size_t i = reader->n_strings; i-- > 0;) {
        uint64_t size;
        TARE_TRY(tare_mlir_varint(&size, &in));
        if (!size || size > tare_mlir_left(&in)) return tare_mlir_corrupt(&in, "a string's size is out of range");
        reader->strings[i].size = (size_t)size - 1;
    }
    for (size_t i = 0; i < reader->n_strings; i++) {
        const uint8_t *data;
        TARE_TRY(tare_mlir_bytes(&data, &in, (uint64_t)reader->strings[i].size + 1));
        if (data[reader->strings[i].size]) return tare_mlir_corrupt(&in, "a string has no end");
        reader->strings[i].data = (const char *)data;
    }
    return tare_mlir_at_end(&in, "strings");
}

static tare_status read_dialects(struct tare_shlo_reader *reader, struct tare_mlir_input *in) {
    TARE_TRY(tare_mlir_count(&reader->n_dialects, in, 1));
    reader->dialects = TARE_NEW_ARRAY(reader->arena, const char *, reader->n_dialects + 1);
    if (!reader->dialects) return TARE_NO_MEMORY;
    for (size_t i = 0; i < reader->n_dialects; i++) {
        struct tare_mlir_input version;
        uint64_t name;
        bool has_version = false;
        int id;
        if (reader->module->bytecode_version >= 1)
            TARE_TRY(tare_mlir_flagged(&name, &has_version, in));
        else
            TARE_TRY(tare_mlir_varint(&name, in));
        if (name >= reader->n_strings) return tare_mlir_corrupt(in, "a string index out of range");
        reader->dialects[i] = reader->strings[name].data;
        if (has_version) TARE_TRY(tare_mlir_section(&id, &version, in));
    }
    return TARE_OK;
}

static tare_status add_op_name(struct tare_shlo_reader *reader, size_t dialect, const char *name) {
    const char *full = tare_arena_printf(reader->arena, "%s.%s", reader->dialects[dialect], name);
    if (!full) return TARE_NO_MEMORY;
    reader->ops[reader->n_ops].name = full;
    if (strcmp(reader->dialects[dialect], "vhlo") == 0)
        reader->ops[reader->n_ops].def = tare_vhlo_find_op(name);
    else
        reader->ops[reader->n_ops].foreign = tare_shlo_find_foreign_op(full);
    reader->n_ops++;
    return TARE_OK;
}

/* Groups of a dialect and its op names; an op's index is its number over all groups. */
static tare_status read_op_names(struct tare_shlo_reader *reader, struct tare_mlir_input *in) {
    const int version = reader->module->bytecode_version;
    size_t declared;
    if (version >= 4) TARE_TRY(tare_mlir_count(&declared, in, 1));
    reader->ops = tare_arena_calloc(reader->arena, tare_mlir_left(in) + 1, sizeof *reader->ops);
    if (!reader->ops) return TARE_NO_MEMORY;
    while (tare_mlir_left(in)) {
        size_t dialect, count;
        TARE_TRY(tare_mlir_index(&dialect, in, reader->n_dialects, "dialect"));
        TARE_TRY(tare_mlir_count(&count, in, 1));
        for (size_t i = 0; i < count; i++) {
            uint64_t name;
            TARE_TRY(tare_mlir_varint(&name, in));
            if (version >= 5) name >>= 1; /* bit 0: the op was registered */
            if (name >= reader->n_strings) return tare_mlir_corrupt(in, "a string index out of range");
            TARE_TRY(add_op_name(reader, dialect, reader->strings[name].data));
        }
    }
    return TARE_OK;
}

/* Sizes of the entries of section 2, attributes first, then types, without gaps. */
static tare_status read_offsets(struct tare_shlo_reader *reader, struct tare_mlir_input in,
                                const struct tare_mlir_input *data) {
    size_t at = data->at, total, n = 0;
    TARE_TRY(tare_mlir_count(&reader->n_attrs, &in, 1));
    TARE_TRY(tare_mlir_count(&reader->n_types, &in, 1));
    total = reader->n_attrs + reader->n_types;
    if (total > tare_mlir_left(&in)) return tare_mlir_corrupt(&in, "a count exceeds the section");
    reader->attr_entries = TARE_NEW_ARRAY(reader->arena, struct tare_mlir_entry, total + 1);
    reader->attrs = TARE_NEW_ARRAY(reader->arena, const struct tare_shlo_attr *, reader->n_attrs + 1);
    reader->types = TARE_NEW_ARRAY(reader->arena, const struct tare_shlo_type *, reader->n_types + 1);
    if (!reader->attr_entries || !reader->attrs || !reader->types) return TARE_NO_MEMORY;
    reader->type_entries = reader->attr_entries + reader->n_attrs;
    while (n < total) {
        size_t dialect, count;
        TARE_TRY(tare_mlir_index(&dialect, &in, reader->n_dialects, "dialect"));
        TARE_TRY(tare_mlir_count(&count, &in, 1));
        if (count > total - n) return tare_mlir_corrupt(&in, "more entries than declared");
        for (size_t i = 0; i < count; i++) {
            uint64_t size;
            bool custom;
            TARE_TRY(tare_mlir_flagged(&size, &custom, &in));
            if (size > data->end - at) return tare_mlir_corrupt(&in, "an entry exceeds its section");
            reader->attr_entries[n++] =
                (struct tare_mlir_entry){ at, at + (size_t)size, (uint32_t)dialect, custom, false };
            at += (size_t)size;
        }
    }
    if (at != data->end) return tare_mlir_corrupt(&in, "entries do not fill their section");
    return tare_mlir_at_end(&in, "offsets");
}

static tare_status read_property_table(struct tare_shlo_reader *reader, struct tare_mlir_input in) {
    TARE_TRY(tare_mlir_count(&reader->n_properties, &in, 1));
    reader->properties = TARE_NEW_ARRAY(reader->arena, struct tare_mlir_input, reader->n_properties + 1);
    if (!reader->properties) return TARE_NO_MEMORY;
    for (size_t i = 0; i < reader->n_properties; i++) {
        uint64_t size;
        const uint8_t *start;
        TARE_TRY(tare_mlir_varint(&size, &in));
        reader->properties[i] = in;
        TARE_TRY(tare_mlir_bytes(&start, &in, size));
        reader->properties[i].end = in.at;
    }
    return tare_mlir_at_end(&in, "properties");
}

/* VHLO does not store large constants as resources: the section must have 0 groups. */
static tare_status check_resources(const struct sections *sections) {
    struct tare_mlir_input in = sections->content[TARE_MLIR_SECTION_RESOURCE_OFFSETS];
    uint64_t groups = 0;
    if (sections->present[TARE_MLIR_SECTION_RESOURCE_OFFSETS]) TARE_TRY(tare_mlir_varint(&groups, &in));
    return groups ? TARE_FAIL(TARE_UNSUPPORTED, "the module has resources, which portable artifacts do not use")
                  : TARE_OK;
}

/* Versions of StableHLO differ, those of VHLO are stable: only the latter is in files for other programs. */
static tare_status check_dialects(const struct tare_shlo_reader *reader) {
    bool stablehlo = false, vhlo = false;
    for (size_t i = 0; i < reader->n_dialects; i++) {
        stablehlo |= strcmp(reader->dialects[i], "stablehlo") == 0;
        vhlo |= strcmp(reader->dialects[i], "vhlo") == 0;
    }
    if (vhlo || !stablehlo) return TARE_OK;
    return TARE_FAIL(
        TARE_UNSUPPORTED,
        "this is bytecode of the dialect stablehlo (write it as a portable artifact: " TARE_SHLO_WRITE_ARTIFACT ")");
}

static tare_status read_all(struct tare_shlo_reader *reader) {
    struct tare_shlo_module *module = reader->module;
    struct tare_mlir_input in = { module->data, 0, module->size };
    struct sections sections = { 0 };
    TARE_TRY(read_header(module, &in));
    TARE_TRY(find_sections(&sections, &in, module->bytecode_version));
    TARE_TRY(check_resources(&sections));
    TARE_TRY(read_strings(reader, sections.content[TARE_MLIR_SECTION_STRINGS]));
    TARE_TRY(read_dialects(reader, &sections.content[TARE_MLIR_SECTION_DIALECTS]));
    TARE_TRY(check_dialects(reader));
    TARE_TRY(read_op_names(reader, &sections.content[TARE_MLIR_SECTION_DIALECTS]));
    TARE_TRY(
        read_offsets(reader, sections.content[TARE_MLIR_SECTION_OFFSETS], &sections.content[TARE_MLIR_SECTION_DATA]));
    if (sections.present[TARE_MLIR_SECTION_PROPERTIES])
        TARE_TRY(read_property_table(reader, sections.content[TARE_MLIR_SECTION_PROPERTIES]));
    return tare_shlo_read_ops(reader, sections.content[TARE_MLIR_SECTION_IR]);
}

tare_status tare_shlo_read(struct tare_shlo_module **out, const uint8_t *data, size_t size) {
    struct tare_shlo_module *module = tare_calloc(1, sizeof *module);
    struct tare_shlo_reader reader = { .module = module };
    *out = NULL;
    if (!module) return TARE_NO_MEMORY;
    module->data = data;
    module->size = size;
    module->producer = "";
    reader.arena = &module->arena;
    tare_status status = read_all(&reader);
    if (status != TARE_OK) {
        tare_shlo_free(module);
        return status;
    }
    *out = module;
    return TARE_OK;
}

void tare_shlo_free(struct tare_shlo_module *module) {
    if (!module) return;
    tare_arena_free(&module->arena);
    tare_free(module);
}

const struct tare_shlo_op *tare_shlo_function(const struct tare_shlo_module *module, const char *name) {
    const struct tare_shlo_block *body = &module->root->regions[0];
    for (size_t i = 0; i < body->n_ops; i++) {
        const struct tare_shlo_attr *own =
            tare_shlo_op_is(&body->ops[i], "func") ? tare_shlo_op_attr(&body->ops[i], "sym_name") : NULL;
        if (own && own->kind == TARE_SHLO_ATTR_STRING && strcmp(own->text.data, name) == 0) return &body->ops[i];
    }
    return NULL;
}
