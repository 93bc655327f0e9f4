#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# english.sh INCLUDE_DIR ROOM...: the rules of CONTRIBUTING.md ("How we write") that a machine can read,
# in the headers of these rooms: a docstring is a sentence of its own, so it does not begin with a word
# that refers to another sentence; and the field's terms are used. One line per offence, status 1 where
# there is any.
set -euo pipefail
cd "$1"
shift
mapfile -t headers < <(find "$@" -name '*.hpp' | LC_ALL=C sort)
((${#headers[@]} > 0)) || { echo "no headers in $*"; exit 1; }
awk '
  function report(text) { print FILENAME ":" FNR ": " text; bad = 1 }
  function check(sentence) {
    if (match(sentence, /^(Of|Those|What|Likewise|Whose|Where|Which|As|That|And|Or)[ ,:.]/))
      report("a docstring does not begin with \"" substr(sentence, 1, RLENGTH - 1) "\": " sentence)
  }
  FNR == 1 { inside = 0 }
  /^ *\/\/\/($|[^<\/])/ {
    sentence = $0
    sub(/^ *\/\/\/ ?/, "", sentence)
    if (!inside && sentence !~ /^@/) check(sentence)
    inside = 1
  }
  !/^ *\/\/\// { inside = 0 }
  match($0, /\/\/\/< /) {
    sentence = substr($0, RSTART + 5)
    if (sentence ~ /^(of|those|likewise|whose) /)
      report("a docstring does not begin with \"" substr(sentence, 1, index(sentence, " ") - 1) "\": " sentence)
  }
  /^ *\/\// {
    if (/(^|[^a-z])(at hand|on its way|on their way|in turns|dealt out)([^a-z]|$)/)
      report("write the term of the field (CONTRIBUTING.md): " $0)
  }
  END { exit bad }
' "${headers[@]}"
echo "${#headers[@]} headers are in plain English"
