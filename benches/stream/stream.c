/*
 * The work of `stream` in C with OpenMP: four loops over three arrays of ELEMENTS doubles, ROUNDS times, the first of
 * which does not count. Prints the best rates of copy, scale, add and triad in MB/s.
 *
 *   gcc -O2 -fopenmp -DELEMENTS=10000000 -DROUNDS=10 -o stream stream.c && OMP_NUM_THREADS=2 ./stream
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

static double a[ELEMENTS], b[ELEMENTS], c[ELEMENTS];

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC_RAW, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void __attribute__((noinline)) copy(void)
{
#pragma omp parallel for
	for (long i = 0; i < ELEMENTS; i++)
		c[i] = a[i];
}

static void __attribute__((noinline)) scale(double scalar)
{
#pragma omp parallel for
	for (long i = 0; i < ELEMENTS; i++)
		b[i] = scalar * c[i];
}

static void __attribute__((noinline)) add(void)
{
#pragma omp parallel for
	for (long i = 0; i < ELEMENTS; i++)
		c[i] = a[i] + b[i];
}

static void __attribute__((noinline)) triad(double scalar)
{
#pragma omp parallel for
	for (long i = 0; i < ELEMENTS; i++)
		a[i] = b[i] + scalar * c[i];
}

static void run(int kernel)
{
	switch (kernel) {
	case 0: copy(); break;
	case 1: scale(3.0); break;
	case 2: add(); break;
	default: triad(3.0);
	}
}

int main(void)
{
	const double bytes[4] = { 16.0 * ELEMENTS, 16.0 * ELEMENTS, 24.0 * ELEMENTS, 24.0 * ELEMENTS };
	uint64_t best_ns[4] = { UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX };
	double expected[3] = { 2.0, 2.0, 0.0 };

#pragma omp parallel for
	for (long i = 0; i < ELEMENTS; i++) {
		a[i] = 1.0;
		b[i] = 2.0;
	}
	/* By itself, as gcc does it where it may call memset. */
#pragma omp parallel for
	for (long i = 0; i < ELEMENTS; i++)
		c[i] = 0.0;
#pragma omp parallel for
	for (long i = 0; i < ELEMENTS; i++)
		a[i] *= 2.0;
	for (int round = 0; round < ROUNDS; round++) {
		for (int kernel = 0; kernel < 4; kernel++) {
			uint64_t start_ns = now_ns(), time_ns;

			run(kernel);
			time_ns = now_ns() - start_ns;
			if (round && time_ns < best_ns[kernel])
				best_ns[kernel] = time_ns;
		}
		expected[2] = expected[0];
		expected[1] = 3.0 * expected[2];
		expected[2] = expected[0] + expected[1];
		expected[0] = expected[1] + 3.0 * expected[2];
	}
	for (long i = 0; i < ELEMENTS; i++) {
		if (a[i] != expected[0]) {
			fprintf(stderr, "a[%ld] is %g, not %g\n", i, a[i], expected[0]);
			return 1;
		}
	}
	for (int kernel = 0; kernel < 4; kernel++)
		printf("%.1f%c", bytes[kernel] * 1e3 / (double)best_ns[kernel], kernel == 3 ? '\n' : ' ');
	return 0;
}
