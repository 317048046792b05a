// What the C library's syscall() costs beside the bare instruction: a futex wait that never matches, both ways in turn.
// With an argument: nanoseconds of a bare one, as the one figure, to set beside those of kduel's futex-hash.
#define _GNU_SOURCE
#include <linux/futex.h>
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

// Nanoseconds of a bare call.
static double bare_call_ns(void) {
    double start = now_ns();
    for (int i = 0; i < CALLS; i++)
        bare(&futexes[i % FUTEXES]);
    return (now_ns() - start) / CALLS;
}

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1) {
        printf("%.2f\n", bare_call_ns());
        return 0;
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
    return 0;
}
