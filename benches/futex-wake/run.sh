#!/bin/bash
# What the end of the woken threads adds to the time of the waker: perf as it is, and perf whose threads end by the bare
# system call, in turn.
set -euo pipefail
cd "$(dirname "$0")"
threads=${1:-32}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
gcc -O2 -shared -fPIC -o "$out/bare_exit.so" bare_exit.c -ldl

mean_ms() { # the summary line of perf bench futex wake
    "$@" perf bench --repeat=10 futex wake --silent --threads="$threads" 2> /dev/null |
        sed -n 's/.* threads in \([0-9.]*\) ms.*/\1/p' | tail -1
}
for _ in $(seq 15); do
    mean_ms env >> "$out/usual"
    mean_ms env LD_PRELOAD="$out/bare_exit.so" >> "$out/bare"
done
median() { sort -n "$1" | sed -n 8p; }
usual=$(median "$out/usual")
bare=$(median "$out/bare")
echo "$threads threads, median of 15: perf as it is $usual ms, its threads ended by the bare system call $bare ms"
