/*
 * The work of `sched-pipe` in C: two tasks, processes or threads, pass a number of 4 bytes to and fro over two pipes,
 * LOOPS times. Prints microseconds per round trip, from before the second task is made to when it has been waited for.
 *
 *   gcc -O2 -pthread -o pipe pipe.c && ./pipe process|thread LOOPS
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint32_t loops;
static int questions[2], answers[2];

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC_RAW, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void lost(uint32_t number)
{
	fprintf(stderr, "number %u was lost\n", number);
	_exit(1);
}

static void send_number(int pipe, uint32_t number)
{
	if (write(pipe, &number, sizeof(number)) != sizeof(number))
		lost(number);
}

static void receive_number(int pipe, uint32_t expected)
{
	uint32_t number;

	if (read(pipe, &number, sizeof(number)) != sizeof(number) || number != expected)
		lost(expected);
}

static void *ask_all(void *unused)
{
	for (uint32_t number = 0; number < loops; number++) {
		send_number(questions[1], number);
		receive_number(answers[0], number);
	}
	return unused;
}

static void *answer_all(void *unused)
{
	for (uint32_t number = 0; number < loops; number++) {
		receive_number(questions[0], number);
		send_number(answers[1], number);
	}
	return unused;
}

int main(int argc, char **argv)
{
	uint64_t start_ns;

	loops = argc == 3 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
	if (!loops || pipe(questions) || pipe(answers)) {
		fprintf(stderr, "usage: pipe process|thread LOOPS\n");
		return 2;
	}
	start_ns = now_ns();
	if (!strcmp(argv[1], "thread")) {
		pthread_t first, second;

		if (pthread_create(&second, NULL, answer_all, NULL) || pthread_create(&first, NULL, ask_all, NULL))
			return 1;
		pthread_join(second, NULL);
		pthread_join(first, NULL);
	} else {
		pid_t second = fork();
		int status;

		if (second < 0)
			return 1;
		if (!second) {
			answer_all(NULL);
			_exit(0);
		}
		ask_all(NULL);
		if (waitpid(second, &status, 0) != second || status)
			return 1;
	}
	printf("%.6f\n", (double)(now_ns() - start_ns) / 1e3 / loops);
	return 0;
}
