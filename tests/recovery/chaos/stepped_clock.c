/* Preloaded into a process: its clock is ahead of the machine's by the milliseconds in the file $STEPPED_CLOCK.
   The monotonic clock stays as it is, as when an operator or NTP steps a machine's clock. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t *ahead_ms;

__attribute__((constructor)) static void map_file(void) {
    const char *name = getenv("STEPPED_CLOCK");
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED) ahead_ms = mapped;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && ahead_ms && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t ns = (int64_t)now->tv_sec * 1000000000 + now->tv_nsec + *ahead_ms * 1000000;
        now->tv_sec = ns / 1000000000;
        now->tv_nsec = ns % 1000000000;
    }
    return result;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec time;
    (void)zone;
    int result = clock_gettime(CLOCK_REALTIME, &time);
    now->tv_sec = time.tv_sec;
    now->tv_usec = time.tv_nsec / 1000;
    return result;
}

time_t time(time_t *seconds) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (seconds) *seconds = now.tv_sec;
    return now.tv_sec;
}

int timespec_get(struct timespec *now, int base) {
    return base == TIME_UTC && clock_gettime(CLOCK_REALTIME, now) == 0 ? base : 0;
}

/* A wait for a time of day ends when this clock shows it, however the clock is stepped meanwhile. The kernel knows nothing
   of the steps, so a long wait is cut into short ones: the caller finds that nothing has happened, and waits again. */
enum { SLICE_NS = 100000000, WAITS_FOR_MONOTONIC = 2 };

/* Sets the end of the next slice by the machine's clock; returns how long the whole wait has left, ns. */
static int64_t next_slice(const struct timespec *until, struct timespec *slice) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t left = (int64_t)(until->tv_sec - now.tv_sec) * 1000000000 + until->tv_nsec - now.tv_nsec;
    syscall(SYS_clock_gettime, CLOCK_REALTIME, slice);
    int64_t end = slice->tv_nsec + (left < 0 ? 0 : left < SLICE_NS ? left : SLICE_NS);
    slice->tv_sec += end / 1000000000;
    slice->tv_nsec = end % 1000000000;
    return left;
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until) {
    static int (*wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    if (!wait) wait = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    /* Since glibc 2.25, this bit says which clock the condition was made for. */
    if (!ahead_ms || condition->__data.__wrefs & WAITS_FOR_MONOTONIC) return wait(condition, mutex, until);
    struct timespec slice;
    int64_t left = next_slice(until, &slice);
    int result = wait(condition, mutex, &slice);
    return result == ETIMEDOUT && left > SLICE_NS ? 0 : result;
}

int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const struct timespec *until) {
    static int (*wait)(cnd_t *, mtx_t *, const struct timespec *);
    if (!wait) wait = dlsym(RTLD_NEXT, "cnd_timedwait");
    if (!ahead_ms) return wait(condition, mutex, until);
    struct timespec slice;
    int64_t left = next_slice(until, &slice);
    int result = wait(condition, mutex, &slice);
    return result == thrd_timedout && left > SLICE_NS ? thrd_success : result;
}
