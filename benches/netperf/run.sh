#!/bin/bash
# What one transaction, or one MB of a stream, costs in CPU time of client and server together: with `netperf`, with the
# originals that are on PATH (netperf with netserver, iperf3), and with a loop in C (stream.c), which can ask by pselect as
# iperf3 does. CPU time hardly depends on what else the machine does. All in turn, one second each, ROUNDS times.
# Prints the median and the least.
#
#   benches/netperf/run.sh [ROUNDS [TEST...]]
set -eu

rounds=${1:-5}
shift || true
tests=${*:-tcp_rr udp_rr tcp_crr tcp_stream udp_stream}
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
port=12997

gcc -O2 -Wall -o "$scratch/stream" "$here/stream.c"
cd "$here/../.."
cargo build --release --quiet --package kduel-workloads --example trial
trial=${CARGO_TARGET_DIR:-target}/release/examples/trial

# Streams have blocks of 128 KiB, datagrams of 16 KiB, everywhere.
block() { case $1 in tcp_stream) echo 131072 ;; *) echo 16384 ;; esac; }

ours() {
	"$trial" netperf 1 "test=$1" runtime=1 "message=$(block "$1")" >"$scratch/json"
	case $1 in
	*_stream) sed 's/.*"sent":\[\([0-9.]*\)\].*/\1/' "$scratch/json" | awk '{ print $1 / 8 }' ;;
	*) sed 's/.*"throughput":\[\([0-9.]*\)\].*/\1/' "$scratch/json" ;;
	esac
}

netperf_does() {
	netserver -D -f -4 -L 127.0.0.1 -p $port >"$scratch/netserver" &
	sleep 0.3
	case $1 in
	*_stream) set -- "$1" -f m -- -m "$(block "$1")" -M 131072 -k LOCAL_SEND_THROUGHPUT ;;
	*) set -- "$1" -- -r 100,100 -k THROUGHPUT,P50_LATENCY ;;
	esac
	netperf -4 -H 127.0.0.1 -p $port -l 1 -P 0 -t "$(echo "$1" | tr a-z A-Z)" "${@:2}" >"$scratch/netperf"
	kill $!
	wait $! || true
	awk -F= '/^LOCAL_SEND/ { print $2 / 8 } /^THROUGHPUT/ { print $2 }' "$scratch/netperf"
}

iperf3_does() {
	iperf3 -s -1 -B 127.0.0.1 -p $port >"$scratch/server" &
	sleep 0.3
	iperf3 -c 127.0.0.1 -p $port -t 1 -l "$(block "$1")" -J $([ "$1" = udp_stream ] && echo -u -b 0) >"$scratch/json"
	wait
	awk '/"sum_sent"/ { at = 1 } at && /"bytes"/ { print $2 / 1e6; exit }' "$scratch/json"
}

c() { "$scratch/stream" | awk '{ print $1 / 1e6 }'; }
c_with_pselect() { "$scratch/stream" pselect | awk '{ print $1 / 1e6 }'; }

# CPU microseconds per unit of what the function $1 does for the test $2.
cost() {
	TIMEFORMAT='%3U %3S'
	{ time "$1" "$2" >"$scratch/units"; } 2>"$scratch/cpu"
	awk 'NR == FNR { cpu = $1 + $2; next } { printf "%.3f\n", cpu / $1 * 1e6 }' "$scratch/cpu" "$scratch/units"
}

for test in $tests; do
	who=ours
	command -v netperf >/dev/null && command -v netserver >/dev/null && who="$who netperf_does"
	case $test in *_stream) command -v iperf3 >/dev/null && who="$who iperf3_does" ;; esac
	[ "$test" = tcp_stream ] && who="$who c c_with_pselect"
	for round in $(seq "$rounds"); do
		for one in $who; do cost "$one" "$test" >>"$scratch/$test-$one"; done
	done
	case $test in *_stream) unit="us/MB" ;; *) unit="us/transaction" ;; esac
	for one in $who; do
		sort -n "$scratch/$test-$one" | awk -v name="$test ${one%_does}" -v unit="$unit" '
			{ v[NR] = $1 } END { printf "%-28s median %8.3f  least %8.3f  %s\n", name, v[int((NR + 1) / 2)], v[1], unit }'
	done
done
