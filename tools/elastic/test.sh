#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# test.sh PROGRAM DOCS: from which checkpoint and on how many ranks `elastic` starts a job again, what
# it removes and ends, and what it refuses. The jobs are scripts; elastic.sh of example 10 has trainings.
set -euo pipefail
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() { echo "$*" >&2; cat out.txt error.txt >&2; exit 1; }
# checkpoint FILE STEP: a checkpoint of step 3 or 6.
checkpoint() {
  case $2 in
    3) base64 -d <<< "SEVERExFY3ABAAAAAQAAAEAAAAAAAAAAnRhoxAQAAAACAAAAAQAAAAAAAADjNWxXc3RlcLb4g7QDAAAAAAAAAA==" ;;
    6) base64 -d <<< "SEVERExFY3ABAAAAAQAAAEAAAAAAAAAAnRhoxAQAAAACAAAAAQAAAAAAAACpyk0/c3RlcKNZi4AGAAAAAAAAAA==" ;;
  esac > "$1"
}
# job STATUSES: each run notes its words and ends with the next of these statuses.
job() {
  echo "$*" > statuses
  rm -f runs
  cat > job.sh << 'JOB'
echo "$# $*" >> runs
read -ra statuses < statuses
exit "${statuses[$(wc -l < runs) - 1]}"
JOB
}
# elastic STATUS ARGUMENTS...: has to end with this status.
elastic() {
  local wanted=$1 status=0
  shift
  "$program" "$@" > out.txt 2> error.txt || status=$?
  [[ $status -eq $wanted ]] || fail "'elastic $*' ends with $status"
}
says() { grep -qF -- "$1" error.txt || fail "elastic does not say: $1"; }
ran() { [[ $(cat runs) == "$1" ]] || fail "the runs were: $(cat runs)"; }
run=(-- bash job.sh {ranks} {checkpoint})

# One rank less each time, from the start, from the newest file, from the newest by step.
job 0
elastic 0 --ranks 4 --checkpoint run.ckpt "${run[@]}"
ran "2 4 "
says "starts 4 ranks from the start"
job 137 1 0
elastic 0 --ranks 4 --checkpoint run.ckpt "${run[@]}"
ran $'2 4 \n2 3 \n2 2 '
says "the job on 4 ranks ended with status 137"
says "the job on 3 ranks ended with status 1"
checkpoint run.ckpt.2 3
checkpoint run.ckpt 6
touch run.ckpt.2
job 0
elastic 0 --ranks 2 --checkpoint run.ckpt "${run[@]}"
ran "2 2 run.ckpt"
says "starts 2 ranks from run.ckpt, of step 6"
checkpoint run.ckpt 3
checkpoint run.ckpt.2 6
touch run.ckpt
job 0
elastic 0 --ranks 2 --checkpoint run.ckpt "${run[@]}"
ran "2 2 run.ckpt.2"

# The newest is cut or flipped: the one before, by name. Both are: nothing runs.
truncate -s -1 run.ckpt.2
job 0
elastic 0 --ranks 1 --checkpoint run.ckpt "${run[@]}"
ran "2 1 run.ckpt"
says "starts 1 rank from run.ckpt, of step 3"
says "skips a damaged checkpoint: heddle::Checkpoint: cannot load 'run.ckpt.2': the header states another length"
checkpoint run.ckpt.2 6
printf '\7' | dd of=run.ckpt.2 bs=1 seek=56 conv=notrunc status=none
job 0
elastic 0 --ranks 1 --checkpoint run.ckpt "${run[@]}"
ran "2 1 run.ckpt"
says "'run.ckpt.2': field 'step' is damaged at byte"
truncate -s 20 run.ckpt
rm -f runs
elastic 1 --ranks 1 --checkpoint run.ckpt "${run[@]}"
says "no checkpoint is whole"
says "'run.ckpt': the header ends too early at byte"
says "field 'step' is damaged at byte"
[[ ! -e runs ]] || fail "a job has run"
rm run.ckpt run.ckpt.2

# The last status: of --least, --retries and --final, and of a command that is not there.
job 137 9 5 0
elastic 5 --ranks 4 --least 2 --checkpoint run.ckpt "${run[@]}"
says "gives up, because 1 ranks are left, --least 2"
job 137 9 5 0
elastic 9 --ranks 4 --retries 1 --checkpoint run.ckpt "${run[@]}"
says "gives up, because it has restarted 1 times"
job 137 2 0
elastic 2 --ranks 4 --checkpoint run.ckpt "${run[@]}"
says "fewer ranks do not change this status"
job 3 0
elastic 3 --ranks 4 --final 1,3 --checkpoint run.ckpt "${run[@]}"
elastic 127 --ranks 4 --checkpoint run.ckpt -- ./no-such-program
says "cannot start './no-such-program'"
says "gives up, because the command, or one that it starts, cannot be found or executed"
[[ $(grep -c 'cannot start' error.txt) -eq 1 ]] || fail "it was started again"
touch no-program
for command in ./no-program "$work"; do
  elastic 127 --ranks 4 --checkpoint run.ckpt -- "$command"
  [[ $(grep -c 'cannot start' error.txt) -eq 1 ]] || fail "$command was started again"
