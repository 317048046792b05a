/*
 * The loops of some workloads that count for a time, in C: a process does the work and counts in shared memory, and its
 * parent reads the counter twice, SECONDS apart, and kills it. Prints the operations per second.
 *
 *   gcc -O2 -o loops loops.c && ./loops LOOP SECONDS
 *
 * LOOP is the name of a workload. `exec-loop` here is a program that executes itself, as that of UnixBench does, and not
 * a chain of env.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t *count;

static void need(int holds, const char *what)
{
	if (!holds) {
		perror(what);
		exit(1);
	}
}

static void pthread_mutex2(void)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

	for (;;) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
		++*count;
	}
}

static void futex3(void)
{
	for (;;) {
		uint32_t word = 0;

		need(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 0, "futex");
		++*count;
	}
}

static void page_fault1(void)
{
	const size_t bytes = 128 << 20, page = (size_t)getpagesize();

	for (;;) {
		char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		need(memory != MAP_FAILED, "mmap");
		for (size_t place = 0; place < bytes; place += page) {
			memory[place] = 0;
			++*count;
		}
		munmap(memory, bytes);
	}
}

static void pipe_of(size_t bytes)
{
	char *buffer = calloc(1, bytes);
	int ends[2];

	need(pipe(ends) == 0, "pipe");
	for (;;) {
		need(write(ends[1], buffer, bytes) == (ssize_t)bytes, "write");
		need(read(ends[0], buffer, bytes) == (ssize_t)bytes, "read");
		++*count;
	}
}

static void pipe1(void)
{
	pipe_of(1);
}

static void pipe_throughput(void)
{
	pipe_of(512);
}

static void syscall_mix(void)
{
	for (;;) {
		close(dup(0));
		syscall(SYS_getpid);
		getuid();
		umask(022);
		++*count;
	}
}

static void spawn(void)
{
	for (;;) {
		int status = 1;
		pid_t child = fork();

		if (child == 0)
			_exit(0);
		need(waitpid(child, &status, 0) == child && status == 0, "waitpid");
		++*count;
	}
}

static void context(void)
{
	int there[2], back[2];
	uint64_t number = 0, answer;

	need(pipe(there) == 0 && pipe(back) == 0, "pipe");
	if (fork() == 0) {
		close(there[1]);
		while (read(there[0], &number, 8) == 8 && write(back[1], &number, 8) == 8)
			;
		_exit(0);
	}
	for (;; number++) {
		need(write(there[1], &number, 8) == 8, "write");
		need(read(back[0], &answer, 8) == 8 && answer == number, "read");
		++*count;
	}
}

/* The counter is in a file, as memory does not outlive the program. */
static void exec_loop(const char *self, const char *counter)
{
	int file = open(counter, O_RDWR);

	count = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	need(count != MAP_FAILED, "mmap");
	close(file);
	++*count;
	execl(self, self, "exec-loop", "again", counter, NULL);
	need(0, "execl");
}

static double now_s(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC_RAW, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} loops[] = {
		{ "scale-pthread_mutex2", pthread_mutex2 }, { "scale-futex3", futex3 },
		{ "scale-page_fault1", page_fault1 },	    { "scale-pipe1", pipe1 },
		{ "pipe-throughput", pipe_throughput },	    { "syscall-mix", syscall_mix },
		{ "spawn", spawn },			    { "context", context },
	};
	char counter[] = "/dev/shm/loops.XXXXXX";
	double start_s, end_s;
	uint64_t start, end;
	pid_t child;
	int file;

	if (argc == 4)
		exec_loop(argv[0], argv[3]);
	need(argc == 3, "usage: loops LOOP SECONDS");
	file = mkstemp(counter);
	need(file >= 0 && ftruncate(file, 4096) == 0, "mkstemp");
	count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	need(count != MAP_FAILED, "mmap");
	child = fork();
	if (child == 0) {
		for (size_t i = 0; i < sizeof(loops) / sizeof(*loops); i++)
			if (strcmp(argv[1], loops[i].name) == 0)
				loops[i].run();
		if (strcmp(argv[1], "exec-loop") == 0)
			exec_loop(argv[0], counter);
		_exit(1);
	}
	usleep(100000);
	start_s = now_s();
	start = *(volatile uint64_t *)count;
	usleep((useconds_t)(atof(argv[2]) * 1e6));
	end_s = now_s();
	end = *(volatile uint64_t *)count;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	unlink(counter);
	printf("%.0f\n", (double)(end - start) / (end_s - start_s));
	return 0;
}
