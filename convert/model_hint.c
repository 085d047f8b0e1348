/* Recognizes what was given in place of a SavedModel folder and names the remedy: URLs of cloud storage, a file inside
 * the folder, the folder above or below it, and models of other frameworks. Files are identified by their first bytes
 * (and the last ones of ZIP archives, which contain the list of members), not by their names. */
#include "convert/model_hint.h"
#include "base/alloc.h"
#include "base/file.h"
#include "convert/stablehlo/module.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { HEAD = 4096, TAIL = 65536 };

struct sample {
    unsigned char head[HEAD], tail[TAIL];
    size_t n_head, n_tail;
};

static void read_sample(struct sample *out, const char *path) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const int64_t size = tare_file_size(path);
    ssize_t got;
    out->n_head = out->n_tail = 0;
    if (fd < 0) return;
    got = pread(fd, out->head, HEAD, 0);
    if (got > 0) out->n_head = (size_t)got;
    got = pread(fd, out->tail, TAIL, size > TAIL ? size - TAIL : 0);
    if (got > 0) out->n_tail = (size_t)got;
    close(fd);
}

static bool begins(const struct sample *s, size_t at, const char *bytes, size_t size) {
    return s->n_head >= at + size && memcmp(s->head + at, bytes, size) == 0;
}

static bool has_member(const struct sample *s, const char *name) {
    return memmem(s->head, s->n_head, name, strlen(name)) || memmem(s->tail, s->n_tail, name, strlen(name));
}

