// futex-wake-parallel in C: THREADS wait for one futex, each on a CPU of its own turn; WAKERS meet at a barrier and wake an equal
// share of them with one call each. Prints the mean milliseconds of a call over REPEAT runs. Waiters are bound to their CPU
// `before` they run or bind `themselves`; all threads end by `return` or by pthread_exit(), `exit`.
//
//   wake THREADS WAKERS REPEAT STACK_BYTES before|themselves return|exit
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static unsigned word __attribute__((aligned(128)));
static long share;
static int binds_itself, ends_by_exit, cpus;
static pthread_barrier_t asleep, together;

static long futex(int operation, long value) {
    return syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static double now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

static void *end(void) {
    if (ends_by_exit) pthread_exit(NULL);
    return NULL;
}

static void set_of(cpu_set_t *one, int cpu) {
    CPU_ZERO(one);
    CPU_SET(cpu, one);
}

static void *wait_for_word(void *index) {
    if (binds_itself) {
        cpu_set_t one;
        set_of(&one, (long)index % cpus);
        sched_setaffinity(0, sizeof one, &one);
    }
    pthread_barrier_wait(&asleep);
    futex(FUTEX_WAIT, 0);
    return end();
}

static void *wake_share(void *took_ms) {
    pthread_barrier_wait(&together);
    double start = now_ms();
    long woken = futex(FUTEX_WAKE, share);
    *(double *)took_ms = now_ms() - start;
    if (woken != share) {
        fprintf(stderr, "woke %ld of %ld\n", woken, share);
        exit(1);
    }
    return end();
}

static pthread_t start(size_t stack_bytes, int cpu, void *(*body)(void *), void *of) {
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack_bytes);
    if (cpu >= 0) {
        cpu_set_t one;
        set_of(&one, cpu);
        pthread_attr_setaffinity_np(&attributes, sizeof one, &one);
    }
    if (pthread_create(&thread, &attributes, body, of)) abort();
    pthread_attr_destroy(&attributes);
    return thread;
}

int main(int count, char **words) {
    if (count != 7) return 2;
    int threads = atoi(words[1]), wakers = atoi(words[2]), repeat = atoi(words[3]);
    size_t stack_bytes = atol(words[4]);
    binds_itself = !strcmp(words[5], "themselves");
    ends_by_exit = !strcmp(words[6], "exit");
    cpus = sysconf(_SC_NPROCESSORS_ONLN);
    pthread_t *waiting = calloc(threads, sizeof *waiting), *waking = calloc(wakers, sizeof *waking);
    double *took_ms = calloc(wakers, sizeof *took_ms), total_ms = 0;
    share = threads / wakers;
    for (int run = 0; run < repeat; run++) {
        pthread_barrier_init(&asleep, NULL, threads + 1);
        pthread_barrier_init(&together, NULL, wakers + 1);
        for (int i = 0; i < threads; i++) waiting[i] = start(stack_bytes, binds_itself ? -1 : i % cpus, wait_for_word, (void *)(long)i);
        pthread_barrier_wait(&asleep);
        usleep(100000);
        for (int i = 0; i < wakers; i++) waking[i] = start(stack_bytes, -1, wake_share, &took_ms[i]);
        pthread_barrier_wait(&together);
        for (int i = 0; i < wakers; i++) pthread_join(waking[i], NULL);
        for (int i = 0; i < threads; i++) pthread_join(waiting[i], NULL);
        for (int i = 0; i < wakers; i++) total_ms += took_ms[i] / wakers;
    }
    printf("%.5f\n", total_ms / repeat);
}
