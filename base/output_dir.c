/* Output folders: written under a temporary name next to their place and moved there when they are complete and synced.
 *
 * Commit exchanges the new folder with an old one in one step (RENAME_EXCHANGE). Where the file system cannot do that,
 * the old folder is moved away, the new one moved in, and the old one moved back if that fails. A mount point, or a
 * folder whose parent is not writable, cannot be renamed: the new folder is then written inside it, and its entries are
 * exchanged one after another, files of the old one first and files of the new one last, so that a folder which was cut
 * off in between has no file at its top (no saved_model.pb) and both versions are still in its hidden folders.
 *
 * An old folder that was moved away has a name of its own (".NAME.old-PID-n"): the next run moves it back if the
 * process was killed before the new one was in its place, and removes it otherwise.
 *
 * The output is locked (base/output_lock.h), and so is the temporary folder, while the process lives. What killed
 * processes of the same user left is removed by the next run with the same output. */
#include "base/alloc.h"
#include "base/control.h"
#include "base/file.h"
#include "base/output.h"
#include "base/output_sibling.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The path without slashes at its end; NULL when memory is out. */
static char *trimmed(const char *path) {
    char *copy = tare_strdup(path);
    size_t length = copy ? strlen(copy) : 0;
    while (length > 1 && copy[length - 1] == '/')
        copy[--length] = '\0';
    return copy;
}

/* The name of an output that is written inside its folder, for its lock and temporary names. */
static const char INNER[] = "tare";

/* Whether an entry of an output folder is one that writing into it makes or leaves. */
static bool is_own(const char *name) {
    return tare_sibling_is_temporary(name, INNER) || tare_output_is_lock(name, INNER);
}

/* ---- what is at the path ---- */

static tare_status check_entries(const char *path, const struct tare_output_rules *rules) {
    struct tare_file_list names = { 0 };
    tare_status status;
    TARE_TRY(tare_file_list(&names, path));
    status = TARE_OK;
    for (size_t i = 0; i < names.count && status == TARE_OK; i++) {
        if (is_own(names.names[i])) continue;
        if (!rules || !rules->overwrite)
            status = TARE_FAIL(TARE_INVALID_ARGUMENT, "Output directory already exists: %s", path);
        else if (rules->is_part && !rules->is_part(names.names[i]))
            status = TARE_FAIL(TARE_INVALID_ARGUMENT,
                               "'%s' is not overwritten: it contains '%s', which is not part of %s (choose another "
                               "folder, or remove this one)",
                               path, names.names[i], rules->what);
    }
    tare_file_list_free(&names);
    return status;
}

static tare_status check_name(const char *path) {
    return *path ? TARE_OK : TARE_FAIL(TARE_INVALID_ARGUMENT, "the output directory has an empty name");
}

tare_status tare_output_dir_check(const char *path, const struct tare_output_rules *rules) {
    struct stat info;
    TARE_TRY(check_name(path));
    if (rules && rules->input) TARE_TRY(tare_output_check_apart(path, rules->input));
    if (lstat(path, &info) != 0) return TARE_OK;
    if (tare_file_kind_of(path) != TARE_FILE_DIRECTORY)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Output directory already exists: %s", path);
    return check_entries(path, rules);
}

static bool is_mount_point(const char *path) {
    struct stat info, above;
    char *parent;
    bool mounted;
#ifdef STATX_ATTR_MOUNT_ROOT
    struct statx extended;
    if (statx(AT_FDCWD, path, 0, STATX_BASIC_STATS, &extended) == 0 &&
        (extended.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT))
        return extended.stx_attributes & STATX_ATTR_MOUNT_ROOT;
#endif
    parent = tare_path_join(path, "..");
    mounted = parent && stat(path, &info) == 0 && stat(parent, &above) == 0 && info.st_dev != above.st_dev;
    tare_free(parent);
    return mounted;
}

/* ---- begin ---- */

static bool may_write(const char *folder) {
    return faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0;
}

