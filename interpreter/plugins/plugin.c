/* Loading libraries of ops. */
#include "interpreter/plugins/plugin.h"
#include "base/format.h"
#include "base/alloc.h"
#include "graph/definitions/op_compat.h"
#include "interpreter/plugins/host.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

struct tare_plugins {
    struct tare_op_registry *registry;
    struct tare_opspec_memory memory; /* definitions; its arena holds all that the libraries said */
    struct tare_op_library *libraries;
};

/* ---- the table ---- */

static struct tare_op_host host;
static pthread_once_t host_once = PTHREAD_ONCE_INIT;

static int fail(const char *format, va_list args) {
    return tare_fail_va(TARE_INVALID_ARGUMENT, format, args);
}

static void make_host(void) {
    host.abi = TARE_OP_ABI;
    host.size = sizeof host;
    host.fail = fail;
    tare_plugin_host_registration(&host);
    tare_plugin_host_node(&host);
    tare_plugin_host_tensors(&host);
    tare_plugin_host_run(&host);
    tare_plugin_host_shapes(&host);
    tare_plugin_host_composites(&host);
}

/* The table of ABI 1.0 ends with dim_arithmetic, its function number 61, that of 1.1 with node_output, its function
 * number 86. New functions are appended, with a higher
 * minor number: if one were inserted, existing libraries would call the wrong functions. */
_Static_assert(offsetof(struct tare_op_host, fail) == 2 * sizeof(uint32_t), "the table of ABI 1.0");
_Static_assert(offsetof(struct tare_op_host, dim_arithmetic) == 2 * sizeof(uint32_t) + 60 * sizeof(void *),
               "the table of ABI 1.0");

_Static_assert(offsetof(struct tare_op_host, node_output) == 2 * sizeof(uint32_t) + 85 * sizeof(void *) &&
                   sizeof(struct tare_op_host) == 2 * sizeof(uint32_t) + 86 * sizeof(void *),
               "the table of ABI 1.1");

/* The numbers of the public header equal the internal ones. */
#define SAME(id) _Static_assert((int)TARE_DTYPE_##id == (int)TARE_DT_##id, "dtype " #id)
SAME(FLOAT);
SAME(DOUBLE);
SAME(INT32);
SAME(UINT8);
SAME(INT16);
SAME(INT8);
SAME(STRING);
SAME(COMPLEX64);
SAME(INT64);
SAME(BOOL);
SAME(QINT8);
SAME(QUINT8);
SAME(QINT32);
SAME(BFLOAT16);
SAME(QINT16);
SAME(QUINT16);
SAME(UINT16);
SAME(COMPLEX128);
SAME(HALF);
SAME(RESOURCE);
SAME(VARIANT);
SAME(UINT32);
SAME(UINT64);
#undef SAME

/* ---- loading ---- */

struct tare_plugins *tare_plugins_new(const struct tare_op_registry *parent) {
    struct tare_plugins *plugins = tare_calloc(1, sizeof *plugins);
    if (!plugins) return NULL;
    plugins->registry = tare_ops_new(parent);
    if (plugins->registry) {
        tare_ops_attach(plugins->registry, plugins);
        return plugins;
    }
    tare_free(plugins);
    return NULL;
}

/* A name without a slash is a file in the current folder, not a library in the system's search path. */
static tare_status open_library(struct tare_op_library *library) {
    const char *path = library->path;
    if (!strchr(path, '/')) path = tare_arena_printf(library->arena, "./%s", path);
    if (!path) return TARE_NO_MEMORY;
    library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library->handle) return TARE_OK;
    const char *text = tare_loader_error();
    return TARE_FAIL(TARE_IO, "cannot be loaded: %s", text ? text : "unknown reason");
}

static void *find_function(const struct tare_op_library *library, const char *name) {
    return dlsym(library->handle, name);
}

static tare_status check_abi(const struct tare_op_library *library) {
    uint32_t (*abi)(void);
    uint32_t got;
    *(void **)&abi = find_function(library, "tare_op_library_abi");
    if (!abi)
        return TARE_FAIL(
            TARE_INVALID_ARGUMENT,
            "is not a library of ops: no function tare_op_library_abi (TARE_OP_LIBRARY in <tare/op.h> makes it)");
    got = abi();
    if (got >> 16 == TARE_OP_ABI_MAJOR && (got & 0xffff) <= TARE_OP_ABI_MINOR) return TARE_OK;
    return TARE_FAIL(TARE_UNSUPPORTED,
                     "was built for op ABI %u.%u (this tare has %d.%d): build it with this tare's <tare/op.h>",
                     (unsigned)(got >> 16), (unsigned)(got & 0xffff), TARE_OP_ABI_MAJOR, TARE_OP_ABI_MINOR);
}

static tare_status collect(struct tare_op_library *library) {
    int (*registration)(const struct tare_op_host *host, tare_op_library *library);
    *(void **)&registration = find_function(library, "tare_op_library_register");
    if (!registration)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "is not a library of ops: no function tare_op_library_register "
                                                "(TARE_OP_LIBRARY in <tare/op.h> makes it)");
    tare_error_clear();
    TARE_TRY(tare_plugin_status(registration(&host, library), "registration"));
    if (library->out_of_memory) return TARE_NO_MEMORY;
    return library->first || library->composites ? TARE_OK : TARE_FAIL(TARE_INVALID_ARGUMENT, "registers no op");
}

