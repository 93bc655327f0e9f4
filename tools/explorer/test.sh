#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# test.sh PROGRAM DOCS: what the explorer's page is told, without the page. `check` compares all numbers
# with the library's; with HEDDLE_LONG it takes every number of ranks and microbatches, for a minute. The
# programs `schedule` and `plan` beside PROGRAM have the same numbers.
set -uo pipefail
program=$1
page=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/page
step=5 seconds=60
if [[ -n ${HEDDLE_LONG-} ]]; then step=1 seconds=3600; fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit
failures=0

# expect PHRASE ARGUMENTS...: the answer has the phrase
expect() {
  local phrase=$1 output
  shift
  output=$(timeout $seconds "$program" "$@" 2>&1)
  if [[ $output != *"$phrase"* ]]; then
    failures=$((failures + 1))
    printf 'FAILED: %s\n  expected: %s\n  printed:  %s\n' "$*" "$phrase" "${output:0:600}"
  fi
}
ask() { expect "$1" answer "${@:2}"; }

expect "drawings have the library's numbers" check --step $step
expect "--step is a number of at least 1" check --step 0
ask '{"name":"zb-v","call":"zb_v()"' do=catalogue
ask '"makespan":33,"bubble":0.2727272727272727,"activations":[4,3,2,1],"messages":48' 'do=draw&schedule=1f1b'
ask '"theory":0.2727272727272727' 'do=draw&schedule=1f1b'
ask '"theory":0.1111111111111111' 'do=draw&schedule=zb-h1'
[[ $("$program" answer 'do=draw&schedule=1f1b-v') != *'"theory"'* ]] || { echo "1f1b-v has a closed form"; failures=$((failures + 1)); }
# 1 and 3 forward, 2 and 6 backward: as `schedule show --F 1,3` has it, by a time for each stage and by factors.
ask '"makespan":21,' 'do=draw&schedule=1f1b&ranks=2&microbatches=2&F=1,3&I=1,3&W=1,3'
ask '"makespan":21,' 'do=draw&schedule=1f1b&ranks=2&microbatches=2&factors=1,3'
ask "factors needs one for each stage (3 factors for 4 stages)" 'do=draw&schedule=1f1b&factors=1,2,3'
ask '"name":"1F0"' 'do=draw&schedule=1f1b do=action&action=4'
ask '"after":[{"action":1,"name":"0SEND_F0 -> 1RECV_F0","time":1,' 'do=draw&schedule=1f1b do=action&action=4'
ask "there is no such action (999 of 116)" 'do=draw&schedule=1f1b do=action&action=999'
ask "<svg xmlns" 'do=draw&schedule=1f1b do=svg'
ask '"format":"heddle-trace"' 'do=draw&schedule=1f1b do=perfetto'
ask "3F0,3B0,3F1,3B1," 'do=draw&schedule=1f1b do=csv'
ask "no schedule is drawn" do=svg
ask "no such request (do=sing)" do=sing
ask "a request has no '='" sing
ask "did you mean 'zb-v'?" 'do=draw&schedule=zbv'
ask "the nearest valid number is 8" 'do=draw&schedule=interleaved&microbatches=9'
ask "ranks is not a whole number from" 'do=draw&schedule=1f1b&ranks=4x'
ask "F is not a number ('')" 'do=draw&schedule=1f1b&F=1,'
ask "F is not a number ('nan')" 'do=draw&schedule=1f1b&F=nan'
ask "numbers of at least 0 (one is -1)" 'do=draw&schedule=1f1b&F=-1'
ask "the schedule is too large for a picture" 'do=draw&schedule=1f1b&ranks=100000&microbatches=100000'

# Schedule files.
printf '0F0,,0B0\n1F0,1X0\n' > bad.csv
ask '"line":2,"cell":2,"grid":"cell     1      2      3\nrank 0' do=draw bad.csv
printf '0F0,0I0,0BW0\n' > old.csv
ask "this looks like the old dialect" do=draw old.csv
printf '1F1,0F0,1B1,0B0\n1F0,0F1,1B0,0B1\n' > stuck.csv
ask "rank 0 waits at 1F1 for 0F1" 'do=draw&replicas=1' stuck.csv
printf '0F0,0B0\n1F0,1B0\n' > good.csv
ask '"makespan":6,"bubble":0.5,' do=draw good.csv

