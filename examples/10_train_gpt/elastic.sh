#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# elastic.sh ELASTIC RANKS COMMAND...: trains a GPT by ELASTIC on RANKS ranks, then on one less after
# each rank that is killed, down to one. COMMAND starts train_gpt on {ranks} ranks. A random rank is
# killed at a random time of a random step, or rank 0 while it saves. The losses must be those of a
# training that nobody kills, fewer steps are repeated than three checkpoints are apart (a rank may die
# while one is written), and neither a process nor a temporary file is left. HEDDLE_LONG asks for that share of 50 chains.
set -euo pipefail
elastic=$1
ranks=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
steps=24 every=3
command=("$@" --pipe {ranks} --layers 4 --width 16 --heads 2 --context 16 --sequences 1 --microbatches 4
         --precision double --sample 0 --end "$steps")

fail() { echo "chain $chain: $*" >&2; cat out.txt error.txt >&2 || true; exit 1; }
chains=10
if [[ -n ${HEDDLE_LONG-} ]]; then chains=$(awk -v share="$HEDDLE_LONG" 'BEGIN { n = int(50 * share); print (n > 10 ? n : 10) }'); fi

chain=reference
"${command[@]//\{ranks\}/$ranks}" --log reference > out.txt 2> error.txt || fail "the reference fails"
[[ $(wc -l < reference) -eq $steps ]] || fail "the reference lacks steps"

# Each run takes the kill of its number of ranks.
cat > run.sh << 'RUN'
ranks=$1
shift
export TRAIN_GPT_KILL=$(awk -v ranks="$ranks" '$1 == ranks { print $2, $3, $4, $5 }' kills)
exec "$@"
RUN
# run_chain: runs chain number $chain in a folder of its own.
run_chain() {
  mkdir "$work/chain$chain"
  cd "$work/chain$chain"
  RANDOM=$((20 + chain))
  : > kills
  local step=0 r victim place status=0
  for ((r = ranks; r > 1; --r)); do
    # Later than the kill before, so that each run reaches its own.
    step=$((step + RANDOM % 3 + (r < ranks)))
    victim=$((RANDOM % r)) place=step
    if ((RANDOM % 2)); then
      victim=0 place=save  # rank 0 writes the file
      step=$((step / every * every + every - 1))
    fi
    echo "$r $victim $step $((RANDOM % 4000)) $place" >> kills
  done
  "$elastic" --ranks "$ranks" --checkpoint run.ckpt -- bash ../run.sh {ranks} "${command[@]}" \
    --log "$PWD/log" --save run.ckpt --save-every "$every" --resume {checkpoint} > out.txt 2> error.txt || status=$?
  [[ $status -eq 0 ]] || fail "status $status"
  [[ $(grep -c '^elastic: the job on' error.txt) -eq $((ranks - 1)) ]] || fail "kills: $(cat kills)"
  grep -q '^elastic: starts 1 rank from' error.txt || fail "one rank has not trained"
  # Each step is there with its loss. The last checkpoint but one is at most 2 `every` steps old.
  awk -v steps="$steps" -v every="$every" '
    NR == FNR { loss[$1] = $2; next }
    {
      difference = ($2 - loss[$1]) / loss[$1]
      if (difference < 0) difference = -difference
      if (!($1 in loss) || !(difference <= 1e-10)) { print "step " $1 " differs by " difference; bad = 1 }
      if (FNR > 1 && $1 <= last && last + 1 - $1 > 2 * every) { print "repeats " last + 1 - $1 " steps"; bad = 1 }
      if ($1 > last + 1) { print "step " $1 " follows " last; bad = 1 }
      last = $1
      seen[$1] = 1
    }
    END { for (s = 0; s < steps; ++s) if (!(s in seen)) { print "no step " s; bad = 1 } exit bad }
  ' ../reference log || fail "kills: $(cat kills)"
  [[ -z $(find . -name '.heddle-*') ]] || fail "a temporary file is left"
  ! pgrep -f -- "--log $PWD/log " > /dev/null || fail "a process is left"
  echo "chain $chain: $(paste -sd, kills), $(wc -l < log) steps for $steps"
}
# Four at a time, because most of a chain is the start of processes.
failures=0
for ((first = 1; first <= chains; first += 4)); do
  running=()
  for ((chain = first; chain < first + 4 && chain <= chains; ++chain)); do
    (run_chain) & running+=($!)
  done
  for job in "${running[@]}"; do wait "$job" || failures=$((failures + 1)); done
done
((failures == 0)) || { echo "$failures of $chains chains failed" >&2; exit 1; }
cd "$work/chain1"

# The newest checkpoint is damaged: the one before is used and named. Both are: nothing is trained.
newest=$(sed -n "s/^saved before step $steps: //p" out.txt)
before=run.ckpt
if [[ $newest == run.ckpt ]]; then before=run.ckpt.2; fi
chain=damaged
# resumes STATUS COMMAND...
resumes() {
  local wanted=$1 status=0
  shift
  rm -f log
  "$elastic" --ranks 1 --checkpoint run.ckpt -- "$@" --log log --resume {checkpoint} \
    > out.txt 2> error.txt || status=$?
  [[ $status -eq $wanted ]] || fail "status $status"
}
truncate -s -8 "$newest"
resumes 0 "${command[@]}"
grep -q "skips a damaged checkpoint: .*'$newest'.* at byte" error.txt || fail "the damage is not named"
grep -q "starts 1 rank from $before, of step" error.txt || fail "the one before is not used"
[[ $(tail -1 log) == "$((steps - 1)) "* ]] || fail "the training has not ended"
truncate -s -8 "$before"
resumes 1 "${command[@]}"
grep -q "no checkpoint is whole.*'run.ckpt'.* at byte.*'run.ckpt.2'.* at byte" error.txt || fail "elastic does not say where"
[[ ! -e log ]] || fail "something is trained"

# What fewer ranks do not change ends the attempts.
rm run.ckpt run.ckpt.2
chain=infeasible
resumes 2 "${command[@]}" --heads 3
grep -q "gives up, because fewer ranks do not change this status" error.txt || fail "elastic does not give up"

# Two ranks hold a sequence of 16 tokens, 10 each. One of them is killed, and the other cannot hold it.
chain=memory
echo "2 1 1 0 step" > kills
rm -f log
status=0
"$elastic" --ranks 2 --checkpoint run.ckpt -- bash ../run.sh {ranks} "$@" --sequence {ranks} \
  --attention flex --capacity 10 --context 16 --sequences 2 --layers 1 --width 16 --heads 2 \
  --microbatches 2 --costs nominal --precision double --sample 0 --end "$steps" --log log \
  > out.txt 2> error.txt || status=$?
[[ $status -eq 2 ]] || fail "status $status"
grep -q "starts 1 rank from the start" error.txt || fail "one rank does not start"
grep -q "no group holds sequence 0 of 16 tokens" error.txt || fail "the shortage is not named"
grep -q "gives up, because fewer ranks do not change this status" error.txt || fail "elastic does not give up"
