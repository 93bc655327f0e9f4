#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# systems.sh ROOT: every row of docs/systems.md has a page docs/systems/<name>.md with the same title and the
# same status, every page is in a row, has all sections, and a command or the reason for none, and every
# folder of include/heddle/systems has a page and a folder of tests. One line per offence, status 1 where
# there is any.
set -euo pipefail
cd "$1"
status=0
complain() { echo "$1"; status=1; }
# | [Name](systems/name.md) | pattern | status |
rows=$(sed -nE 's#^\| \[(.+)\]\(systems/([a-z0-9_]+)\.md\) \| .+ \| (.+) \|$#\2\t\1\t\3#p' docs/systems.md)
[[ -n $rows ]] || { echo "docs/systems.md has no rows"; exit 1; }
while IFS=$'\t' read -r page name state; do
  file=docs/systems/$page.md
  [[ -e $file ]] || { complain "docs/systems.md: $name has no page $file"; continue; }
  [[ $(sed -n 1p "$file") == "# $name" ]] || complain "$file:1: the title is not \"# $name\""
  written=$(sed -nE 's/^Status: (full|in part|formula only|nothing to implement)[.:].*/\1/p' "$file")
  [[ $written == "$state" ]] || complain "$file: the status is '$written', and '$state' in docs/systems.md"
  if [[ $written != "nothing to implement" ]]; then
    for section in "What the paper claims" "The mechanism in Heddle" "Run it on your own data" Results "Not reproduced" Missing; do
      grep -qx "## $section" "$file" || complain "$file: there is no section \"$section\""
    done
    # tests/systems/pages runs the commands.
    run=$(awk '/^## / { here = /^## Run it/ } here' "$file")
    [[ $run == *'```sh'* || $run =~ ([Nn]o\ (example\ or\ )?tool|There\ is\ no\ command|is\ a\ call\ in\ C\+\+) ]] ||
      complain "$file: no command runs it, and the page does not say why"
  fi
done <<< "$rows"
for file in docs/systems/*.md; do
  grep -q "^$(basename "$file" .md)"$'\t' <<< "$rows" || complain "$file: no row of docs/systems.md leads here"
done
for folder in include/heddle/systems/*/; do
  name=$(basename "$folder")
  [[ -e docs/systems/$name.md ]] || complain "$folder: there is no docs/systems/$name.md"
  [[ -n $(ls "tests/systems/$name" 2> /dev/null) ]] || complain "$folder: there is no test in tests/systems/$name"
done
((status == 0)) && echo "$(wc -l <<< "$rows") systems have their pages"
exit $status