# Traces: two stages and one microbatch; what was measured takes twice as long as predicted.
slices() {  # slices TIMELINE SCALE
  awk -v timeline="$1" -v scale="$2" -F, -v OFS=, '{ for (i = 7; i <= 9; ++i) $i *= scale; print $1, timeline, $2, $3, $4, $5, $6, $7, $8, $9 }' << 'END'
F,0,0,0,0,0,0,1,1
MOVE,1,0,1,0,0,1,1,2
F,2,1,1,1,0,2,3,3
B,3,1,1,1,0,3,5,5
MOVE,4,1,0,1,0,5,5,6
B,5,0,0,0,0,6,8,8
UPDATE,6,0,0,0,0,8,8,8
UPDATE,7,1,1,1,0,8,8,8
END
}
slices 0 1 > one.txt
{ slices 0 1; slices 1 2; } > two.txt
ask '"timelines":[{"ranks":2,"actions":8,"begin":0,"makespan":8,"bubble":0.625,"busy":[3,3]}]' do=trace one.txt
ask "rank 0  the trace" 'do=trace do=analyse' one.txt
ask '"step":1' 'do=trace do=analyse' two.txt
ask 'plan error of trace: predicted 8 s, measured 16 s (+100%)' 'do=trace do=analyse' two.txt
# Two replicas of the pipeline: ranks 2 and 3 do the same, and messages sum the gradients of a stage.
{ cat one.txt; awk -F, -v OFS=, '{ $3 += 10; $4 += 2; $5 += 2; print }' one.txt
  echo MOVE,0,8,0,2,0,0,8,9,9; echo COMBINE,0,20,2,2,0,0,9,10,10; } > replicas.txt
ask '"replicas":2' 'do=trace do=analyse' replicas.txt
ask 'replica 1\nbubble ratio of trace: the trace 62.5%' 'do=trace do=analyse' replicas.txt
ask '2 other actions, such as those of sums of gradients' 'do=trace do=analyse' replicas.txt
wrong() { sed "$1" one.txt > wrong.txt; ask "$2" 'do=trace do=analyse' wrong.txt; }
wrong 's/^F,0,0,/X,0,0,/' "a slice of the trace has no known kind ('X'"
wrong '2s/,2$//' "a slice of the trace is not complete"
wrong '1s/0,0,0,0,0,0/0,0,-1,0,0,0/' "a slice of the trace has a number that is none of a schedule"
wrong 's/^F,0,0,/F,7,0,/' "the trace has too many timelines or ranks"
wrong '1s/0,1,1$/3,1,1/' "a slice of the trace ends before it starts"
wrong '2d' "it has no 0SEND_F0 -> 1RECV_F0"
wrong '/./d' "the trace has no slices of a schedule"

# The files of a plan: two fast devices and a slow one, a plan for the first and the last, and its numbers by `plan`.
layer='{"output": 1000, "saved": 4000, "parameters": 1e6, "measured": [{"device": "fast", "forward": 1,
        "backward_input": 2, "backward_weight": 0.5, "update": 0.5}]}'
echo '{"format": "heddle-profile", "version": 1, "profile": {"model": "five", "reference": "fast", "layers": [
  '"$layer, $layer, $layer, $layer, $layer"']}}' > profile.json
cat > machine.json << END
{"format": "heddle-machine", "version": 1, "machine": {
  "devices": [{"name": "fast", "count": 2, "memories": [{"capacity": 20e6}]}, {"name": "slow", "speed": 0.5,
              "memories": [{"capacity": 8e6}]}],
  "levels": [{"name": "rank", "ranks": 1}, {"name": "all", "ranks": 3, "link": {"latency": 0.25, "bandwidth": 2000}}]}}
END
cat > plan.json << END
{"format": "heddle-plan", "version": 1, "plan": {"microbatches": 3, "stages": [
  {"layers": [0, 3], "ranks": [0], "samples": [1]}, {"layers": [3, 5], "ranks": [2], "samples": [1]}]}}
