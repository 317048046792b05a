#!/bin/bash
# Why kduel's futex-hash is faster than perf's: the call through the C library beside the inlined one (x86-64).
set -euo pipefail
cd "$(dirname "$0")"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
gcc -O2 -o "$out/syscalls" syscalls.c
"$out/syscalls"
