/* Runs the compiler as a child process. */
#include "workflow/check/tpu_compiler.h"
#include "base/alloc.h"
#include "base/control.h"
#include "base/file.h"
#include "base/format.h"
#include "base/output.h"
#include "base/strbuf.h"
#include "eval/report/json_text.h"
#include "proto/highway_hash.h"
#include "tpu_compiler_py.h" /* TARE_TPU_COMPILER_PY, generated from tpu_compiler.py */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Exit status of the script, and of a shell without the program. */
enum { NO_COMPILER = 3, NO_CHIP = 5, NOT_FOUND = 127 };

static char *path_of(const struct tare_tpu_compiler *compiler, const char *name) {
    struct tare_strbuf path = { 0 };
    tare_strbuf_printf(&path, "%s/%s", compiler->folder, name);
    if (!path.failed) return path.data;
    tare_strbuf_free(&path);
    return NULL;
}

char *tare_tpu_compiler_module(const struct tare_tpu_compiler *compiler, size_t number) {
    char name[32];
    snprintf(name, sizeof name, "%zu.mlirbc", number);
    return path_of(compiler, name);
}

static tare_status write_script(const struct tare_tpu_compiler *compiler) {
    char *path = path_of(compiler, "tpu_compiler.py");
    const tare_status status =
        path ? tare_file_write(path, TARE_TPU_COMPILER_PY, sizeof TARE_TPU_COMPILER_PY - 1) : TARE_NO_MEMORY;
    tare_free(path);
    return status;
}

tare_status tare_tpu_compiler_open(struct tare_tpu_compiler *compiler) {
    const char *folder = getenv("TMPDIR");
    struct tare_strbuf path = { 0 };
    compiler->folder = NULL;
    tare_strbuf_printf(&path, "%s/tare-check-XXXXXX", folder && *folder ? folder : "/tmp");
    if (path.failed || !mkdtemp(path.data)) {
        const tare_status status = path.failed ? TARE_NO_MEMORY
                                               : TARE_FAIL(TARE_IO, "%s: cannot be created: %s (set TMPDIR)", path.data,
                                                           tare_system_error(errno));
        tare_strbuf_free(&path);
        return status;
    }
    compiler->folder = path.data;
    return write_script(compiler);
}

void tare_tpu_compiler_close(struct tare_tpu_compiler *compiler) {
    DIR *folder = compiler->folder ? opendir(compiler->folder) : NULL;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char *path = path_of(compiler, entry->d_name);
        if (path && entry->d_name[0] != '.') unlink(path);
        tare_free(path);
    }
    if (folder) closedir(folder);
    if (compiler->folder) rmdir(compiler->folder);
    tare_free(compiler->folder);
    compiler->folder = NULL;
}

/* ---- the child process ---- */

/* The command of TARE_TPU_COMPILER is split by the shell. One that is a Python gets the script. */
static void put_command(struct tare_strbuf *out, const struct tare_tpu_compiler *compiler, const char *chip,
                        size_t count) {
    const char *command = getenv("TARE_TPU_COMPILER"), *name;
    if (!command || !*command) command = "python3";
    name = strrchr(command, '/') ? strrchr(command, '/') + 1 : command;
    /* the compiler's recursion on large attention graphs overflows the usual stack */
    tare_strbuf_printf(out, "ulimit -s unlimited 2>/dev/null; exec %s ", command);
    if (strncmp(name, "python", strlen("python")) == 0) {
        tare_strbuf_shell_word(out, compiler->folder);
        tare_strbuf_puts(out, "/tpu_compiler.py ");
    }
    tare_strbuf_puts(out, chip);
    for (size_t i = 1; i <= count; i++) {
        tare_strbuf_putc(out, ' ');
        tare_strbuf_shell_word(out, compiler->folder);
        tare_strbuf_printf(out, "/%zu.mlirbc", i);
    }
}

/* Runs a shell with its outputs in files, and ends it once the call is cancelled; *code is its exit status, -1 after a
 * signal. */
static tare_status run_shell(int *code, const char *command, const char *out, const char *err) {
    const char *const words[] = { "sh", "-c", command, NULL };
    posix_spawn_file_actions_t actions;
    pid_t child;
    int state, failed = posix_spawn_file_actions_init(&actions);
    if (failed) return TARE_NO_MEMORY;
    failed = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!failed)
        failed = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (!failed)
        failed = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (!failed) failed = posix_spawn(&child, "/bin/sh", &actions, NULL, (char *const *)(uintptr_t)words, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed) return TARE_FAIL(TARE_IO, "/bin/sh: cannot be run: %s", tare_system_error(failed));
    while (waitpid(child, &state, 0) < 0) {
        if (errno != EINTR) return TARE_FAIL(TARE_IO, "the TPU compiler: %s", tare_system_error(errno));
        if (tare_control_is_stopped()) kill(child, SIGTERM);
    }
    TARE_TRY(tare_control_check());
    *code = WIFEXITED(state) ? WEXITSTATUS(state) : -1;
    return TARE_OK;
}

