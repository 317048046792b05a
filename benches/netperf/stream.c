/* Sends blocks of 128 KiB over a loopback connection for a second, from one process to another, and prints how many bytes
 * arrived. With the argument `pselect` each side asks first whether it may, as iperf3 does: the sender before ten blocks,
 * the receiver before each. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 131072 };

static char block[BLOCK];

static void need(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void ask(int fd, int to_write)
{
	fd_set set;
	FD_ZERO(&set);
	FD_SET(fd, &set);
	struct timespec second = { 1, 0 };
	need(pselect(fd + 1, to_write ? NULL : &set, to_write ? &set : NULL, NULL, &second, NULL) >= 0, "pselect");
}

static void send_for_a_second(const struct sockaddr_in *to, int select)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	need(fd >= 0 && connect(fd, (const void *)to, sizeof *to) == 0, "connect");
	double end = now() + 1;
	for (int i = 0; now() < end; i++) {
		if (select && i % 10 == 0)
			ask(fd, 1);
		need(send(fd, block, BLOCK, 0) == BLOCK, "send");
	}
	exit(0);
}

int main(int argc, char **argv)
{
	int select = argc > 1 && strcmp(argv[1], "pselect") == 0;
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof address;
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	need(bind(listener, (void *)&address, length) == 0 && listen(listener, 1) == 0, "listen");
	need(getsockname(listener, (void *)&address, &length) == 0, "getsockname");
	if (fork() == 0)
		send_for_a_second(&address, select);
	int fd = accept(listener, NULL, NULL);
	need(fd >= 0, "accept");
	long long bytes = 0;
	for (;;) {
		if (select)
			ask(fd, 0);
		ssize_t got = recv(fd, block, BLOCK, 0);
		need(got >= 0, "recv");
		if (got == 0)
			break;
		bytes += got;
	}
	int status;
	wait(&status);
	printf("%lld\n", bytes);
	return status != 0;
}
