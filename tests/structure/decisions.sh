#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# decisions.sh FOLDER: prints the index of the decisions in FOLDER, which docs/decisions/README.md is. A
# decision begins with `# NUMBER. Title`, and its paragraph `Status:` says accepted or replaced, and which
# other decisions it changes. Status 1 where one has another form.
set -euo pipefail
cd "$1"
cat << 'END'
# Decisions

Each page has the context of a decision, the decision, its alternatives and its consequences. `tests/structure/decisions.sh` writes this
list.

| | decision | status |
|---|---|---|
END
awk '
  function fail(why) { print FILENAME ": " why > "/dev/stderr"; bad = 1 }
  FNR == 1 {
    n = substr(FILENAME, 1, 4) + 0
    order[++count] = n
    file[n] = FILENAME
    if ($0 !~ "^# " n "\\. ") fail("the title does not begin with \"# " n ". \"")
    title[n] = $0
    sub(/^# [0-9]+\. /, "", title[n])
    inside = 0
  }
  /^Status: / { inside = 1 }
  inside && /^$/ { inside = 0 }
  inside { status[n] = status[n] (status[n] == "" ? "" : " ") $0 }
  END {
    for (i = 1; i <= count; ++i) {
      n = order[i]
      if (status[n] !~ /^Status: (accepted|replaced)/) fail_at(n)
      # What it says of decisions before it, and those that it says came later.
      rest = status[n]
      gsub(/\]\([^)]*\)/, "", rest)
      while (match(rest, /[0-9]+/)) {
        other = substr(rest, RSTART, RLENGTH) + 0
        rest = substr(rest, RSTART + RLENGTH)
        earlier = other < n ? other : n
        later = other < n ? n : other
        if (other in file && other != n && index(changed[earlier], " " later ",") == 0)
          changed[earlier] = changed[earlier] " " later ","
      }
    }
    for (i = 1; i <= count; ++i) {
      n = order[i]
      word = status[n] ~ /^Status: replaced/ ? "replaced" : "accepted"
      by = changed[n]
      sub(/,$/, "", by)
      printf "| %d | [%s](%s) | %s%s |\n", n, title[n], file[n], word, by == "" ? "" : (word == "replaced" ? " by" : ", changed by") by
    }
    exit bad
  }
  function fail_at(n) { print file[n] ": no status accepted or replaced" > "/dev/stderr"; bad = 1 }
' 0*.md
