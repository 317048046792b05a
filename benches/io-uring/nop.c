// The loop of `io-uring target=nop` in C, with the bare system calls: a ring of DEPTH with the same set-up flags, BATCH
// operations that do nothing per call, every completion taken. Prints operations per second over the seconds given.
#define _GNU_SOURCE
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH = 128, BATCH = 32, NO_SQARRAY = 1 << 16 };

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC_RAW, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static char *map(int fd, size_t bytes, off_t where) {
    void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, where);
    if (start == MAP_FAILED) fail("mmap");
    return start;
}

int main(int argc, char **argv) {
    uint64_t runtime_ns = (argc > 1 ? atof(argv[1]) : 1) * 1e9;
    struct io_uring_params params = {
        .cq_entries = DEPTH,
        .flags = IORING_SETUP_CQSIZE | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_SINGLE_ISSUER |
                 IORING_SETUP_DEFER_TASKRUN | NO_SQARRAY,
    };
    int fd = syscall(SYS_io_uring_setup, DEPTH, &params);
    if (fd < 0) fail("io_uring_setup (needs Linux 6.6)");
    size_t ring_bytes = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
    char *ring = map(fd, ring_bytes, IORING_OFF_SQ_RING);
    struct io_uring_sqe *sqes = (void *)map(fd, params.sq_entries * sizeof *sqes, IORING_OFF_SQES);
    struct io_uring_cqe *cqes = (void *)(ring + params.cq_off.cqes);
    _Atomic uint32_t *sq_tail = (void *)(ring + params.sq_off.tail), *cq_head = (void *)(ring + params.cq_off.head),
                     *cq_tail = (void *)(ring + params.cq_off.tail);
    uint32_t sq_mask = params.sq_entries - 1, cq_mask = params.cq_entries - 1;
    struct io_uring_rsrc_update update = {.offset = -1u, .data = fd};
    if (syscall(SYS_io_uring_register, fd, IORING_REGISTER_RING_FDS, &update, 1) != 1) fail("io_uring_register");

    uint64_t sent = 0, back = 0, tags_sent = 0, tags_back = 0, start = now_ns(), end = start;
    while (end < start + runtime_ns) {
        // The clock is looked at once in 32,000 operations.
        for (int round = 0; round < 1000; round++) {
            uint32_t tail = atomic_load_explicit(sq_tail, memory_order_relaxed);
            for (int i = 0; i < BATCH; i++, tail++) {
                struct io_uring_sqe *sqe = &sqes[tail & sq_mask];
                memset(sqe, 0, sizeof *sqe);
                sqe->opcode = IORING_OP_NOP;
                sqe->fd = -1;
                sqe->user_data = sent + i;
                tags_sent += sent + i;
            }
            atomic_store_explicit(sq_tail, tail, memory_order_release);
            long accepted = syscall(SYS_io_uring_enter, update.offset, BATCH, 0, IORING_ENTER_REGISTERED_RING, NULL, 0);
            if (accepted != BATCH) fail("io_uring_enter");
            sent += accepted;
            uint32_t head = atomic_load_explicit(cq_head, memory_order_relaxed),
                     done = atomic_load_explicit(cq_tail, memory_order_acquire);
            for (; head != done; head++, back++) {
                tags_back += cqes[head & cq_mask].user_data;
                if (cqes[head & cq_mask].res != 0) fail("an operation");
            }
            atomic_store_explicit(cq_head, head, memory_order_release);
        }
        end = now_ns();
    }
    if (sent != back || tags_sent != tags_back) {
        fprintf(stderr, "the work did not add up\n");
        return 1;
    }
    printf("%.0f\n", sent * 1e9 / (end - start));
}
