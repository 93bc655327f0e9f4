#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# disturb.sh FIRST COUNT WATCHDOG RANKS RESULT COMMAND...: the runs FIRST, FIRST + 1, ... of COMMAND, which
# starts a program on RANKS ranks: COUNT of them, or the share of 400 that HEDDLE_LONG says, if that is set
# and more. In each a random rank is killed, stopped, or stopped and continued, at a random time of the run.
# No run may hang, and none may leave a process. A run that was only delayed must succeed. After a run that
# failed, the same command begins again in the same folder, with the files that are there, and must succeed.
# What the shell command RESULT prints in the folder then equals what it prints after an undisturbed run.
# No rank is stopped for good if WATCHDOG, the seconds that ranks wait for each other, is 10 or more.
# MPI_Init and MPI_Finalize have no watchdog. If HEDDLE_MARKS names the library of mark_mpi.cpp, a rank that is
# stopped while a rank is in one of them is continued, and the run must succeed then.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/processes.sh"
first=$1 watchdog=$3 ranks=$4 result=$5
count=$(awk -v least="$2" -v share="${HEDDLE_LONG:-0}" 'BEGIN { n = int(400 * share); print (n > least ? n : least) }')
shift 5
work=$(mktemp -d)
trap 'kill_all; rm -rf "$work"' EXIT
ended() { ! kill -0 "$command" 2> /dev/null; }
# within SECONDS CONDITION...: whether the condition holds in time.
within() {
  local until=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < until)) || return 1
    sleep 0.05
  done
}
# since TIME: the seconds that have passed.
since() { awk -v a="$EPOCHREALTIME" -v b="$1" 'BEGIN { print a - b }'; }
begun() { started || ended; }
# in_mpi: whether a rank of the run is in MPI_Init or MPI_Finalize.
in_mpi() {
  local rank
  for rank in $(processes | awk '$2 != "launcher" { print $1 }'); do
    [[ -e $work/begun.$rank && ! -e $work/ending.$rank ]] || return 0
  done
  return 1
}

# The undisturbed run: how long it takes, and how much of it is left once its ranks are found.
mkdir "$work/reference" && cd "$work/reference" || exit 1
victim=0 begin=$EPOCHREALTIME
SILENT_RUN=$work "$@" > out.txt 2> error.txt & command=$!
within 100 begun
there=$EPOCHREALTIME
wait "$command" || { echo "the undisturbed run fails"; cat out.txt error.txt; exit 1; }
duration=$(since "$begin") rest=$(since "$there")
bash -c "$result" > "$work/expected" || { echo "the result cannot be read"; exit 1; }
# Ranks that set up a mesh wait 120 s for each other, and as long again for the end of an agreement.
limit=$(awk -v d="$duration" -v w="$watchdog" 'BEGIN { print int(10 * d + w + 300) }')

# disturbed COMMAND...: one run, whose status is in $status and whose fault in $wrong.
disturbed() {
  pid=""
  rm -f "$work"/begun.* "$work"/ending.*
  LD_PRELOAD=${HEDDLE_MARKS:-} SILENT_RUN=$work "$@" > out.txt 2> error.txt & command=$!
  within "$limit" begun || { wrong="the rank does not start"; return; }
  sleep "$(awk -v d="$rest" -v p="$place" 'BEGIN { print d * p / 1000 }')"
  if [[ -n $pid ]] && kill -0 "$pid" 2> /dev/null; then
    if [[ $kind == delay ]]; then
      kill -STOP "$pid" 2> /dev/null && sleep "0.$((1 + RANDOM % 9))"
      kill -CONT "$pid" 2> /dev/null
    else
      kill -"$kind" "$pid" 2> /dev/null
    fi
    hits=$((hits + 1))
  fi
  # If the others have ended, only the launcher waits for a stopped rank, which is continued then. And Open
  # MPI 4.1's mpiexec can deadlock in its own end if a rank that it wakes ends by itself meanwhile.
  local alone=0 left until=$((SECONDS + limit)) mpi=$((SECONDS + watchdog + 10))
  until ended || ((SECONDS >= until)); do
    left=$(processes | awk '$2 != "launcher" { print $1 }')
    if [[ -z $left || $left == "$pid" ]]; then alone=$((alone + 1)); else alone=0; fi
    if [[ $left == "$pid" && $alone == 40 ]]; then kill -CONT "$pid" 2> /dev/null; alone=0; fi
    ((alone < 60)) || { kill_all; sleep 0.5; break; }
    if [[ $kind == STOP && -n ${HEDDLE_MARKS:-} && -n $pid ]] && ((SECONDS >= mpi)) && in_mpi; then
      kill -CONT "$pid" 2> /dev/null
      kind=delay continued=$((continued + 1))
    fi
    sleep 0.25
  done
  ended || wrong="it hangs"
}
failures=0 hits=0 again=0 continued=0
for ((run = first; run < first + count; ++run)); do
  RANDOM=$run
  kinds=(KILL delay STOP)
  kind=${kinds[RANDOM % (watchdog < 10 ? 3 : 2)]}
  victim=$((RANDOM % ranks)) place=$((RANDOM % 1000)) wrong="" status=0
  rm -rf "$work/run"
  mkdir "$work/run" && cd "$work/run" || exit 1
  disturbed "$@"
  [[ -z $wrong ]] || { processes; kill_all; }
  wait "$command" || status=$?
  within 10 ranks_gone || wrong=${wrong:-a process is left}
  if [[ -z $wrong && $status != 0 ]]; then
    [[ $kind != delay ]] || wrong="a delayed run ends with status $status"
    again=$((again + 1))
    [[ -n $wrong ]] || timeout "$limit" "$@" > out.txt 2>> error.txt || wrong="the next run ends with status $?"
  fi
  [[ -n $wrong ]] || bash -c "$result" | cmp -s - "$work/expected" || wrong="the result differs"
  [[ -n $wrong ]] || continue
  failures=$((failures + 1))
  echo "FAILED: run $run, $kind of rank $victim at $place thousandths of $rest s: $wrong"
  tail -n 50 out.txt error.txt
  kill_all
done
echo "$((count - failures)) of $count runs as they should, $hits of them disturbed, $again begun again," \
     "$continued stopped in MPI_Init or MPI_Finalize; an undisturbed run takes $duration s, $rest s of it with all ranks"
exit $((failures > 0))
