/* Preloaded into a process of the bot, this is the clock of its machine: off by as much as the file says that CHAOS_CLOCK names.
   The file holds two numbers: by how many nanoseconds, and how often a clock was read that was off. CLOCK_MONOTONIC is left alone,
   as a clock that is set leaves it alone. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static struct { volatile int64_t off, readings; } *moved;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("CHAOS_CLOCK");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *map = mmap(0, sizeof *moved, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (map != MAP_FAILED) moved = map;
}

int clock_gettime(clockid_t which, struct timespec *at) {
    int failed = syscall(SYS_clock_gettime, which, at);
    if (failed || !moved || !moved->off || (which != CLOCK_REALTIME && which != CLOCK_REALTIME_COARSE)) return failed;
    int64_t now = at->tv_sec * SECOND + at->tv_nsec + moved->off;
    at->tv_sec = now / SECOND;
    at->tv_nsec = now % SECOND;
    __atomic_fetch_add(&moved->readings, 1, __ATOMIC_RELAXED);
    return 0;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    (void)zone;
    struct timespec now;
    int failed = clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return failed;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
