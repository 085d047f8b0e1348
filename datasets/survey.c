/* Statistics of data sets, collected in one pass. */
#include "datasets/survey.h"
#include "base/control.h"
#include "base/file.h"
#include "base/map.h"
#include "base/visible.h"
#include "datasets/data_file.h"
#include "base/image/image.h"

#include <math.h>
#include <string.h>

struct surveyor {
    struct tare_survey *out;
    const struct tare_survey_options *options;
    struct tare_map seen;   /* hash of a sample -> struct seen */
    struct tare_map places; /* name of a key -> its place in the list, from 1 */
    size_t key_capacity;
    int32_t file;
};

struct seen {
    struct tare_content_hash hash;
    struct tare_survey_place place;
};

/* ---- values ---- */

static void count_number(struct tare_survey_key *key, double x, const struct tare_survey_place *place) {
    if (isfinite(x)) {
        key->zeros += x == 0;
        if (x < key->least) key->least = x;
        if (x > key->most) key->most = x;
        return;
    }
    if (!key->nan && !key->infinite) key->first_nan = *place;
    if (isnan(x))
        key->nan++;
    else
        key->infinite++;
}

static void count_numbers(struct tare_survey_key *key, const struct tare_tensor *value,
                          const struct tare_survey_place *place) {
    switch (tare_dtype_get(value->dtype)->class) {
    case TARE_CLASS_FLOAT:
    case TARE_CLASS_SIGNED:
    case TARE_CLASS_UNSIGNED:
    case TARE_CLASS_QUANTIZED:
    case TARE_CLASS_BOOL:
        for (int64_t i = 0; i < value->elements; i++)
            count_number(key, tare_tensor_get_f64(value, i), place);
        break;
    default:
        break;
    }
}

/* Lists the string if it is a text that is not listed yet. */
static tare_status list_text(struct tare_survey_key *key, struct tare_arena *arena, const struct tare_str *string) {
    char text[TARE_SURVEY_TEXT_SIZE];
    if (string->size < sizeof text) {
        if (string->size) memcpy(text, string->data, string->size);
        text[string->size] = '\0';
        for (size_t i = 0; i < key->n_texts; i++)
            if (strcmp(key->texts[i], text) == 0) return TARE_OK;
        if (key->n_texts < TARE_SURVEY_TEXTS && strlen(text) == string->size && tare_is_visible(text)) {
            key->texts[key->n_texts] = tare_arena_strdup(arena, text);
            return key->texts[key->n_texts++] ? TARE_OK : TARE_NO_MEMORY;
        }
    }
    key->has_more_texts = true;
    return TARE_OK;
}

static tare_status count_strings(struct tare_survey_key *key, struct tare_arena *arena,
                                 const struct tare_tensor *value) {
    for (int64_t i = 0; i < value->elements; i++) {
        const struct tare_str *text = &TARE_CONST_DATA(struct tare_str, value)[i];
        if (text->size < key->shortest) key->shortest = text->size;
        if (text->size > key->longest) key->longest = text->size;
        key->images += tare_image_format_of(*text) != TARE_IMAGE_ANY;
        key->rotated += tare_image_orientation(*text) != 1;
        if (!key->has_more_texts) TARE_TRY(list_text(key, arena, text));
    }
    return TARE_OK;
}

/* An empty list of a tf.Example, or a feature list without steps: the type of its values is not known, nor, of a list,
 * the shape of a step. */
static bool is_empty_list(const struct tare_tensor *value, bool from_example) {
    return from_example && value->shape.rank == 1 && !value->elements;
}

/* Reduces the shape to the dims that both have in common. */
static void widen(struct tare_shape *shape, const struct tare_shape *other) {
    if (shape->rank != other->rank) {
        *shape = tare_shape_unknown();
        return;
    }
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] != other->dims[i]) shape->dims[i] = TARE_UNKNOWN_DIM;
}

/* Inserting a key takes time proportional to their number: from so many on, new keys are appended. */
enum { MOST_ORDERED = 1024 };

/* The place, from 1, of the first key of a sample from `first` on that is in the survey; 0: there is none. */
static size_t next_place(const struct surveyor *s, const struct tare_sample *sample, size_t first) {
    size_t place = 0;
    for (size_t i = first; i < sample->count && !place; i++)
        place = (size_t)(uintptr_t)tare_map_get(&s->places, sample->keys[i]);
    return place;
}

