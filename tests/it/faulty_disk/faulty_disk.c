/* Preloaded into a test's process, this makes the system calls fail that open, read and write files below a folder.
 *
 * FAULTY_DISK_FOLDER   the folder
 * FAULTY_DISK_SWITCH   a file; while it is there, each of its lines holds `open`, `read`, `write`, `sync` or `table` (writing
 *                      tables, not logs), the number of the error, and the beginning of the paths of the files it is of
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* The error that this kind of call has on the file of this name now; 0 for none. */
static int named_fault(const char *kind, const char *name) {
    const char *folder = getenv("FAULTY_DISK_FOLDER"), *path = getenv("FAULTY_DISK_SWITCH");
    char faulty[16], prefix[4096];
    int error = 0, found = 0;
    if (!folder || !path || strncmp(name, folder, strlen(folder)) != 0 || access(path, F_OK) != 0)
        return 0;
    FILE *text = fopen(path, "re");
    if (!text)
        return 0;
    size_t length = strlen(name);
    int is_table = length > 4 && strcmp(name + length - 4, ".sst") == 0;
    while (!found && fscanf(text, "%15s %d %4095[^\n]", faulty, &error, prefix) == 3) {
        int is_kind = strcmp(faulty, kind) == 0;
        is_kind |= is_table && strcmp(faulty, "table") == 0 && strcmp(kind, "write") == 0;
        if (is_kind && strncmp(name, prefix, strlen(prefix)) == 0)
            found = error;
    }
    fclose(text);
    return found;
}

static int fault(const char *kind, int file) {
    char link[64], name[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, name, sizeof name - 1);
    if (length < 0)
        return 0;
    name[length] = 0;
    return named_fault(kind, name);
}

#define INJECT(failing, failed, result, name, arguments, ...)           \
    result name arguments {                                             \
        static result(*original) arguments;                             \
        int error = failing;                                            \
        if (error) {                                                    \
            errno = error;                                              \
            return failed;                                              \
        }                                                               \
        if (!original)                                                  \
            original = (result(*) arguments)dlsym(RTLD_NEXT, #name);    \
        return original(__VA_ARGS__);                                   \
    }

INJECT(fault("write", file), -1, ssize_t, write, (int file, const void *bytes, size_t count), file, bytes, count)
INJECT(fault("write", file), -1, ssize_t, pwrite, (int file, const void *bytes, size_t count, off_t at), file, bytes,
       count, at)
INJECT(fault("write", file), -1, ssize_t, pwrite64, (int file, const void *bytes, size_t count, off64_t at), file, bytes,
       count, at)
INJECT(fault("sync", file), -1, int, fsync, (int file), file)
INJECT(fault("sync", file), -1, int, fdatasync, (int file), file)
INJECT(fault("read", file), -1, ssize_t, read, (int file, void *bytes, size_t count), file, bytes, count)
INJECT(fault("read", file), -1, ssize_t, pread, (int file, void *bytes, size_t count, off_t at), file, bytes, count, at)
INJECT(fault("read", file), -1, ssize_t, pread64, (int file, void *bytes, size_t count, off64_t at), file, bytes, count,
       at)
/* Otherwise a macro with an optimizing compiler. */
#undef fread_unlocked
INJECT(fault("read", fileno(file)), 0, size_t, fread_unlocked, (void *bytes, size_t size, size_t count, FILE *file), bytes,
       size, count, file)

/* With or without the mode, which is only given to files that may be made. */
#define INJECT_OPEN(name)                                               \
    int name(const char *path, int flags, ...) {                        \
        static int (*original)(const char *, int, ...);                 \
        int error = named_fault("open", path);                          \
        if (error) {                                                    \
            errno = error;                                              \
            return -1;                                                  \
        }                                                               \
        if (!original)                                                  \
            original = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #name); \
        va_list more;                                                   \
        va_start(more, flags);                                          \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; \
        va_end(more);                                                   \
        return original(path, flags, mode);                             \
    }

INJECT_OPEN(open)
INJECT_OPEN(open64)
