#!/bin/bash
# Why kduel's tbench is faster than dbench's: what the original's client does for each operation besides the messages.
# One client replays client.txt, in turn: kduel's, the original, the original without its kill() for each operation, and
# the original without kill() and without any network, which leaves reading and taking apart the text, and the clock.
# Prints the median and the least of the microseconds per operation for each. Port 7003 must be free.
#
#   benches/tbench/run.sh [ROUNDS [SECONDS]]            by default 5 rounds of four times 4 seconds, without a warm-up
set -euo pipefail

rounds=${1:-5}
seconds=${2:-4}
load=/usr/share/dbench/client.txt
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$scratch"' EXIT

gcc -O2 -Wall -shared -fPIC -o "$scratch/preload.so" "$here/preload.c" -ldl
cd "$here/../.."
cargo build --release --quiet --package kduel-workloads --example trial
trial=${CARGO_TARGET_DIR:-target}/release/examples/trial
tbench_srv >"$scratch/server" 2>&1 &
server=$!

# Microseconds per operation, from the table of operations that tbench prints for its SECONDS.
original() {
    LD_PRELOAD=$scratch/preload.so TBENCH_WITHOUT=$1 tbench -c "$load" -t "$seconds" 1 127.0.0.1 |
        awk -v seconds="$seconds" 'NF == 4 && $4 ~ /^[0-9.]+$/ { count += $2 } END { print seconds * 1e6 / count }'
}

for _ in $(seq "$rounds"); do
    "$trial" tbench 1 "loadfile=$load" "runtime=$seconds" |
        sed 's/.*"rate":\[\([^]]*\)\].*/\1/' | awk '{ print 1e6 / $1 }' >>"$scratch/kduel"
    original "" >>"$scratch/original"
    original kill >>"$scratch/without-kill"
    original kill,network >>"$scratch/without-both"
done

# The middle and the least of the numbers of a file.
summary() {
    sort -g "$scratch/$1" |
        awk '{ v[NR] = $1 } END { m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2; print m, v[1] }'
}
printf '%-36s %9s %9s\n' "us per operation" median least
while read -r file what; do
    printf '%-36s %9.2f %9.2f\n' "$what" $(summary "$file")
done <<END
kduel kduel
original tbench
without-kill tbench without kill()
without-both tbench without kill() and network
END