done
elastic 127 --ranks 4 --final 3 --checkpoint run.ckpt -- bash -c 'echo run >> tries; no-such-program'
[[ $(cat tries) == run ]] || fail "a command that does not exist was started again"

# Two of one checkpoint: the second one runs nothing, until the first one has ended.
job 0 0
rm -f started
"$program" --ranks 1 --checkpoint run.ckpt -- bash -c 'touch started; while [[ -e started ]]; do sleep 0.01; done' \
  > out.txt 2> error.txt & running=$!
while [[ ! -e started ]]; do sleep 0.01; done
elastic 1 --ranks 1 --checkpoint ./run.ckpt "${run[@]}"
says "the checkpoint './run.ckpt' is in use"
[[ ! -e runs ]] || fail "a job has run"
rm started
wait "$running" || fail "the first one ends with $?"
[[ ! -e run.ckpt.elastic.lock ]] || fail "the lock is left"
elastic 0 --ranks 1 --checkpoint run.ckpt "${run[@]}"

# The folder of the checkpoint is created before the lock in it.
job 0
elastic 0 --ranks 1 --checkpoint made/by/run.ckpt "${run[@]}"
[[ -d made/by ]] || fail "there is no folder"
elastic 1 --ranks 1 --checkpoint job.sh/run.ckpt "${run[@]}"
says "the checkpoint 'job.sh/run.ckpt' (Not a directory)"

# Hosts that do not answer take their ranks with them; others stay.
job 1 1 1 0
cat > probe.sh << 'PROBE'
[[ $1 != b || $(wc -l < runs) -lt 2 ]]
PROBE
elastic 0 --ranks 6 --hosts a,b,c --probe 'bash probe.sh {host}' --checkpoint run.ckpt \
  -- bash job.sh {ranks} {hosts}
ran $'2 6 a:2,b:2,c:2\n2 6 a:2,b:2,c:2\n2 4 a:2,c:2\n2 4 a:2,c:2'
says "host b does not answer"

# What killed writers left goes; what a living one writes, and other files, stay.
sleep 0 & dead=$!
wait "$dead"
touch ".heddle-$dead-0.tmp" ".heddle-$$-0.tmp" .heddle-notes.tmp
# A writer on another host has a process that does not exist here, but it holds a lock.
job 0
flock ".heddle-$dead-0.tmp" "$program" --ranks 1 --checkpoint run.ckpt "${run[@]}" > out.txt 2> error.txt
[[ -e .heddle-$dead-0.tmp ]] || fail "a locked file is removed"
job 0
elastic 0 --ranks 1 --checkpoint run.ckpt "${run[@]}"
says "removed $(pwd -P)/.heddle-$dead-0.tmp"
[[ ! -e .heddle-$dead-0.tmp && -e .heddle-$$-0.tmp && -e .heddle-notes.tmp ]] || fail "$(ls -A)"

# Processes that a job leaves end with it, and a signal ends both without a restart.
elastic 0 --ranks 1 --checkpoint run.ckpt -- bash -c 'setsid bash -c "echo \$\$ > left; exec sleep 100" & while [[ ! -s left ]]; do sleep 0.01; done'
! kill -0 "$(cat left)" 2> error.txt || fail "a process is left"
"$program" --ranks 2 --checkpoint run.ckpt -- bash -c 'trap "exit 7" TERM; echo $$ > started; while :; do sleep 0.01; done' \
  > out.txt 2> error.txt & running=$!
while [[ ! -s started ]]; do sleep 0.01; done
kill -TERM "$running"
status=0
wait "$running" || status=$?
[[ $status -eq 7 ]] || fail "ends with $status"
says "signal 15 asked for it"
! kill -0 "$(cat started)" 2> /dev/null || fail "the job is left"

# wrong PHRASE ARGUMENTS...
wrong() {
  local phrase=$1
  shift
  elastic 2 "$@"
  says "$phrase"
  grep -q '^Usage: elastic' error.txt || fail "'elastic $*' does not say how"
}
wrong "there is no command; write it behind --" --ranks 4 --checkpoint run.ckpt
wrong "--checkpoint is required" --ranks 4 -- true
wrong "--ranks 0 --least 1" --checkpoint run.ckpt -- true
wrong "--ranks 2 --least 3" --ranks 2 --least 3 --checkpoint run.ckpt -- true
wrong "--retries -1" --ranks 2 --retries -1 --checkpoint run.ckpt -- true
wrong "--probe and --hosts belong together" --ranks 2 --probe true --checkpoint run.ckpt -- true
wrong "--ranks 3 on 2 hosts" --ranks 3 --hosts a,b --probe true --checkpoint run.ckpt -- true
wrong "no option '--rank'; did you mean '--ranks'?" --rank 2 -- true
grep -q '^Usage: elastic' <("$program" --help) || fail "there is no help"
grep -q '^elastic (Heddle) ' <("$program" --version) || fail "there is no version"
