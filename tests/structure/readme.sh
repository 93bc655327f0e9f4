#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# readme.sh README ROOT: what the README, or another page, shows is what the repository has.
#   - Every ```cpp and ```cmake block follows a line <!-- from: FILE -->, and its lines stand in that
#     file, one after another; blanks at a line's begin do not count, and a comment line of three dots
#     (`// ...` or `# ...`) in the block stands for lines left out.
#     FILE is compiled: a source of examples, tests, tools or benchmarks, or a CMakeLists.txt there.
#   - A ```text block that follows such a line shows what a program prints: its words stand in FILE in this
#     order, whatever the line breaks. FILE is a source whose test compares them, or an expected.txt.
#   - Where the page has a line <!-- calls: FILE -->, every call with arguments in a line of text,
#     `to_grid(orders, *fault)`, stands in that file, too, which is compiled.
#   - In ```sh blocks, scripts/NAME is a script, and example_NN_NAME has a folder in examples.
#   - Links to files of the repository lead to one, from the folder of the page.
set -euo pipefail
readme=$1
root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
complain() { echo "$readme:$1"; status=1; }
compiled() { [[ $1 =~ ^(examples|tests|tools|benchmarks)/.*(\.cpp|/CMakeLists\.txt)$ && $1 != */fixtures/* ]]; }

# Cuts the blocks out: one file each, named by line and language, and a list of them.
awk -v work="$work" '
  /^<!-- from: .* -->$/ { from = $3; next }
  /^```/ {
    if (open) { close(file); open = 0; from = ""; next }
    open = 1
    language = substr($0, 4)
    file = work "/" NR
    printf "" > file
    print NR, language == "" ? "none" : language, from == "" ? "-" : from
    next
  }
  open { sub(/^[ \t]+/, ""); print > file; next }
  !/^$/ { from = "" }
' "$readme" > "$work/blocks"

while read -r line language from; do
  block=$work/$line
  case $language in
    cpp | cmake)
      if [[ $from == - ]]; then
        complain "$line: a $language block names no file that it is from"
      elif [[ ! -e $root/$from ]]; then
        complain "$line: there is no $from"
      elif ! compiled "$from"; then
        complain "$line: $from is not compiled"
      else
        # Walks through the file once per begin of a run of lines, so runs need not be unique.
        awk '
          { sub(/^[ \t]+/, "") }
          NR == FNR { have[++lines] = $0; next }
          /^(\/\/|#) \.\.\.$/ { if (wanted) ends[++runs] = wanted; gap = 1; next }
          { want[++wanted] = $0 }
          END {
            ends[++runs] = wanted
            at = 1
            first = 1
            for (run = 1; run <= runs; ++run) {
              for (found = 0; at + ends[run] - first <= lines && !found; ++at) {
                found = 1
                for (k = first; k <= ends[run] && found; ++k) {
                  found = have[at + k - first] == want[k]
                  if (!found && k > reach) reach = k
                }
              }
              if (!found) { print reach ? want[reach] : want[first]; exit 1 }
              at += ends[run] - first
              first = ends[run] + 1
            }
          }
        ' "$root/$from" "$block" > "$work/missing" ||
          complain "$line: not in $from as it stands here: $(cat "$work/missing")"
      fi
      ;;
    text)
      [[ $from == - ]] && continue
      if [[ ! -e $root/$from ]]; then
        complain "$line: there is no $from"
      elif ! compiled "$from" && [[ $from != examples/*/expected.txt ]]; then
        complain "$line: no test compares what $from says"
      else
        # A text that goes on in the next line of a source is one text.
        said=$(tr -s ' \n' ' ' < "$root/$from" | sed 's/" "//g; s/\\n/ /g' | tr -s ' ')
        shown=$(tr -s ' \n' ' ' < "$block")
        [[ $said == *"${shown% }"* ]] || complain "$line: $from does not say this: ${shown:0:60}..."
      fi
      ;;
    sh)
      while read -r name; do
        [[ -x $root/$name || ($name == *.sh && -e $root/$name) ]] ||
          complain "$line: there is no script $name"
      done < <(grep -oE 'scripts/[a-z_-]+(\.sh)?' "$block" | sort -u)
      while read -r name; do
        [[ -d $root/examples/${name#example_} ]] || complain "$line: there is no examples/${name#example_}"
      done < <(grep -oE 'example_[0-9]+_[a-z0-9_]+' "$block" | sort -u)
      ;;
  esac
done < "$work/blocks"

while IFS=: read -r line _ calls; do
  calls=${calls# }
  calls=${calls% -->}
  if [[ ! -e $root/$calls ]] || ! compiled "$calls"; then
    complain "$line: there is no compiled $calls"
    continue
  fi
  code=$(sed '/^ *\/\//d' "$root/$calls" | tr -s ' \n' ' ')
  while read -r span; do
    span=${span//\`/}
    [[ $code == *"$span"* ]] || complain "$line: $span is not in $calls"
  done < <(awk '/^```/ { open = !open; next } !open' "$readme" | tr '\n' ' ' |
    grep -oE '`[^`]*`' | grep -E '[A-Za-z_>]\([^)]')
done < <(grep -nE '^<!-- calls: .* -->$' "$readme")

while IFS=: read -r line link; do
  link=${link#](}
  link=${link%)}
  [[ $link == http* || $link == \#* || -e $(dirname "$readme")/${link%%#*} ]] || complain "$line: there is no $link"
done < <(awk '/^```/ { open = !open } { print open ? "" : $0 }' "$readme" |
  grep -noE '\]\([^)]+\)')
echo "$(wc -l < "$work/blocks") blocks"
exit $status
