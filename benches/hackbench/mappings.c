// Preloaded into hackbench: gives it as many mappings, and as much memory of its own, as `perf bench` has, which each of
// its processes then inherits at its start and tears down at its end. MAPPINGS and KIB say how many.
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

__attribute__((constructor)) static void map(void)
{
	const char *mappings = getenv("MAPPINGS"), *kib = getenv("KIB");
	long page = sysconf(_SC_PAGESIZE);
	int count = mappings ? atoi(mappings) : 0;
	long bytes = count ? (kib ? atol(kib) : 0) * 1024 / count / page * page : 0;

	// Neighbours of different rights do not become one mapping.
	for (int i = 0; i < count; i++) {
		char *start = mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (start == MAP_FAILED)
			exit(3);
		memset(start, 1, bytes + page);
		if (i % 2)
			mprotect(start, bytes + page, PROT_READ);
	}
}
