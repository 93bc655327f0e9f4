#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# documented.sh DOXYGEN DOXYFILE INCLUDE_DIR FOLDER: has every public symbol below INCLUDE_DIR a
# docstring, and is every docstring well formed? One line per offence, exit status 1 where there is
# any. Doxygen judges all but concepts, which it does not ask about; it writes into FOLDER.
set -euo pipefail
doxygen=$1
doxyfile=$2
include=$3
folder=$4
rm -rf "$folder"
mkdir -p "$folder"
cd "$include"
status=0
{ cat "$doxyfile"; echo "INPUT = ."; echo "OUTPUT_DIRECTORY = \"$folder\""; } |
  "$doxygen" - 2> "$folder/warnings" > "$folder/output" || status=1
# Paths as the other checks print them, and nothing that is no warning.
sed "s#^$PWD/##" "$folder/warnings"

mapfile -t headers < <(find . -name '*.hpp' -not -path '*/impl/*' -not -path '*/internal/*' -printf '%P\n' | LC_ALL=C sort)
((${#headers[@]} > 0)) || { echo "no headers in $include"; exit 1; }
awk '
  FNR == 1 { above = ""; inside = 0 }
  /^namespace impl / { inside = 1 }
  /^}  \/\/ namespace impl$/ { inside = 0 }
  /^concept / && !inside && above !~ /^\/\/\// { print FILENAME ":" FNR ": concept " $2 " is not documented."; bad = 1 }
  !/^(template <|requires)/ { above = $0 }
  END { exit bad }
' "${headers[@]}" || status=1
((status == 0)) && echo "${#headers[@]} headers are documented"
exit $status