/* Moves the last key to a place, and those from there on after it. */
static bool move_last_to(struct surveyor *s, size_t place) {
    struct tare_survey_key *keys = s->out->keys;
    const size_t count = s->out->n_keys;
    const struct tare_survey_key moved = keys[count - 1];
    memmove(&keys[place], &keys[place - 1], (count - place) * sizeof *keys);
    keys[place - 1] = moved;
    for (size_t i = place; i <= count; i++)
        if (!tare_map_set(&s->places, keys[i - 1].name, (void *)(uintptr_t)i)) return false;
    return true;
}

/* The entry of a sample's key. A key that earlier samples did not have is inserted before the next one that they had,
 * so that keys are in the order of the samples (the columns of a table), whatever the first sample lacks. */
static struct tare_survey_key *key_of(struct surveyor *s, const struct tare_sample *sample, size_t index) {
    struct tare_survey *out = s->out;
    const char *name = sample->keys[index];
    size_t place = (size_t)(uintptr_t)tare_map_get(&s->places, name);
    if (place) return &out->keys[place - 1];
    const bool is_ordered = out->records > 0 && out->n_keys < MOST_ORDERED;
    const size_t before = is_ordered ? next_place(s, sample, index + 1) : 0;
    if (out->n_keys == s->key_capacity) {
        size_t extra = s->key_capacity ? s->key_capacity : 8;
        void *keys = tare_arena_extend(&out->arena, out->keys, out->n_keys, extra, sizeof *out->keys);
        if (!keys) return NULL;
        out->keys = keys;
        s->key_capacity += extra;
    }
    out->keys[out->n_keys] = (struct tare_survey_key){
        .name = tare_arena_strdup(&out->arena, name), .least = INFINITY, .most = -INFINITY, .shortest = SIZE_MAX
    };
    if (!out->keys[out->n_keys].name) return NULL;
    place = ++out->n_keys;
    if (!tare_map_set(&s->places, out->keys[place - 1].name, (void *)(uintptr_t)place)) return NULL;
    if (!before) return &out->keys[place - 1];
    return move_last_to(s, before) ? &out->keys[before - 1] : NULL;
}

/* The shape of an empty list is that of the other records with no rows. */
static void add_shape(struct tare_survey_key *key, const struct tare_tensor *value, bool is_empty) {
    struct tare_shape shape = value->shape;
    if (!key->records) {
        key->shape = shape;
        return;
    }
    if (is_empty && key->shape.rank > 0) {
        shape = key->shape;
        shape.dims[0] = 0;
    } else if (!key->has_type && key->shape.rank == 1) {
        key->shape = shape;
        if (shape.rank > 0) key->shape.dims[0] = 0;
    }
    widen(&key->shape, &shape);
}

static void add_type(struct tare_survey_key *key, const struct tare_tensor *value, bool is_empty) {
    add_shape(key, value, is_empty);
    if (!key->has_type) key->dtype = value->dtype;
    if (is_empty) return;
    key->mixed = key->mixed || key->dtype != value->dtype;
    key->has_type = true;
}

static tare_status add_value(struct surveyor *s, const struct tare_sample *sample, size_t index, bool from_example,
                             const struct tare_survey_place *place) {
    const struct tare_tensor *value = &sample->values[index];
    struct tare_survey_key *key = key_of(s, sample, index);
    struct tare_content_hash hash = tare_content_hash_tensor(value);
    if (!key) return TARE_NO_MEMORY;
    add_type(key, value, is_empty_list(value, from_example));
    if (key->records)
        key->constant = (key->records == 1 || key->constant) && memcmp(&key->first, &hash, sizeof hash) == 0;
    else
        key->first = hash;
    key->records++;
    key->elements += value->elements;
    if (value->elements > key->largest) key->largest = value->elements;
    if (value->dtype == TARE_DT_STRING) return count_strings(key, &s->out->arena, value);
    count_numbers(key, value, place);
    return TARE_OK;
}

/* ---- records ---- */

