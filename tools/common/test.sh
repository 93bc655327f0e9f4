#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# test.sh TOOLS PROGRAM...: a tool whose output is lost says so and fails. TOOLS is the folder of tools:
# each program of it has a line in the table below, but a build may lack some of the programs.
set -uo pipefail
tools=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit
failures=0
fail() { failures=$((failures + 1)); echo "FAILED: $*: $(head -c 400 error 2> /dev/null)"; }

printf '6 1\n3\t2\n' > runs.txt
cat > two.json << 'END'
{"format": "heddle-plan", "version": 1, "plan": {"microbatches": 4, "stages": [
  {"layers": [0, 2], "ranks": [0], "samples": [1]}, {"layers": [2, 4], "ranks": [1], "samples": [1]}]}}
END
# The arguments with which each tool prints here. Some print more than a buffer, others little.
declare -A prints=(
  [elastic]="--help" [explorer]="answer do=catalogue" [measure]="--help" [memory]="show --help"
  [mpigen]="emit gpipe -" [plan]="show two.json" [race]="predict runs.txt" [schedule]="list"
  [systems_report]="--list")
libraries=" heddle_malloc heddle_mpi "
for main in "$tools"/*/main.cpp; do
  name=$(basename "${main%/main.cpp}")
  [[ -n ${prints[$name]-} || $libraries == *" $name "* ]] || fail "$name is not in the table"
done

for program in "$@"; do
  name=$(basename "$program")
  for arguments in "${prints[$name]-}" --version --help; do
    # shellcheck disable=SC2086
    "$program" $arguments > good 2> error || fail "$name $arguments"
    [[ -s good ]] || fail "$name $arguments prints nothing"
    # shellcheck disable=SC2086
    "$program" $arguments > /dev/full 2> error && fail "$name $arguments > /dev/full"
    grep -q "^$name: cannot write the standard output: .*; what was printed is not complete" error ||
      fail "$name $arguments > /dev/full does not say why"
    # shellcheck disable=SC2086
    "$program" $arguments >&- 2> error && fail "$name $arguments >&-"
    grep -q "^$name: cannot write the standard output: Bad file descriptor" error ||
      fail "$name $arguments >&- does not say why"
    # A reader that has enough ends the program, without a word.
    # shellcheck disable=SC2086
    { "$program" $arguments 2> error; echo $? > status; } | :
    [[ $(cat status) =~ ^(0|141)$ && ! -s error ]] || fail "$name $arguments into a closed pipe"
    # shellcheck disable=SC2086
    { (trap '' PIPE; "$program" $arguments 2> error; echo $? > status); } | :
    [[ $(cat status) == 0 ]] || grep -q "Broken pipe\|a part of it is lost" error ||
      fail "$name $arguments without a signal"
  done
  # A wrong command line keeps its status and its message.
  status=0
  "$program" --no-such-option > /dev/full 2> error || status=$?
  [[ $status -eq 2 ]] && grep -q "^$name: " error || fail "$name --no-such-option ends with $status"
done

# Help says what must be given.
for program in "$@"; do
  case $(basename "$program") in
    plan) "$program" search --help > good && grep -qE -- '--batch .*REQUIRED' good || fail "plan search --help" ;;
    schedule) "$program" check --help > good && grep -qE 'FILE.csv .*REQUIRED' good || fail "schedule check --help" ;;
  esac
done

# A file that is written is not where the output goes, and the output is no part of the file.
for program in "$@"; do
  [[ $(basename "$program") == schedule ]] || continue
  "$program" show 1f1b --svg right.svg > shown || fail "schedule show"
  "$program" show 1f1b --svg closed.svg >&- 2> error && fail "schedule show >&-"
  cmp -s right.svg closed.svg || fail "schedule show >&- writes another picture"
done

# What files and their names have in messages is escaped, and a byte order mark is taken or named.
red=$'\e[31mred\e]0;title\a\r\x9b\xff'
mark=$'\xEF\xBB\xBF'
printf '%s' "$red" > "$red.txt"
printf '%s\n' "$mark$red" > marked.txt
printf 'heddle memory trace 1\n%s\n' "$red" > red.trace
printf 'heddle memory trace 1\nchecksum 0\n' > "$red.trace"
printf '1, %s\n' "$red" > red.list
printf '{"format": "%s"}' "$red" > red.json
printf '0F0,%s\n' "$red" > red.csv
# says NAME WORD ARGUMENTS...: fails, has the word in its message, and sends nothing to a terminal
says() {
  local name=$1 word=$2 program status=0
  shift 2
  for program in "${programs[@]}"; do
    [[ $(basename "$program") == "$name" ]] || continue
    "$program" "$@" > good 2> error || status=$?
    [[ $status -ne 0 ]] || fail "$name $* succeeds"
    grep -qF -- "$word" error || fail "$name $*: no $word"
    ! LC_ALL=C grep -q $'[\x01-\x09\x0b-\x1f\x7f-\xff]' error || fail "$name $* sends bytes to the terminal"
  done
}
programs=("$@")
says race '\x1b[31mred' predict "$red.txt"
says race '\x1b[31mred' predict marked.txt
says race '\x1b[31mred' predict "no $red"
says memory '\x1b[31mred' show red.trace
says memory '\x1b[31mred' show "$red.trace"
says memory 'another format' show "$red.txt"
says memory '\x1b[31mred' import "$red.txt" out.trace
says mpigen '\x1b[31mred' score red.list red.list
says mpigen '\x1b[31mred' insert runs.txt red.list -
says plan 'U+001B' show red.json  # nlohmann_json's escape
says plan '\x1b[31mred' show "no $red.json"
says plan '\x1b[31mred' import "$red.txt"
says schedule '\x1b[31mred' check red.csv
says schedule '\x1b[31mred' show "$red"
says schedule '\x1b[31mred' "$red"
says systems_report '\x1b[31mred' "$red"
says elastic '\x1b[31mred' --ranks 1 --checkpoint "$red.txt" -- true
# takes NAME FILE ARGUMENTS...: FILE is read as well with a mark of UTF-8 as without, and as well from the
# standard input, which can be one file only
takes() {
  local name=$1 file=$2 program
  shift 2
  for program in "${programs[@]}"; do
    [[ $(basename "$program") == "$name" ]] || continue
    cp "$file" taken  # under one name, because it may be printed
    "$program" "${@/FILE/taken}" > good 2> error || fail "$name $*"
    printf '%s' "$mark" | cat - "$file" > taken
    "$program" "${@/FILE/taken}" > good_marked 2> error || fail "$name $* with a mark"
    cmp -s good good_marked || fail "$name $* with a mark prints other things"
    if [[ "$*" == *FILE*FILE* ]]; then
      status=0
      "$program" "${@/FILE/-}" < "$file" > good_piped 2> error || status=$?
      [[ $status -eq 2 ]] && grep -q "the standard input is one file" error || fail "$name $* with - twice"
      continue
    fi
    "$program" "${@/FILE/-}" < "$file" > good_piped 2> error || fail "$name $* with -"
    sed -i 's,/dev/stdin,taken,' good_piped  # a drawing has the name of its file
    cmp -s good good_piped || fail "$name $* with - prints other things"
  done
}
printf '0F0,0B0\n1F0,1B0\n' > good.csv
printf '1, MPI_Send(a, 1);\n' > good.list
printf 'heddle memory trace 1\nlabel "weights"\nlabel ""\n+ 0 1000000 64 0\n+ 250000 50 8 1\n- 500000 1\n%s' \
  $'+ 750000 3000000 64 0\n- 900000 0\nchecksum 3643028723\n' > good.trace
takes race runs.txt predict FILE
takes mpigen good.list score FILE FILE
takes plan two.json show FILE
takes schedule good.csv check FILE
takes memory good.trace show FILE
takes explorer good.csv answer do=draw FILE

((failures == 0)) && echo "all as expected"
exit $((failures > 0))