/* Reads a varint of at most 5 bytes; false at the end of the sample. */
static bool varint(size_t *value, size_t *at, const struct sample *s) {
    *value = 0;
    for (unsigned shift = 0; shift < 35 && *at < s->n_head; shift += 7) {
        const unsigned char byte = s->head[(*at)++];
        *value |= (size_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return true;
    }
    return false;
}

/* A field with tag `tag` and a printable text; moves *at past it. */
static bool text_field(size_t *at, unsigned char tag, const struct sample *s) {
    size_t size;
    if (*at >= s->n_head || s->head[*at] != tag) return false;
    (*at)++;
    if (!varint(&size, at, s) || size == 0 || size > s->n_head - *at) return false;
    for (size_t i = 0; i < size; i++)
        if (s->head[*at + i] < ' ' || s->head[*at + i] > '~') return false;
    *at += size;
    return true;
}

/* GraphDef: its first field is a NodeDef (1), which begins with name (1) and op (2). */
static bool is_graph_def(const struct sample *s) {
    size_t at = 1, size;
    return begins(s, 0, "\x0a", 1) && varint(&size, &at, s) && text_field(&at, 0x0a, s) && text_field(&at, 0x12, s);
}

/* ModelProto of ONNX: ir_version (1, varint), then producer_name (2) with a printable text. A SavedModel also begins
 * with a varint of field 1, but its field 2 is a message. */
static bool is_onnx(const struct sample *s) {
    size_t at = 1, version;
    return begins(s, 0, "\x08", 1) && varint(&version, &at, s) && version >= 3 && text_field(&at, 0x12, s);
}

/* HloModuleProto of XLA: name (1), entry computation (2), computations (3), each a message that begins with its name;
 * or an HloProto, which begins with one. */
static bool is_hlo(const struct sample *s) {
    size_t at = 0, size;
    if (!text_field(&at, 0x0a, s)) {
        at = 1;
        if (!begins(s, 0, "\x0a", 1) || !varint(&size, &at, s) || !text_field(&at, 0x0a, s)) return false;
    }
    if (!text_field(&at, 0x12, s) || at >= s->n_head || s->head[at++] != 0x1a) return false;
    return varint(&size, &at, s) && at < s->n_head && s->head[at] == 0x0a && text_field(&at, 0x0a, s);
}

/* SavedModel: schema version (1, varint), then a MetaGraphDef (2) that begins with its MetaInfoDef (1). */
static bool is_saved_model(const struct sample *s) {
    size_t at = 1, version, size;
    if (!begins(s, 0, "\x08", 1) || !varint(&version, &at, s) || at >= s->n_head || s->head[at++] != 0x12) return false;
    return varint(&size, &at, s) && at < s->n_head && s->head[at] == 0x0a;
}

static const char *archive(const struct sample *s) {
    if (!begins(s, 0, "PK\x03\x04", 4)) return NULL;
    if (has_member(s, "model.weights.h5"))
        return "this is a Keras model file (export it with keras.models.load_model(FILE).export(\"DIR\"), then give "
               "DIR)";
    if (has_member(s, "data.pkl") || has_member(s, "archive_format")) /* torch.save, torch.export */
        return "this is a PyTorch model (export it to a SavedModel, for example with ai-edge-torch or through JAX or "
               "ONNX; docs/exporting.md)";
    if (has_member(s, "saved_model.pb"))
        return "this is a ZIP archive of a SavedModel (unpack it, then give the folder)";
    return "this is a ZIP archive (unpack it, then give the folder of the SavedModel)";
}

#define WRITE_EXPORT "open('OUT.jaxexport', 'wb').write(jax.export.export(jax.jit(function))(*arguments).serialize())"

/* What compilers print and JAX stores; NULL: neither. */
static const char *kind_of_program(const struct sample *s) {
    const bool is_module = begins(s, 0, "module", 6) || begins(s, 0, "#loc", 4) || begins(s, 0, "// ", 3);
    if (is_hlo(s))
        return "this is a program of HLO, which XLA makes while it compiles (export the function in JAX: " WRITE_EXPORT
               ")";
    if (begins(s, 0, "HloModule", 9))
        return "this is HLO text, which XLA makes while it compiles (export the function in JAX: " WRITE_EXPORT ")";
    if (is_module && (has_member(s, "stablehlo.") || has_member(s, "func.func") || has_member(s, "vhlo.")))
        return "this is StableHLO text (write it as a portable artifact: " TARE_SHLO_WRITE_ARTIFACT ")";
    if (begins(s, 0, "\x80", 1) && has_member(s, "jax._src"))
        return "this is an executable that JAX compiled, without the program (export the function: " WRITE_EXPORT ")";
    return NULL;
}

/* safetensors: the size of a JSON object in 8 bytes, then that object. */
static bool is_safetensors(const struct sample *s) {
    return begins(s, 4, "\0\0\0\0{\"", 6);
}

static const char *kind_of_text(const struct sample *s) {
    if (begins(s, 0, "{", 1) && has_member(s, "\"modelTopology\""))
        return "this is a TensorFlow.js model (give the SavedModel that it was made from)";
    if (has_member(s, "<net name=") && has_member(s, "<layers>"))
        return "this is an OpenVINO model (give the SavedModel that it was made from)";
    return NULL;
}

static const char *kind_of_file(const struct sample *s) {
    if (begins(s, 0, "\x89HDF\r\n\x1a\n", 8))
        return "this is a Keras HDF5 file (export it with keras.models.load_model(FILE).export(\"DIR\"), then give "
               "DIR; "
               "a file with weights only needs the code of the model)";
    if (begins(s, 4, "TFL3", 4))
        return "this is a TensorFlow Lite model, which cannot be converted back (give the SavedModel that it was made "
               "from, or export the PyTorch model through JAX; docs/exporting.md)";
    if (begins(s, 0, "\x1f\x8b", 2)) return "this is a gzip file (unpack it, then give the folder of the SavedModel)";
    if (kind_of_program(s)) return kind_of_program(s);
    if (begins(s, 0, "\x80", 1) && s->n_head > 1 && s->head[1] >= 2 && s->head[1] <= 5)
        return "this is a Python pickle, probably a PyTorch model (export it to a SavedModel; docs/exporting.md)";
    if (begins(s, 0, "ML\xefR", 4))
        return "this is a StableHLO module (tare convert and tare unwrap write it as a SavedModel)";
    if (begins(s, 0, "TARECAL\n", 8))
        return "this is a calibration file (give the model, and this file after --calibration)";
    if (is_onnx(s))
        return "this is an ONNX model (convert it to a SavedModel, for example with onnx2tf; docs/exporting.md)";
    if (is_safetensors(s) || begins(s, 0, "GGUF", 4))
        return "this is a file of weights without a model (load it in its framework and export that; "
               "docs/exporting.md)";
    if (kind_of_text(s)) return kind_of_text(s);
    if (is_saved_model(s)) return "this is the file of a SavedModel (name it saved_model.pb and give its folder)";
    if (is_graph_def(s))
        return "this is a frozen GraphDef (wrap it with tf.compat.v1.wrap_function and save it with "
               "tf.saved_model.save)";
    return archive(s);
}

static tare_status hint_file(const char *path) {
    const char *name = tare_path_base(path), *kind;
    struct sample *sample;
    if (strncmp(name, "saved_model.", 12) == 0) {
        char *folder = tare_path_folder(path);
        const tare_status status =
            TARE_FAIL(TARE_NOT_FOUND, "this is a file of a SavedModel (give its folder: %s)", folder ? folder : ".");
        tare_free(folder);
        return status;
    }
    sample = tare_calloc(1, sizeof *sample);
    if (!sample) return TARE_NO_MEMORY;
    read_sample(sample, path);
    kind = kind_of_file(sample);
    tare_free(sample);
    if (kind) return TARE_FAIL(TARE_UNSUPPORTED, "not a SavedModel: %s", kind);
    return TARE_FAIL(TARE_NOT_FOUND, "not a SavedModel: this is a file (expected a folder with saved_model.pb)");
}

bool tare_is_saved_model_folder(const char *path) {
    static const char *const names[] = { "saved_model.pb", "saved_model.pbtxt", "saved_model.cpb" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (tare_file_kind_in(path, names[i]) == TARE_FILE_REGULAR) return true;
    return false;
}

/* The last subfolder with a model, in byte order: of version folders 1, 2 … the newest below 10. NULL: none. */
static char *folder_below(const char *path) {
    struct tare_file_list list = { 0 };
    char *found = NULL;
    if (tare_file_list(&list, path) != TARE_OK) tare_error_clear();
    for (size_t i = list.count; i > 0 && !found; i--) {
        char *folder = tare_path_join(path, list.names[i - 1]);
        if (folder && tare_is_saved_model_folder(folder)) found = folder;
        if (!found) tare_free(folder);
    }
    tare_file_list_free(&list);
    return found;
}

static tare_status hint_folder(const char *path) {
    char *above = tare_path_folder(path), *below = folder_below(path);
    tare_status status;
    if (above && tare_is_saved_model_folder(above))
        status = TARE_FAIL(TARE_NOT_FOUND, "this is a folder of a SavedModel (give the folder above it: %s)", above);
    else if (below)
        status = TARE_FAIL(TARE_NOT_FOUND, "not a SavedModel: no saved_model.pb in it (did you mean %s?)", below);
    else if (tare_file_kind_in(path, "checkpoint") || tare_file_kind_in(path, "variables.index"))
        status = TARE_FAIL(TARE_UNSUPPORTED,
                           "not a SavedModel: a checkpoint has no graph (load it in Python and save the model with "
                           "tf.saved_model.save)");
    else
        status = TARE_FAIL(TARE_NOT_FOUND, "not a SavedModel: no saved_model.pb and no saved_model.pbtxt in it");
    tare_free(above);
    tare_free(below);
    return status;
}

tare_status tare_model_hint(const char *path) {
    if (strncmp(path, "gs://", 5) == 0)
        return TARE_FAIL(TARE_UNSUPPORTED,
                         "cannot read cloud storage (copy the model first: gcloud storage cp -r %s .)", path);
    if (strncmp(path, "s3://", 5) == 0)
        return TARE_FAIL(TARE_UNSUPPORTED,
                         "cannot read cloud storage (copy the model first: aws s3 cp --recursive %s %s)", path,
                         *tare_path_base(path) ? tare_path_base(path) : "model");
    switch (tare_file_kind_of(path)) {
    case TARE_FILE_NONE:
        return TARE_FAIL(TARE_NOT_FOUND, "no such directory");
    case TARE_FILE_DIRECTORY:
        return hint_folder(path);
    default:
        return hint_file(path);
    }
}
