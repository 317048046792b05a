// What the C library's syscall() costs beside the bare instruction: a futex wait that never matches, both ways in turn.
// With an argument: nanoseconds of a bare one, as the one figure, to set beside those of kduel's futex-hash. All calls are
// made by a second thread that is pinned, as in futex-hash: the kernel gives a process that has threads futex buckets of
// its own.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { CALLS = 2000000, ROUNDS = 7, FUTEXES = 1024, EXPECTED = 1234 };

static uint32_t futexes[FUTEXES];

static double now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC_RAW, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static inline long bare(uint32_t *word) {
    register long timeout asm("r10") = 0;
    long result;
    asm volatile("syscall"
                 : "=a"(result)
                 : "a"(SYS_futex), "D"(word), "S"(FUTEX_WAIT | FUTEX_PRIVATE_FLAG), "d"(EXPECTED), "r"(timeout)
                 : "rcx", "r11", "memory");
    return result;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static long odd;

// Nanoseconds of a bare call, whose result is compared and counted as futex-hash does.
static double bare_call_ns(void) {
    double start = now_ns();
    for (int i = 0; i < CALLS; i++)
        odd += bare(&futexes[i % FUTEXES]) != -EAGAIN;
    return (now_ns() - start) / CALLS;
}

static void *measure(void *one_figure) {
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    sched_setaffinity(0, sizeof first, &first);
    if (one_figure) {
        printf("%.2f\n", bare_call_ns());
        return NULL;
    }
    double library_ns[ROUNDS], bare_ns[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        double start = now_ns();
        for (int i = 0; i < CALLS; i++)
            syscall(SYS_futex, &futexes[i % FUTEXES], FUTEX_WAIT | FUTEX_PRIVATE_FLAG, EXPECTED, NULL, NULL, 0);
        library_ns[round] = (now_ns() - start) / CALLS;
        bare_ns[round] = bare_call_ns();
    }
    qsort(library_ns, ROUNDS, sizeof *library_ns, compare);
    qsort(bare_ns, ROUNDS, sizeof *bare_ns, compare);
    double library = library_ns[ROUNDS / 2], inlined = bare_ns[ROUNDS / 2];
    printf("through syscall(): %.1f ns, inlined: %.1f ns, ratio %.3f (medians of %d x %d calls)\n", library, inlined,
           library / inlined, ROUNDS, CALLS);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, measure, argc > 1 ? argv : NULL) || pthread_join(thread, NULL))
        return 1;
    return odd != 0;
}
