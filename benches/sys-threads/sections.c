// The section of sys-threads with one thread in C: a pthread mutex is taken, the CPU is given up, the mutex is released. The
// yield goes through the C library, as sysbench's does, or is the bare instruction (x86-64), as in kduel. Prints the
// nanoseconds per section.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

enum { SECTIONS = 1000000 };

static double now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC_RAW, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static inline void bare_yield(void) {
    long result;
    asm volatile("syscall" : "=a"(result) : "a"(SYS_sched_yield) : "rcx", "r11", "memory");
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned long count;
static int bare;

static void *work(void *unused) {
    double start = now_ns();
    if (bare) {
        for (int i = 0; i < SECTIONS; i++) {
            pthread_mutex_lock(&mutex);
            count++;
            bare_yield();
            pthread_mutex_unlock(&mutex);
        }
    } else {
        for (int i = 0; i < SECTIONS; i++) {
            pthread_mutex_lock(&mutex);
            count++;
            sched_yield();
            pthread_mutex_unlock(&mutex);
        }
    }
    printf("%.2f\n", (now_ns() - start) / SECTIONS);
    return unused;
}

int main(int argc, char **argv) {
    bare = argc > 1 && !strcmp(argv[1], "bare");
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL) || pthread_join(thread, NULL))
        return 1;
    return count != SECTIONS;
}
