// Forks processes that end at once and waits for each, for a time, and prints how many a second.
//
//   fork plain|calls|session SECONDS
//
// plain: the child leaves at once, as in `spawn`. calls: before that it makes the system calls that a child of stress-ng
// 0.15 makes, but not setsid. session: it makes that too.
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_s(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC_RAW, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void call(int session)
{
	pid_t self = getpid(), group = getpgid(self);

	if (session)
		setsid();
	syscall(SYS_vhangup);
	// These fail for the leader of a session, and the last two for anyone.
	if (setpgid(0, 0) | setpgid(self, group) | setpgid(0, -1) | setpgid(-1, 0))
		sched_yield();
	prctl(PR_SET_NAME, "fork");
}

int main(int argc, char **argv)
{
	int session = argc == 3 && strcmp(argv[1], "session") == 0;
	int calls = session || (argc == 3 && strcmp(argv[1], "calls") == 0);
	double start_s = now_s(), end_s = start_s;
	long forks = 0;

	if (argc != 3)
		return 2;
	for (; end_s - start_s < atof(argv[2]); forks++) {
		int status = 1;
		pid_t child = fork();

		if (child == 0) {
			if (calls)
				call(session);
			_exit(0);
		}
		if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
			return 1;
		end_s = now_s();
	}
	printf("%.2f\n", (double)forks / (end_s - start_s));
	return 0;
}
