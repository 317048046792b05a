/*
 * The loop of `global-lock lock=tas count=split layout=same`, in C: THREADS threads behind a gate, each doing its
 * share of TOTAL sections of "lock, add one, unlock" under a trylock-and-pause spin lock. Prints the seconds from the
 * opening of the gate to the last thread's finish.
 *
 *   gcc -O2 -pthread -o tas tas.c && ./tas THREADS TOTAL
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct {
	int lock;
	uint64_t count;
} shared __attribute__((aligned(128)));

static pthread_barrier_t arrived;
static pthread_mutex_t gate_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_opens = PTHREAD_COND_INITIALIZER;
static int gate_open;

struct member {
	pthread_t thread;
	uint64_t share;
	uint64_t finished_ns;
} __attribute__((aligned(128)));

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC_RAW, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static inline void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#endif
}

static void __attribute__((noinline)) contend(uint64_t share)
{
	for (uint64_t done = 0; done != share; done++) {
		while (__atomic_exchange_n(&shared.lock, 1, __ATOMIC_ACQUIRE))
			pause_cpu();
		shared.count++;
		__atomic_store_n(&shared.lock, 0, __ATOMIC_RELEASE);
	}
}

static void *run(void *argument)
{
	struct member *me = argument;

	pthread_barrier_wait(&arrived);
	pthread_mutex_lock(&gate_mutex);
	while (!gate_open)
		pthread_cond_wait(&gate_opens, &gate_mutex);
	pthread_mutex_unlock(&gate_mutex);
	contend(me->share);
	me->finished_ns = now_ns();
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t threads = argc == 3 ? strtoull(argv[1], NULL, 10) : 0;
	uint64_t total = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
	uint64_t opened_ns, last_ns = 0;
	struct member *members;

	if (!threads || !total) {
		fprintf(stderr, "usage: tas THREADS TOTAL\n");
		return 2;
	}
	members = aligned_alloc(128, threads * sizeof(*members));
	if (!members || pthread_barrier_init(&arrived, NULL, threads + 1))
		return 1;
	for (uint64_t i = 0; i < threads; i++) {
		members[i].share = total / threads + (i < total % threads);
		if (pthread_create(&members[i].thread, NULL, run, &members[i]))
			return 1;
	}
	pthread_barrier_wait(&arrived);
	/* Time for all of them to fall asleep at the gate, as kduel's gate has them. */
	nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	opened_ns = now_ns();
	pthread_mutex_lock(&gate_mutex);
	gate_open = 1;
	pthread_cond_broadcast(&gate_opens);
	pthread_mutex_unlock(&gate_mutex);
	for (uint64_t i = 0; i < threads; i++) {
		pthread_join(members[i].thread, NULL);
		if (members[i].finished_ns > last_ns)
			last_ns = members[i].finished_ns;
	}
	if (shared.count != total) {
		fprintf(stderr, "%llu sections were counted, not %llu\n", (unsigned long long)shared.count,
			(unsigned long long)total);
		return 1;
	}
	printf("%.9f\n", (double)(last_ns - opened_ns) / 1e9);
	return 0;
}