static tare_status find_duplicate(struct surveyor *s, const struct tare_sample *sample,
                                  const struct tare_survey_place *place) {
    struct tare_content_hash hash = tare_content_hash_sample(sample);
    struct tare_survey *out = s->out;
    struct seen *seen = tare_map_get_n(&s->seen, (const char *)&hash, sizeof hash);
    if (seen) {
        if (out->duplicates < TARE_SURVEY_LISTED)
            out->listed[out->duplicates] = (struct tare_survey_duplicate){ *place, seen->place };
        out->duplicates++;
        return TARE_OK;
    }
    seen = TARE_NEW(&out->arena, struct seen);
    if (!seen) return TARE_NO_MEMORY;
    *seen = (struct seen){ hash, *place };
    return tare_map_set_n(&s->seen, (const char *)&seen->hash, sizeof seen->hash, seen) ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status add_sample(struct surveyor *s, const struct tare_sample *sample, const char *kind,
                              const struct tare_survey_place *place) {
    struct tare_survey *out = s->out;
    const bool from_example = strncmp(kind, "tf.", 3) == 0;
    TARE_TRY(find_duplicate(s, sample, place));
    for (size_t i = 0; i < sample->count; i++)
        TARE_TRY(add_value(s, sample, i, from_example, place));
    out->kind = !out->kind || strcmp(out->kind, kind) == 0 ? kind : "mixed";
    out->records++;
    out->files[s->file].records++;
    if (s->options->progress) s->options->progress(s->options->progress_arg, 1);
    return TARE_OK;
}

/* Notes a bad record, described by the error text. */
static tare_status add_bad(struct surveyor *s, tare_status status) {
    struct tare_survey *out = s->out;
    if (status == TARE_NO_MEMORY) return status;
    if (out->bad < TARE_SURVEY_LISTED) {
        out->bad_texts[out->bad] = tare_arena_strdup(&out->arena, tare_error_text());
        if (!out->bad_texts[out->bad]) return TARE_NO_MEMORY;
    }
    out->bad++;
    out->files[s->file].bad++;
    tare_error_clear();
    return TARE_OK;
}

static tare_status add_record(struct surveyor *s, const struct tare_data_file *file,
                              const struct tare_data_record *record) {
    struct tare_survey_place place = { s->file, record->number };
    const char *kind = "samples";
    struct tare_sample sample;
    tare_status status = s->options->spec ? tare_data_file_decode(&sample, file, record, s->options->spec)
                                          : tare_data_file_look(&sample, &kind, file, record);
    if (status == TARE_OK) {
        status = add_sample(s, &sample, kind, &place);
    } else {
        tare_error_prefix(status, "%s: record %lld at %lld", s->out->files[s->file].path, (long long)record->number,
                          (long long)record->offset);
        status = add_bad(s, status);
    }
    tare_sample_reset(&sample);
    return status;
}

static tare_status read_file(struct surveyor *s, struct tare_data_file *file) {
    const struct tare_survey_options *options = s->options;
    for (;;) {
        struct tare_data_record record;
        bool end;
        tare_status status;
        TARE_TRY(tare_flag_check(options->interrupted));
        if (options->limit > 0 && s->out->records + s->out->bad >= options->limit) return TARE_OK;
        status = tare_data_file_next(&record, &end, file);
        if (status == TARE_CORRUPT)
            TARE_TRY(add_bad(s, status));
        else if (status != TARE_OK || end)
            return status;
        else
            TARE_TRY(add_record(s, file, &record));
    }
}

/* *file: the one before, which is replaced. */
static tare_status survey_file(struct surveyor *s, struct tare_data_file **file, const struct tare_file_list *files) {
    struct tare_survey_file *entry = &s->out->files[s->file];
    const char *path = files->names[s->file];
    entry->path = tare_arena_strdup(&s->out->arena, path);
    entry->bytes = strcmp(path, "-") == 0 ? -1 : tare_file_size(path);
    if (!entry->path) return TARE_NO_MEMORY;
    TARE_TRY(tare_data_file_open_of(file, files, (size_t)s->file, s->options->labels, *file));
    entry->format = tare_arena_strdup(&s->out->arena, tare_data_file_format(*file));
    return entry->format ? read_file(s, *file) : TARE_NO_MEMORY;
}

tare_status tare_survey_files(struct tare_survey *out, const char *const *paths, size_t n_paths,
                              const struct tare_survey_options *options) {
    struct surveyor s = { .out = out, .options = options };
    struct tare_file_list files = { 0 };
    struct tare_data_file *file = NULL;
    tare_status status = TARE_OK;
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < n_paths && status == TARE_OK; i++)
        status = tare_data_files_add(&files, paths[i]);
    if (status == TARE_OK) status = tare_data_files_check(&files);
    out->files = TARE_NEW_ARRAY(&out->arena, struct tare_survey_file, files.count + 1);
    if (!out->files && status == TARE_OK) status = TARE_NO_MEMORY;
    for (size_t i = 0; i < files.count && status == TARE_OK; i++) {
        s.file = (int32_t)i;
        out->n_files = i + 1;
        status = survey_file(&s, &file, &files);
    }
    tare_data_file_close(file);
    tare_map_free(&s.seen);
    tare_map_free(&s.places);
    tare_file_list_free(&files);
    return status;
}

void tare_survey_free(struct tare_survey *survey) {
    tare_arena_free(&survey->arena);
    memset(survey, 0, sizeof *survey);
}