END
for kind in profile machine plan; do
  ask "\"kind\":\"$kind\"" "do=read&kind=$kind&name=$kind.json" $kind.json
  sed "s/\"$kind\": {/\"$kind\": {\"colour\": 1, /" $kind.json > wrong.json  # a member that there is not
  ask "'mine.json': $kind: there is no member 'colour'" "do=read&kind=$kind&name=mine.json" wrong.json
  head -c 60 $kind.json > wrong.json
  ask "'mine.json': the file is not JSON, or it is incomplete" "do=read&kind=$kind&name=mine.json" wrong.json
  sed 's/"version": 1/"version": 9/' $kind.json > wrong.json
  ask "the file has version 9" "do=read&kind=$kind&name=mine.json" wrong.json
done
ask "this is no file of a machine" 'do=read&kind=machine' plan.json
ask "the page does not read a file of the kind 'program'" 'do=read&kind=program' plan.json
ask '"about":"5 layers of five"' 'do=read&kind=profile' profile.json
of_files() {  # of_files PLAN: the request for these files, which are then in all.json
  cat profile.json machine.json "$1" > all.json
  echo "do=plan&profile=$(stat -c %s profile.json)&machine=$(stat -c %s machine.json)&plan=$(stat -c %s "$1")"
}
planned=$(of_files plan.json)
for schedule in 1f1b gpipe zb-h1; do
  sed "s/\"microbatches\"/\"schedule\": \"$schedule\", &/" plan.json > of.json
  "$(dirname "$program")/plan" check of.json profile.json machine.json > priced 2> complaint
  step=$(sed -n 's/^simulated step \(.*\) s$/\1/p' priced)
  lacks=$(sed -n 's/.*rank \([0-9]*\) needs \([0-9]*\) bytes.*/{"rank":\1,"needed":\2,/p' complaint)
  [[ -n $step && -n $lacks ]] || { failures=$((failures + 1)); echo "FAILED: plan says $(cat priced complaint)"; }
  ask "\"makespan\":$step," "$planned&schedule=$schedule" all.json
  ask "\"shortage\":$lacks" "$planned&schedule=$schedule" all.json
  ask "\"makespan\":$step," "$(of_files of.json)" all.json
  of_files plan.json > /dev/null
done
# The passes of a plan with two buckets a stage are those of four stages, in the picture and as CSV.
sed 's/"microbatches"/"buckets": 2, &/' plan.json > buckets.json
ask '"stages":4,"microbatches":3,' "$(of_files buckets.json)" all.json
ask "0F0,1F0,0F1,1F1,1B0,0B0,0F2,1F2,1B1,0B1,1B2,0B2" "$(of_files buckets.json) do=csv" all.json
of_files plan.json > /dev/null
ask "the schedule 'zb-v' does not fit the plan" "$planned&schedule=zb-v" all.json
ask "did you mean 'zb-v'?" "$planned&schedule=zbv" all.json
# Without a plan: three stages of 2, 2 and 1 layers, because the last device takes twice as long.
ask '"stages":3,"microbatches":5,' "${planned%&*}&microbatches=5" all.json
ask '"busy":[36,36,36]' "${planned%&*}&microbatches=5" all.json
ask "microbatches is below 1" "${planned%&*}&microbatches=0" all.json
ask "the files do not have the bytes of the plan" "${planned}999" all.json
ask "the plan is too large for a picture" "${planned%&*}&microbatches=1000000" all.json
sed 's/\[3, 5\]/[3, 4]/' plan.json > short.json
ask "'plan.json': the stages must hold all layers" "$(of_files short.json)" all.json

# Searches: the best of five is what `schedule show best` has, and a refined schedule is what --refine has.
costs='F=1&I=1.5&W=0.5&ranks=4&microbatches=6'
options=(--F 1 --I 1.5 --W 0.5 --ranks 4 --microbatches 6)
makespan_of() { sed -n 's/.*makespan \([0-9.]*\),.*/\1/p' | head -1; }
wanted=$("$(dirname "$program")/schedule" show best "${options[@]}" | makespan_of)
found=$("$program" answer "$(printf "do=draw&search=1&schedule=%s&$costs " 1f1b zb-h1 zb-v interleaved interleaved-zb1p | sed 's/ $//')" |
  sed -n 's/.*"makespan":\([0-9.]*\),.*"found":.*/\1/p' | sort -g | head -1)
