#!/bin/bash
# From nothing to the first sample in a virtual machine: kduel's beside virtme-ng's, the same kernel, CPUs, memory and
# emulation, in turn, ROUNDS times. Either way kduel runs one short trial of `sched-pipe` in the guest; under virtme-ng it
# is started by its script there, on the host's files. Prints the seconds of every round and the ratio of the medians.
#
#   benches/boot/run.sh [ROUNDS [RELEASE [CPUS]]]
#
# RELEASE is a kernel in /boot with its modules in /lib/modules, such as Debian's linux-image-amd64: virtme-ng needs 9p or
# virtiofs, which kernels for clouds do not have. virtme-ng comes from pip (python3 -m pip install virtme-ng) and wants
# busybox and kmod. ACCEL=kvm measures with KVM; the default, tcg, emulates.
set -euo pipefail

rounds=${1:-5}
release=${2:-$(basename "$(ls -d /lib/modules/*/ | tail -1)")}
cpus=${3:-2}
accel=${ACCEL:-tcg}
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export KDUEL_HOME=$scratch/home

command -v vng >/dev/null || { echo "virtme-ng is not installed: python3 -m pip install virtme-ng" >&2; exit 1; }
[ -e "/boot/vmlinuz-$release" ] || { echo "there is no /boot/vmlinuz-$release" >&2; exit 1; }
cd "$here/../.."
cargo build --release --quiet
kduel=$(realpath "${CARGO_TARGET_DIR:-target}/release/kduel")
trial=(run sched-pipe --points 1 --blocks 1 --no-aa --variant a --set loops=200 --set settle=0)
no_kvm=()
[ "$accel" = kvm ] || no_kvm=(--disable-kvm)

# kduel's machine: from the order to boot, as its journal has it, to the end of the first trial.
ours() {
    "$kduel" "${trial[@]}" --out "$scratch/run" --target vm --set "kernel=/boot/vmlinuz-$release" \
        --set "vm.cpus=$cpus" --set vm.memory=1024 --set "vm.accel=$accel" >/dev/null 2>&1 || true
    python3 - "$scratch/run/journal.jsonl" <<'PYTHON' || echo failed
import json, sys
records = [json.loads(line)["record"] for line in open(sys.argv[1])]
boot = next(r for r in records if r["kind"] == "boot" and r["block"] == 1)
trial = next(r for r in records if r["kind"] == "trial" and r["outcome"]["state"] == "done")
print((trial["at_unix_ms"] - boot["at_unix_ms"]) / 1e3 + trial["elapsed_ns"] / 1e9)
PYTHON
    rm -rf "$scratch/run"
}

# virtme-ng's: from its start to the report in which the sample stands.
theirs() {
    cat >"$scratch/inside" <<INSIDE
KDUEL_HOME=/tmp/home $kduel ${trial[*]}
INSIDE
    python3 - "$scratch/inside" "$release" "$cpus" "${no_kvm[@]}" <<'PYTHON'
import subprocess, sys, time
script, release, cpus, *more = sys.argv[1:]
began = time.monotonic()
vng = ["vng", *more, "--cpus", cpus, "--memory", "1G", "--run", release, "--", "sh", script]
guest = subprocess.Popen(vng, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)
for line in guest.stdout:
    if "Absolute, ops/s" in line:
        print(time.monotonic() - began)
        break
else:
    print("failed")
guest.communicate()
PYTHON
}

echo "round  kduel s  virtme-ng s"
for round in $(seq "$rounds"); do
    ours >>"$scratch/ours"
    theirs >>"$scratch/theirs"
    printf '%5d  %7.7s  %11.7s\n' "$round" "$(tail -1 "$scratch/ours")" "$(tail -1 "$scratch/theirs")"
done
# Of those that did not fail; an emulated kernel dies now and then.
median() { grep -v failed "$1" | sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
echo "$(median "$scratch/ours") $(median "$scratch/theirs")" | awk -v release="$release" -v cpus="$cpus" -v accel="$accel" \
    '{ printf "medians: kduel %.2f s, virtme-ng %.2f s, ratio %.2f (%s, %s CPUs, %s)\n", $1, $2, $2 / $1, release, cpus, accel }'
