#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# headers.sh RULES INCLUDE_DIR [MORE_DIRS...]: the form of every header, and of the sources in
# MORE_DIRS: head, guard, length (at most 400 lines in INCLUDE_DIR and 800 elsewhere), width, plain ASCII,
# nothing left unfinished, an umbrella per room but not per system, and threads only where a start that
# fails is handled.
# One line per offence, exit status 1 where there is any.
set -euo pipefail
rules=$1
include=$2
shift 2
status=0

check() {  # check 1|0 (headers or not) LONGEST files...
  awk -v headers="$1" -v longest="$2" '
    function report(text) { print text; bad = 1 }
    FNR == 1 { head = $0 }
    FNR == 2 && (head != "// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception" ||
                 $0 != "// SPDX-FileCopyrightText: The Heddle contributors") {
      report(FILENAME ": the first two lines are not the SPDX head")
    }
    FNR == 3 && headers && $0 != "#pragma once" { report(FILENAME ":3: not #pragma once") }
    FNR == 5 && headers && $0 != "/// @file" { report(FILENAME ":5: not /// @file") }
    length($0) > 100 { report(FILENAME ":" FNR ": " length($0) " columns, the limit is 100") }
    /\t/ { report(FILENAME ":" FNR ": a tab") }
    /[ ]$/ { report(FILENAME ":" FNR ": blanks at the end of the line") }
    /TODO|FIXME|XXX/ { report(FILENAME ":" FNR ": unfinished: " $0) }
    headers && /std::(j?thread|async)([^:a-z_]|$)|pthread_create/ &&
    FILENAME != "core/internal/threads.ipp" {
      report(FILENAME ":" FNR ": only core/internal/threads.hpp starts threads")
    }
    FNR == longest + 1 { report(FILENAME ": more than " longest " lines") }
    END { exit bad }
  ' "${@:3}" || status=1
  if LC_ALL=C grep -n '[^ -~	]' "${@:3}" /dev/null; then
    echo "these lines are not plain ASCII"
    status=1
  fi
}

cd "$include"
mapfile -t files < <(find . -name '*.[hi]pp' -printf '%P\n' | LC_ALL=C sort)
((${#files[@]} > 0)) || { echo "no headers in $include"; exit 1; }
check 1 400 "${files[@]}"
while read -r room _; do
  [[ -n $room && $room != \#* && $room != systems* && -d $room ]] || continue
  [[ -n $(find "$room" -name '*.hpp' -print -quit) ]] || continue
  if [[ ! -e $room.hpp ]]; then
    echo "$room: the room has no umbrella header heddle/$room.hpp"
    status=1
  fi
done < "$rules"
for folder in "$@"; do
  mapfile -t sources < <(find "$folder" \( -name '*.cpp' -o -name '*.hpp' \) \
                         -not -path '*/fixtures/*' | LC_ALL=C sort)
  if ((${#sources[@]} > 0)); then check 0 800 "${sources[@]}"; fi
done
((status == 0)) && echo "${#files[@]} headers are in form"
exit $status
