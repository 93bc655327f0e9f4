#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# runs.sh stop|kill|survive|continue|outlive FIRST COUNT WATCHDOG PATIENCE RANKS COMMAND...: the runs
# FIRST, FIRST + 1, ... of COMMAND, one of the programs here under an mpiexec: COUNT of them, or the
# share of 17 (of 100 for continue) that HEDDLE_LONG says, if that is set and more. In each a random
# rank leaves at a random action, and then
#   stop      it is stopped: every other rank names what it waits for, and then the stopped rank and
#             its last known place, the same as all others; the job ends with a status other than 0,
#             and the stopped process with it
#   kill      it is killed: the job ends with a status other than 0 (most launchers see to that)
#   survive   it is killed and COMMAND's launcher does not mind: every other rank names what it waits
#             for, and ends
#   continue  it is killed, as in kill, and then COMMAND continues with the journal that is left and
#             ends with the status 0; at least one of the runs finds some of the items in it
#   outlive   it is killed, as in survive, and then COMMAND continues
# each within WATCHDOG seconds of the moment when it left, and the time below for what a busy machine
# takes; to end, ranks may take the PATIENCE of their transport, too, in which the one that left could
# give their memory back. The last line says how long it took at most.
set -uo pipefail
mode=$1 first=$2 watchdog=$4 patience=$5 ranks=$6
most=17
[[ $mode != continue ]] || most=100
count=$(awk -v least="$3" -v share="${HEDDLE_LONG:-0}" -v most=$most 'BEGIN { n = int(most * share); print (n > least ? n : least) }')
shift 6
slack_to_name=2   # looking up, telling, a second of grace, printing
slack_to_end=$((patience + 6))  # a second of grace, half a second to speak, the launcher
names="stuck: "
[[ $mode != outlive ]] || names="its farm|ranks? [0-9, ]* (does|do) not answer"  # the latter before it begins
signal="stop"
[[ $mode == stop ]] || signal="kill"
files=$(mktemp -d)
output=$files/output
trap 'rm -rf "$files"' EXIT
journal=() continued=0
case $mode in
  continue | outlive) journal=("$files/items.farm") ;;
esac
failures=0 longest_to_name=0 longest_to_find=0 longest_to_end=0

uptime() { awk '{ print $1 }' /proc/uptime; }
below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'; }

for ((run = first; run < first + count; ++run)); do
  wrong=()
  status=0
  timeout $((watchdog + 60)) "$@" "$signal" "$run" "$watchdog" "${journal[@]}" \
    > "$output" 2>&1 || status=$?
  end=$(uptime)
  ((status != 124)) || wrong+=("it hangs")
  [[ $mode == survive || $mode == outlive ]] || ((status != 0)) || wrong+=("the status is 0")
  read -r victim left < <(sed -n 's/^rank \([0-9]*\) leaves at /\1 /p' "$output")
  if [[ -z ${victim-} ]]; then
    wrong+=("no rank left")
  else
    took=$(awk -v a="$end" -v b="$left" 'BEGIN { print a - b }')
    below "$took" $((watchdog + slack_to_end)) || wrong+=("it took $took s to end")
    below "$took" "$longest_to_end" || longest_to_end=$took
    for ((rank = 0; rank < ranks && ${#wrong[@]} == 0; ++rank)); do
      [[ $mode != kill && $mode != continue && $rank != "$victim" ]] || continue
      line=$(grep -m 1 "^rank $rank named at " "$output")
      [[ $line =~ $names ]] || { wrong+=("rank $rank names nothing"); continue; }
      took=$(awk -v a="$(cut -d ' ' -f 5 <<< "${line%%: *}")" -v b="$left" 'BEGIN { print a - b }')
      below "$took" $((watchdog + slack_to_name)) || wrong+=("rank $rank took $took s to name it")
      below "$took" "$longest_to_name" || longest_to_name=$took
      [[ $mode == stop ]] || continue
      line=$(grep "^rank $rank named at .* is silent" "$output")
      found=${line#*: }
      [[ $found == "rank $victim is silent, outside of communication; "* && $found == "${first_found:=$found}" ]] ||
        { wrong+=("rank $rank finds '$found', another '${first_found-}'"); continue; }
      took=$(awk -v a="$(cut -d ' ' -f 5 <<< "${line%%: *}")" -v b="$left" 'BEGIN { print a - b }')
      below "$took" $((watchdog + slack_to_name)) || wrong+=("rank $rank took $took s to find it")
      below "$took" "$longest_to_find" || longest_to_find=$took
    done
  fi
  if ((${#journal[@]} > 0)); then
    printf 'then:\n' >> "$output"
    timeout $((watchdog + 60)) "$@" continue "$run" "$watchdog" "${journal[@]}" >> "$output" 2>&1 ||
      wrong+=("the next run ends with status $?")
    read -r known items < <(sed -n 's/^the journal had \([0-9]*\) of \([0-9]*\) items$/\1 \2/p' "$output")
    ((${known:-0} == 0 || known == items)) || continued=$((continued + 1))
    rm -f "${journal[@]}"
  fi
  unset victim left first_found known items
  ((${#wrong[@]} > 0)) || continue
  failures=$((failures + 1))
  printf 'FAILED: run %s, status %s: %s; it printed:\n' "$run" "$status" "${wrong[*]}"
  cat "$output"
done
echo "$mode on $ranks ranks: $((count - failures)) of $count runs as they should; watchdog $watchdog s," \
     "at most $longest_to_name s to name the action, $longest_to_find s to find the rank," \
     "$longest_to_end s to end"
if ((${#journal[@]} > 0)); then
  echo "$continued of $count next runs had a part of the items in their journal"
  ((continued > 0)) || failures=$((failures + 1))
fi
exit $((failures > 0))
