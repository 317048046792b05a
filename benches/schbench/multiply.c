/* What a request of schbench computes, by hand: three square matrices of 8-byte numbers that take KIB together, of which
 * two are never written, multiplied OPERATIONS times per request for SECONDS. Prints the shortest request in
 * microseconds: the others say how often it was preempted.
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

int main(int count, char **arguments)
{
	if (count != 4)
		return 2;
	size_t side = sqrt(atof(arguments[1]) * 1024 / 3 / sizeof(unsigned long));
	int operations = atoi(arguments[2]);
	double end_us = now_us() + atof(arguments[3]) * 1e6;
	unsigned long *cells = malloc(3 * side * side * sizeof *cells);
	double least_us = 1e12;
	if (!cells)
		return 1;
	while (now_us() < end_us) {
		double start = now_us();
		for (int i = 0; i < operations; i++)
			multiply(side, cells, cells + side * side, cells + 2 * side * side);
		double time_us = now_us() - start;
		if (time_us < least_us)
			least_us = time_us;
	}
	printf("%.1f\n", least_us);
	return 0;
}
