/* Clocks that jump: preloaded. STEPSCOPE_FAKE_CLOCK names a file with two numbers, read anew at every
 * call: seconds that the wall clock is set forward by, and seconds that the machine has slept. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*next)(clockid_t, struct timespec *);
    if (!next) next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int code = next(clock, now);
    const char *name = getenv("STEPSCOPE_FAKE_CLOCK");
    char text[64] = "";
    long set = 0, slept = 0;
    int fd = name && (clock == CLOCK_REALTIME || clock == CLOCK_BOOTTIME) ? open(name, O_RDONLY) : -1;
    if (fd >= 0) {
        ssize_t n = read(fd, text, sizeof text - 1);
        text[n > 0 ? n : 0] = 0;
        close(fd);
        if (sscanf(text, "%ld %ld", &set, &slept) != 2) _exit(99);
        now->tv_sec += slept + (clock == CLOCK_REALTIME ? set : 0);
    }
    return code;
}
