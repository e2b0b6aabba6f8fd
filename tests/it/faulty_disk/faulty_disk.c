/* Preloaded into a test's process, this makes the system calls fail that write files below a folder.
 *
 * FAULTY_DISK_FOLDER   the folder
 * FAULTY_DISK_SWITCH   a file; while it is there, it holds `write`, `sync` or `table` (writing tables, not logs) and the
 *                      number of the error
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* The error that this kind of call has on this file now; 0 for none. */
static int fault(const char *kind, int file) {
    const char *folder = getenv("FAULTY_DISK_FOLDER"), *path = getenv("FAULTY_DISK_SWITCH");
    char link[64], name[4096], faulty[16];
    int error = 0;
    if (!folder || !path || access(path, F_OK) != 0)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, name, sizeof name - 1);
    if (length < 0)
        return 0;
    name[length] = 0;
    if (strncmp(name, folder, strlen(folder)) != 0)
        return 0;
    FILE *text = fopen(path, "re");
    if (!text)
        return 0;
    int is_complete = fscanf(text, "%15s %d", faulty, &error) == 2;
    fclose(text);
    int is_table = length > 4 && strcmp(name + length - 4, ".sst") == 0;
    if (strcmp(faulty, "table") == 0 && is_table)
        strcpy(faulty, "write");
    return is_complete && strcmp(faulty, kind) == 0 ? error : 0;
}

#define INJECT(kind, result, name, arguments, ...)                      \
    result name arguments {                                             \
        static result(*original) arguments;                             \
        int error = fault(kind, file);                                  \
        if (error) {                                                    \
            errno = error;                                              \
            return -1;                                                  \
        }                                                               \
        if (!original)                                                  \
            original = (result(*) arguments)dlsym(RTLD_NEXT, #name);    \
        return original(__VA_ARGS__);                                   \
    }

INJECT("write", ssize_t, write, (int file, const void *bytes, size_t count), file, bytes, count)
INJECT("write", ssize_t, pwrite, (int file, const void *bytes, size_t count, off_t at), file, bytes, count, at)
INJECT("write", ssize_t, pwrite64, (int file, const void *bytes, size_t count, off64_t at), file, bytes, count, at)
INJECT("sync", int, fsync, (int file), file)
INJECT("sync", int, fdatasync, (int file), file)