/* A library cannot replace an op with a built-in kernel, but it can provide kernels for an op that has only a
 * definition. */
static tare_status check_new(const struct tare_plugins *plugins, const struct tare_op_def *def) {
    const struct tare_op_def *old = tare_ops_find(plugins->registry, def->name);
    const char *path = old ? tare_plugin_path_of(old) : NULL;
    struct tare_op_changes changes = { 0 };
    tare_status status;
    if (!old) return TARE_OK;
    if (!old->row) {
        status = tare_op_compare(&changes, old, def);
        if (status == TARE_OK && changes.count)
            status = TARE_FAIL(TARE_INVALID_ARGUMENT, "Op %s is TensorFlow's, and this is another one: %s", def->name,
                               changes.items[0]);
        tare_op_changes_free(&changes);
        return status;
    }
    if (path && path == tare_plugin_path_of(def))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Op %s is already registered by the same library", def->name);
    if (path) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Op %s is already registered by %s", def->name, path);
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "Op %s is already registered: it is built in", def->name);
}

static tare_status register_all(struct tare_plugins *plugins, struct tare_op_library *library) {
    for (struct tare_op_entry *op = library->first; op; op = op->next) {
        struct tare_op_def *def;
        TARE_TRY(tare_plugin_finish(op, &plugins->memory, &def));
        TARE_TRY(check_new(plugins, def));
        TARE_TRY(tare_ops_add_def(plugins->registry, def));
    }
    return TARE_OK;
}

static tare_status load(struct tare_plugins *plugins, struct tare_op_library *library) {
    TARE_TRY(open_library(library));
    for (const struct tare_op_library *other = library->next; other; other = other->next)
        if (other->handle == library->handle) return TARE_FAIL(TARE_INVALID_ARGUMENT, "is loaded twice");
    TARE_TRY(check_abi(library));
    TARE_TRY(collect(library));
    return register_all(plugins, library);
}

tare_status tare_plugins_load(struct tare_plugins *plugins, const char *path) {
    struct tare_arena *arena = &plugins->memory.arena;
    struct tare_op_library *library = TARE_NEW(arena, struct tare_op_library);
    const char *copy = tare_arena_strdup(arena, path);
    if (!library || !copy) return TARE_NO_MEMORY;
    pthread_once(&host_once, make_host);
    *library = (struct tare_op_library){ .path = copy, .arena = arena, .next = plugins->libraries };
    library->last = &library->first;
    library->last_composite = &library->composites;
    plugins->libraries = library;
    return tare_error_prefix(load(plugins, library), "plugin %s", path);
}

/* ---- rewrites of composite functions ---- */

static bool matches(const struct tare_plugin_composite *composite, const char *name) {
    return composite->is_prefix ? strncmp(name, composite->pattern, strlen(composite->pattern)) == 0
                                : strcmp(name, composite->pattern) == 0;
}

/* Libraries are listed last first: those loaded first are searched first. */
static const struct tare_op_library *library_before(const struct tare_plugins *plugins,
                                                    const struct tare_op_library *library) {
    const struct tare_op_library *found = NULL;
    for (const struct tare_op_library *at = plugins->libraries; at && at != library; at = at->next)
        found = at;
    return found;
}

const struct tare_plugin_composite *tare_plugins_next_composite(const struct tare_op_registry *ops, const char *name,
                                                                const struct tare_plugin_composite *previous) {
    const struct tare_plugins *plugins = tare_ops_attached(ops);
    const struct tare_op_library *library = previous  ? previous->library
                                            : plugins ? library_before(plugins, NULL)
                                                      : NULL;
    const struct tare_plugin_composite *at = previous ? previous->next : library ? library->composites : NULL;
    while (library) {
        for (; at; at = at->next)
            if (matches(at, name)) return at;
        library = library_before(plugins, library);
        at = library ? library->composites : NULL;
    }
    return NULL;
}

const struct tare_op_registry *tare_plugins_ops(const struct tare_plugins *plugins) {
    return plugins->registry;
}

static const struct tare_op_entry *entry_of(const struct tare_op_def *def) {
    return def->row && def->row->release == tare_plugin_release ? def->row->aux : NULL;
}

const char *tare_plugin_path_of(const struct tare_op_def *def) {
    return entry_of(def) ? entry_of(def)->library->path : NULL;
}

const char *tare_plugin_doc_of(const struct tare_op_def *def) {
    return entry_of(def) ? entry_of(def)->doc : NULL;
}

const char *tare_plugin_kernels_of(const struct tare_op_def *def) {
    return entry_of(def) ? entry_of(def)->kernels_text : NULL;
}

void tare_plugins_free(struct tare_plugins *plugins) {
    if (!plugins) return;
    tare_ops_free(plugins->registry);
    for (struct tare_op_library *library = plugins->libraries; library; library = library->next)
        if (library->handle) dlclose(library->handle);
    tare_opspec_memory_free(&plugins->memory);
    tare_free(plugins);
}
