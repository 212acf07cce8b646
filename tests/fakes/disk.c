/* A disk that fills up or fails: preloaded, for files below STEPSCOPE_FAKE_DISK only.
 *
 * The plan is read anew at every call from the file named by STEPSCOPE_FAKE_DISK_PLAN:
 *   room N         N bytes in all may be written behind the ends of files, then ENOSPC
 *   fail K C ERRNO the calls K to K + C - 1 that change a file fail (counted from 1, in this process)
 * An empty plan is a good disk. Whatever else stands there ends the process.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static long long used;
static long calls;

static int inside(const char *path) {
    const char *folder = getenv("STEPSCOPE_FAKE_DISK");
    size_t n = folder ? strlen(folder) : 0;
    return n && strncmp(path, folder, n) == 0 && path[n] == '/';
}

static int fd_inside(int fd) {
    char link[64], path[PATH_MAX];
    int kept = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    errno = kept;
    if (n <= 0) return 0;
    path[n] = 0;
    return inside(path);
}

/* 0, or the error of a call that makes a file longer by `growth` bytes. */
static int refused(long long growth) {
    const char *plan = getenv("STEPSCOPE_FAKE_DISK_PLAN");
    char text[256] = "";
    long long room;
    long first, count;
    int code, kept = errno, fd = plan ? open(plan, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        ssize_t n = read(fd, text, sizeof text - 1);
        text[n > 0 ? n : 0] = 0;
        close(fd);
    }
    errno = kept;
    calls++;
    if (!text[0] || text[0] == '\n') return 0;
    if (sscanf(text, "room %lld", &room) == 1) {
        if (growth > 0 && used + growth > room) return ENOSPC;
        used += growth > 0 ? growth : 0;
        return 0;
    }
    if (sscanf(text, "fail %ld %ld %d", &first, &count, &code) == 3)
        return calls >= first && calls < first + count ? code : 0;
    _exit(99);
}

static int denied(int fd, long long end) {
    struct stat about;
    if (!fd_inside(fd) || fstat(fd, &about) || !S_ISREG(about.st_mode)) return 0;
    int code = refused(end < 0 ? 0 : end - about.st_size);
    if (code) errno = code;
    return code;
}

#define NEXT(type, name, ...) ((type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name))

ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at) {
    return denied(fd, at + n) ? -1 : NEXT(ssize_t, "pwrite64", int, const void *, size_t, off64_t)(fd, data, n, at);
}
ssize_t pwrite(int fd, const void *data, size_t n, off_t at) {
    return denied(fd, at + n) ? -1 : NEXT(ssize_t, "pwrite", int, const void *, size_t, off_t)(fd, data, n, at);
}
ssize_t write(int fd, const void *data, size_t n) {
    struct stat about;
    long long end = fstat(fd, &about) ? 0 : about.st_size + (long long)n;
    return denied(fd, end) ? -1 : NEXT(ssize_t, "write", int, const void *, size_t)(fd, data, n);
}
int ftruncate64(int fd, off64_t n) {
    return denied(fd, -1) ? -1 : NEXT(int, "ftruncate64", int, off64_t)(fd, n);
}
int ftruncate(int fd, off_t n) {
    return denied(fd, -1) ? -1 : NEXT(int, "ftruncate", int, off_t)(fd, n);
}
int fsync(int fd) {
    return denied(fd, -1) ? -1 : NEXT(int, "fsync", int)(fd);
}
int fdatasync(int fd) {
    return denied(fd, -1) ? -1 : NEXT(int, "fdatasync", int)(fd);
}

static int opening(const char *name, const char *path, int flags, int mode) {
    if ((flags & O_CREAT) && inside(path) && access(path, F_OK)) {
        int code = refused(1);
        if (code) {
            errno = code;
            return -1;
        }
    }
    return NEXT(int, name, const char *, int, ...)(path, flags, mode);
}

#define OPEN(name)                                        \
    int name(const char *path, int flags, ...) {          \
        int mode = 0;                                     \
        if (flags & (O_CREAT | O_TMPFILE)) {              \
            va_list more;                                 \
            va_start(more, flags);                        \
            mode = va_arg(more, int);                     \
            va_end(more);                                 \
        }                                                 \
        return opening(#name, path, flags, mode);         \
    }

OPEN(open)
OPEN(open64)