/* Locks the output, then looks again: another process may have completed it meanwhile. */
static tare_status lock_output(struct tare_output_dir *out, const char *folder, const char *name) {
    TARE_TRY(tare_output_lock_in(&out->lock, folder, name, out->path));
    if (!out->in_place) TARE_TRY(tare_sibling_restore(out->path));
    return tare_output_dir_check(out->path, &out->rules);
}

static void guard_temporary(struct tare_output_dir *out) {
    out->guard = open(out->temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (out->guard >= 0) (void)flock(out->guard, LOCK_EX | LOCK_NB); /* a file system without locks has none */
}

static tare_status make_temporary(struct tare_output_dir *out, const char *parent) {
    const bool there = tare_file_kind_of(out->path) == TARE_FILE_DIRECTORY;
    out->in_place = there && (is_mount_point(out->path) || !may_write(parent));
    if (out->in_place) {
        char *inner = tare_path_join(out->path, INNER);
        tare_status status = inner ? lock_output(out, out->path, INNER) : TARE_NO_MEMORY;
        if (status == TARE_OK) status = tare_sibling_make_folder(&out->temporary, inner);
        tare_free(inner);
        TARE_TRY(status);
    } else {
        TARE_TRY(tare_file_make_folders(parent, &out->existed));
        TARE_TRY(lock_output(out, parent, tare_path_base(out->path)));
        TARE_TRY(tare_sibling_make_folder(&out->temporary, out->path));
    }
    guard_temporary(out);
    return TARE_OK;
}

/* A link to a folder stays one: its target is replaced. */
static char *place_of(const char *path) {
    char *plain = trimmed(path), room[PATH_MAX];
    const char *real;
    struct stat info;
    if (!plain || lstat(plain, &info) != 0 || !S_ISLNK(info.st_mode)) return plain;
    real = realpath(plain, room);
    if (!real) return plain;
    tare_free(plain);
    return tare_strdup(real);
}

static tare_status start(struct tare_output_dir *out, const char *path) {
    *out = (struct tare_output_dir){ .existed = SIZE_MAX, .guard = -1, .lock.fd = -1 }; /* no parent was made yet */
    return check_name(path);
}

tare_status tare_output_dir_begin(struct tare_output_dir *out, const char *path,
                                  const struct tare_output_rules *rules) {
    tare_status status = TARE_NO_MEMORY;
    char *parent = NULL;

    TARE_TRY(start(out, path));
    if (rules) out->rules = *rules;
    out->path = place_of(path);
    parent = out->path ? tare_path_folder(out->path) : NULL;
    if (!parent) goto done;
    TARE_CHECK(tare_output_dir_check(out->path, &out->rules));
    TARE_CHECK(make_temporary(out, parent));
done:
    tare_free(parent);
    if (status != TARE_OK) tare_output_dir_abort(out);
    return status;
}

tare_status tare_output_dir_begin_adding(struct tare_output_dir *out, const char *path) {
    tare_status status = TARE_NO_MEMORY;
    char *inner = NULL;
    TARE_TRY(start(out, path));
    out->adds = true;
    out->path = trimmed(path);
    inner = out->path ? tare_path_join(out->path, INNER) : NULL;
    if (!inner) goto done;
    TARE_CHECK(tare_file_make_folders(out->path, &out->existed));
    TARE_CHECK(tare_output_lock_in(&out->lock, out->path, INNER, path));
    tare_sibling_sweep(out->path);
    TARE_CHECK(tare_sibling_make_folder(&out->temporary, inner));
    guard_temporary(out);
done:
    tare_free(inner);
    if (status != TARE_OK) tare_output_dir_abort(out);
    return status;
}

/* ---- commit by renaming the folder ---- */

/* Without RENAME_EXCHANGE: away, in, and back if that fails. The old folder ends under `from`. */
static tare_status exchange_in_steps(const char *from, const char *path) {
    char *aside = NULL;
    tare_status status = tare_sibling_make_aside(&aside, path);
    if (status != TARE_OK) return status;
    if (rename(path, aside) != 0) {
        status = tare_file_error("cannot move", path);
        rmdir(aside);
    } else if (tare_file_must_fail() || rename(from, path) != 0) {
        status = tare_file_error("cannot create", path);
        if (rename(aside, path) != 0)
            status = TARE_FAIL(TARE_IO, "%s; the old folder is now '%s'", tare_error_text(), aside);
    } else if (rename(aside, from) != 0) {
        status = tare_file_error("is complete, but the old folder cannot be removed:", aside);
    }
    tare_free(aside);
    return status;
}

static tare_status exchange(const char *from, const char *path) {
    struct stat info;
    if (stat(path, &info) == 0) (void)chmod(from, info.st_mode & 07777);
    if (tare_file_must_fail()) return tare_file_error("cannot create", path);
    if (renameat2(AT_FDCWD, from, AT_FDCWD, path, RENAME_EXCHANGE) == 0) return TARE_OK;
    if (errno != EINVAL && errno != ENOSYS) return tare_file_error("cannot create", path);
    return exchange_in_steps(from, path);
}

static tare_status move_new(const char *from, const char *path) {
    if (tare_file_must_fail()) return tare_file_error("cannot create", path);
    if (renameat2(AT_FDCWD, from, AT_FDCWD, path, RENAME_NOREPLACE) == 0) return TARE_OK;
    if (errno == EEXIST) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Output directory already exists: %s", path);
    if (errno != EINVAL && errno != ENOSYS) return tare_file_error("cannot create", path);
    return rename(from, path) == 0 ? TARE_OK : tare_file_error("cannot create", path);
}

tare_status tare_output_move(const char *from, const char *path, const struct tare_output_rules *rules) {
    tare_status status;
    TARE_TRY(tare_sibling_restore(path));
    TARE_TRY(tare_output_dir_check(path, rules));
    if (tare_file_kind_of(path) != TARE_FILE_DIRECTORY) {
        TARE_TRY(move_new(from, path));
    } else {
        TARE_TRY(exchange(from, path));
        status = tare_file_remove_tree(from);
        if (status != TARE_OK)
            return TARE_FAIL(TARE_IO, "'%s' is complete, but what it replaced is not removed: %s", path,
                             tare_error_text());
    }
    tare_control_note_commit();
    return tare_sync_folder_of(path);
}

/* ---- commit by moving entries ---- */

enum phase { FILES, FOLDERS };

/* What was moved in the other phase is in the list of names, but no longer there. */
static bool is_of(const char *folder, const char *name, enum phase phase) {
    char *path = tare_path_join(folder, name);
    struct stat info;
    bool found = path && lstat(path, &info) == 0 && S_ISDIR(info.st_mode) == (phase == FOLDERS);
    tare_free(path);
    return found;
}

static tare_status move_entry(const char *from, const char *to, const char *name) {
    char *old = tare_path_join(from, name), *new = tare_path_join(to, name);
    tare_status status = old && new ? TARE_OK : TARE_NO_MEMORY;
    if (status == TARE_OK && (tare_file_must_fail() || rename(old, new) != 0))
        status = tare_file_error("cannot create", new);
    tare_free(old);
    tare_free(new);
    return status;
}

static tare_status move_entries(const char *from, const char *to, enum phase first) {
    struct tare_file_list names = { 0 };
    tare_status status;
    TARE_TRY(tare_file_list(&names, from));
    status = TARE_OK;
    for (int pass = 0; pass < 2 && status == TARE_OK; pass++)
        for (size_t i = 0; i < names.count && status == TARE_OK; i++) {
            if (is_own(names.names[i])) continue;
            if (is_of(from, names.names[i], pass ? (enum phase)(1 - first) : first))
                status = move_entry(from, to, names.names[i]);
        }
    tare_file_list_free(&names);
    return status;
}

static tare_status exchange_entries(struct tare_output_dir *out) {
    char *aside = NULL, *inner = tare_path_join(out->path, INNER), text[4096];
    tare_status status = inner ? tare_sibling_make_aside(&aside, inner) : TARE_NO_MEMORY;
    if (status == TARE_OK) {
        status = move_entries(out->path, aside, FILES);
        if (status == TARE_OK) status = move_entries(out->temporary, out->path, FOLDERS);
        if (status != TARE_OK) {
            snprintf(text, sizeof text, "%s", tare_error_text());
            if (move_entries(out->path, out->temporary, FILES) != TARE_OK ||
                move_entries(aside, out->path, FOLDERS) != TARE_OK)
                status = TARE_FAIL(TARE_IO, "%s; the old files are in '%s'", text, aside);
            else
                tare_error_set(text);
        }
        if (status == TARE_OK) status = tare_file_remove_tree(aside);
        if (status != TARE_OK) rmdir(aside);
    }
    if (status == TARE_OK) status = tare_file_remove_tree(out->temporary);
    if (status == TARE_OK) tare_sibling_remove_old(inner); /* of killed runs; until now they might have been needed */
    tare_free(aside);
    tare_free(inner);
    return status;
}

/* A folder with the name of a new file would make a rename fail after others. */
static tare_status check_no_folders(const char *folder, const struct tare_file_list *names) {
    tare_status status = TARE_OK;
    for (size_t i = 0; i < names->count && status == TARE_OK; i++) {
        char *path = tare_path_join(folder, names->names[i]);
        if (!path)
            status = TARE_NO_MEMORY;
        else if (tare_file_kind_of(path) == TARE_FILE_DIRECTORY)
            status = TARE_FAIL(TARE_IO, "cannot create '%s': it is a folder", path);
        tare_free(path);
    }
    return status;
}

static tare_status add_entries(const struct tare_output_dir *out) {
    struct tare_file_list names;
    size_t done = 0;
    tare_status status;
    TARE_TRY(tare_file_list(&names, out->temporary));
    status = check_no_folders(out->path, &names);
    while (status == TARE_OK && done < names.count) {
        status = move_entry(out->temporary, out->path, names.names[done]);
        if (status == TARE_OK) done++;
    }
    if (status != TARE_OK && done)
        status = TARE_FAIL(status, "%s (%zu of %zu files were written)", tare_error_text(), done, names.count);
    if (done) tare_control_note_commit();
    tare_file_list_free(&names);
    return status == TARE_OK ? tare_file_remove_tree(out->temporary) : status;
}

tare_status tare_output_dir_commit(struct tare_output_dir *out) {
    tare_status status;
    TARE_CHECK(tare_control_verify());
    TARE_CHECK(tare_file_sync_tree(out->temporary));
    if (out->adds) {
        TARE_CHECK(add_entries(out));
        status = tare_file_sync_folder(out->path);
        if (status != TARE_OK)
            status = TARE_FAIL(status, "the files in '%s' are complete, but %s", out->path, tare_error_text());
    } else if (out->in_place) {
        TARE_CHECK(tare_output_dir_check(out->path, &out->rules));
        TARE_CHECK(exchange_entries(out));
        status = tare_file_sync_folder(out->path);
        if (status != TARE_OK) status = TARE_FAIL(status, "'%s' is complete, but %s", out->path, tare_error_text());
    } else {
        status = tare_output_move(out->temporary, out->path, &out->rules);
    }
done:
    tare_output_dir_abort(out);
    return status;
}

void tare_output_dir_abort(struct tare_output_dir *out) {
    char text[4096];
    char *slash = out->path ? strrchr(out->path, '/') : NULL;
    snprintf(text, sizeof text, "%s", tare_error_text());
    /* First, so that removing has descriptors where the process is out of them: other processes then may help. */
    if (out->temporary && out->guard >= 0) close(out->guard);
    tare_output_unlock(&out->lock);
    if (out->temporary && tare_file_remove_tree(out->temporary) != TARE_OK) tare_error_set(text);
    /* rmdir leaves a parent alone that holds something else by now. */
    if (out->adds && out->path) {
        tare_file_remove_made_folders(out->path, out->existed);
    } else if (slash) {
        *slash = '\0';
        tare_file_remove_made_folders(out->path, out->existed);
    }
    tare_free(out->path);
    tare_free(out->temporary);
    memset(out, 0, sizeof *out);
    out->guard = out->lock.fd = -1;
    tare_error_set(text);
}