/* One object a line. */
static tare_status read_objects(json_t **out, const char *path, size_t count) {
    size_t size, line = 0;
    char *text;
    tare_status status = TARE_OK;
    TARE_TRY(tare_file_read(&text, &size, path));
    *out = json_array();
    for (char *at = text, *end; *at && status == TARE_OK; at = end) {
        json_t *object;
        line++;
        end = at + strcspn(at, "\n");
        end += *end == '\n';
        object = tare_json_parse(at, (size_t)(end - at), NULL);
        if (json_is_object(object))
            json_array_append_new(*out, object);
        else
            status =
                TARE_FAIL(TARE_INVALID_ARGUMENT,
                          "the TPU compiler: line %zu is not a JSON object (set TARE_TPU_COMPILER to a Python with "
                          "jax[tpu])",
                          line);
    }
    if (status == TARE_OK && json_array_size(*out) != count)
        status = TARE_FAIL(TARE_INVALID_ARGUMENT, "the TPU compiler: %zu results (expected %zu)", json_array_size(*out),
                           count);
    tare_free(text);
    return status;
}

/* The last line that the program wrote to standard error. */
static tare_status fail_with(const char *path, int code) {
    size_t size;
    char *text, *last;
    TARE_TRY(tare_file_read(&text, &size, path));
    while (size && text[size - 1] == '\n')
        text[--size] = '\0';
    last = strrchr(text, '\n') ? strrchr(text, '\n') + 1 : text;
    const tare_status status = TARE_FAIL(TARE_INVALID_ARGUMENT, "the TPU compiler: exit status %d: %.400s", code, last);
    tare_free(text);
    return status;
}

static tare_status compile(json_t **out, const char **why, const struct tare_tpu_compiler *compiler, const char *chip,
                           size_t count) {
    struct tare_strbuf command = { 0 };
    char *printed = path_of(compiler, "out"), *errors = path_of(compiler, "err");
    int code = 0;
    tare_status status = printed && errors ? TARE_OK : TARE_NO_MEMORY;
    *out = NULL;
    *why = NULL;
    put_command(&command, compiler, chip, count);
    if (status == TARE_OK) status = tare_strbuf_status(&command);
    if (status == TARE_OK) status = run_shell(&code, command.data, printed, errors);
    if (status == TARE_OK && code == NOT_FOUND)
        *why = getenv("TARE_TPU_COMPILER") ? "the command of TARE_TPU_COMPILER does not exist" : "there is no python3";
    else if (status == TARE_OK && code == NO_COMPILER)
        *why = "python3 has no TPU compiler (pip install 'jax[tpu]', or set TARE_TPU_COMPILER)";
    else if (status == TARE_OK && code == NO_CHIP)
        *why = "the TPU compiler does not know the chip";
    else if (status == TARE_OK)
        status = code ? fail_with(errors, code) : read_objects(out, printed, count);
    if (status != TARE_OK) {
        json_decref(*out);
        *out = NULL;
    }
    tare_strbuf_free(&command);
    tare_free(printed);
    tare_free(errors);
    return status;
}

/* ---- what is known ---- */

/* CHIP and 128 bits of the module. */
static tare_status put_key(struct tare_strbuf *out, const struct tare_tpu_compiler *compiler, const char *chip,
                           size_t number) {
    static const uint64_t keys[][4] = { { 1, 2, 3, 4 }, { 5, 6, 7, 8 } };
    char *path = tare_tpu_compiler_module(compiler, number), *module;
    size_t size;
    const tare_status status = path ? tare_file_read(&module, &size, path) : TARE_NO_MEMORY;
    tare_free(path);
    TARE_TRY(status);
    tare_strbuf_puts(out, chip);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        tare_strbuf_printf(out, "-%016llx", (unsigned long long)tare_highway_hash64(keys[i], module, size));
    tare_free(module);
    return tare_strbuf_status(out);
}

/* The results of all modules together: the functions of one model. */
tare_status tare_tpu_compiler_run(json_t **out, const char **why, const struct tare_tpu_compiler *compiler,
                                  const char *chip, size_t count, json_t *known) {
    struct tare_strbuf key = { 0 };
    tare_status status = TARE_OK;
    *why = NULL;
    for (size_t i = 1; known && i <= count && status == TARE_OK; i++)
        status = put_key(&key, compiler, chip, i);
    *out = status == TARE_OK && known ? json_incref(json_object_get(known, tare_strbuf_text(&key))) : NULL;
    if (status == TARE_OK && !*out) {
        status = compile(out, why, compiler, chip, count);
        if (status == TARE_OK && *out && known && json_object_set(known, tare_strbuf_text(&key), *out) != 0) {
            json_decref(*out);
            *out = NULL;
            status = TARE_NO_MEMORY;
        }
    }
    tare_strbuf_free(&key);
    return status;
}