[[ -n $found && $found == "$wanted" ]] || { failures=$((failures + 1)); echo "FAILED: best is $found, not $wanted"; }
wanted=$("$(dirname "$program")/schedule" show v-min --refine "${options[@]}" | makespan_of)
ask "\"makespan\":$wanted," "do=draw&search=kept&schedule=v-min&$costs"
ask '"found":"1f1b","bound":' 'do=draw&search=1&schedule=1f1b'
ask "no orders with the computations of this schedule fit the memory" 'do=draw&search=1&schedule=1f1b&saved=10&cap-bytes=9'
ask "the schedule is too large for a search" 'do=draw&search=1&schedule=1f1b&ranks=64&microbatches=512'
ask "a search is for stages that take equally long" 'do=draw&search=1&schedule=1f1b&factors=1,1,2,1'
ask "a search has no fused pairs" 'do=draw&search=1&schedule=dualpipe&ranks=4&FB=2'
ask '"found":"1f1b","bound":' 'do=draw&search=1&schedule=1f1b&FB=2'
ask '"infeasible":true' 'do=draw&search=1&schedule=1f1b&saved=10&cap-bytes=9'
ask '"infeasible":true' 'do=draw&schedule=interleaved&microbatches=9'
ask "effort is a number from 0 to 1" 'do=draw&search=1&schedule=1f1b&effort=2'

# The page's script: its searches, with the program as the module, and files that it tells from traces.
if command -v node > /dev/null; then
  best() {  # best PHRASE SETTINGS: what the page says of `best` for these settings
    local output
    output=$(node -e "
      const planned = () => process.argv[1].includes('planned'), isPlanned = () => planned() && says > 1, excessOf = () => 0;
      const catalogue = [{ name: '1f1b', synchronous: true }, { name: 'gpipe', synchronous: true }];
      const request = () => ({ do: 'draw', ...Object.fromEntries(new URLSearchParams(process.argv[1])) });
      let says = 0;
      $(cat "$page"/{engine,search}.js)
      Explorer.prototype.ask = (asked) => {
        const pairs = Object.entries(asked).map(([key, value]) => key + '=' + value).join('&');
        const answer = require('child_process').execFileSync('$program', ['answer', pairs], { encoding: 'utf8' });
        if (answer.startsWith('{\"error\"')) throw new LibraryError(JSON.parse(answer));
        return answer;
      };
      search('best', () => ++says).then(() => {
        const [done] = searches.values();
        if (!done) return console.log('ended after', says);
        console.log(done.error ? done.error.message : [done.report.makespan, 'after', done.searched, 'of', says, done.failed?.message].join(' '));
      });" "$2" 2>&1)
    [[ $output == *"$1"* ]] || { failures=$((failures + 1)); echo "FAILED: the page says '$output' of best for $2"; }
  }
  best "25.5 after 5 of 5" "F=1&FB=2"
  best "after 1 of 5 explorer: the schedule is too large for a search in the page (6144 passes" "microbatches=512"
  best "explorer: the schedule is too large for a search in the page (5120 passes" "microbatches=640"
  best "explorer: a search is for stages that take equally long" "factors=1,1,2,1"
  best "33 after 0 of 5" "saved=10&cap-bytes=9"  # the memory is the reason, and the stub has no limit
  best "ended after 2" "planned=1"
  script() {  # script PHRASE FUNCTION CONTENT
    local output
    output=$(node -e "let state, values; $(cat "$page"/{engine,trace,plans}.js)
      try { console.log($2(process.argv[1])); } catch (error) { console.log(error.message); }" "$3" 2>&1)
    [[ $output == *"$1"* ]] || { failures=$((failures + 1)); echo "FAILED: the page says '$output' of $3"; }
  }
  for kind in plan profile machine; do script "$kind" formatOf "{\"format\": \"heddle-$kind\"}"; done
  script undefined formatOf '{"format": "heddle-plane"}'
  script undefined formatOf '{'
  script "this is a tensor program of Heddle" readTrace '{"format": "heddle-program"}'
  script "it has no traceEvents" readTrace '{"format": "heddle-plane"}'
  script "it has no traceEvents" readTrace 'null'
  script "the file is not JSON" readTrace '{'
fi

((failures == 0)) && echo "all as expected"
exit $((failures > 0))
