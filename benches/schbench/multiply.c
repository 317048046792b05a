/* What a request of schbench computes, by hand: three square matrices of 8-byte numbers that take KIB together, of which
 * two are never written, multiplied OPERATIONS times per request for SECONDS. Prints the median request in microseconds.
 *
 *   multiply KIB OPERATIONS SECONDS */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_us(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC_RAW, &time);
	return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

__attribute__((noinline)) static void multiply(size_t side, const unsigned long *left, const unsigned long *right,
					       unsigned long *product)
{
	for (size_t row = 0; row < side; row++)
		for (size_t column = 0; column < side; column++) {
			unsigned long *cell = product + row * side + column;
			*cell = 0;
			for (size_t step = 0; step < side; step++)
				*cell += left[row * side + step] * right[step * side + column];
		}
}

static int ascending(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;
	return (left > right) - (left < right);
}

int main(int count, char **arguments)
{
	if (count != 4)
		return 2;
	size_t side = sqrt(atof(arguments[1]) * 1024 / 3 / sizeof(unsigned long));
	int operations = atoi(arguments[2]);
	double end_us = now_us() + atof(arguments[3]) * 1e6;
	unsigned long *cells = malloc(3 * side * side * sizeof *cells);
	size_t done = 0, room = 1 << 20;
	double *times = malloc(room * sizeof *times);
	if (!cells || !times)
		return 1;
	while (done < room && now_us() < end_us) {
		double start = now_us();
		for (int i = 0; i < operations; i++)
			multiply(side, cells, cells + side * side, cells + 2 * side * side);
		times[done++] = now_us() - start;
	}
	qsort(times, done, sizeof *times, ascending);
	printf("%.1f\n", times[done / 2]);
	return 0;
}
