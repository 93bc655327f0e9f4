#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# compare_results.sh REFERENCE OTHER: are the results in two folders, NAME.txt as written by
# examples/common/results.hpp, the same? Integers to the last digit; floats where they differ by at
# most their file's tolerance times the largest magnitude of REFERENCE's values. Both folders must
# have the same files. One line per file; status 1 where one differs.
set -uo pipefail
reference=$1
other=$2
status=0
mapfile -t names < <(cd "$reference" && find . -name '*.txt' -printf '%P\n' | sort)
mapfile -t others < <(cd "$other" && find . -name '*.txt' -printf '%P\n' | sort)
if ((${#names[@]} == 0)); then echo "no results in $reference"; exit 1; fi
if [[ ${names[*]} != "${others[*]}" ]]; then
  echo "other files: ${names[*]} in $reference, ${others[*]} in $other"
  status=1
fi
for name in "${names[@]}"; do
  [[ -e $other/$name ]] || continue
  awk -v name="${name%.txt}" '
    function fail(why) { printf "%s: %s\n", name, why; failed = 1; exit 1 }
    function size(x) { return x < 0 ? -x : x }
    FNR == 1 { file += 1; if ($0 != "heddle results 1") fail("not in the format that is compared") }
    FNR == 2 { if (file == 1) kind = $0; else if ($0 != kind) fail("of kind " $0 ", not " kind) }
    FNR <= 2 { next }
    file == 1 { want[++wants] = $1; if (size($1) > largest) largest = size($1); next }
    { got[++gots] = $1 }
    END {
      if (failed) exit 1
      if (wants != gots) fail(gots " values, not " wants)
      number = "-?[0-9]+(\\.[0-9]+)?(e[-+]?[0-9]+)?"
      if (kind !~ "^(integers|floats " number ")$") fail("of no kind that is compared: " kind)
      split(kind, word, " ")
      for (i = 1; i <= wants; ++i) {
        if (word[1] == "integers") {
          if (want[i] "" != got[i] "") fail("value " i " is " got[i] ", not " want[i])
          continue
        }
        # What is not a number equals nothing, not even itself.
        if (want[i] !~ "^" number "$" || got[i] !~ "^" number "$")
          fail("value " i " is " got[i] ", not " want[i])
        apart = size(got[i] - want[i])
        if (apart > worst) worst = apart
        if (apart > word[2] * largest)
          fail("value " i " is " got[i] ", not " want[i] " (tolerance " word[2] " of " largest ")")
      }
      if (largest) worst /= largest
      if (word[1] == "integers") printf "%s: %d integers equal\n", name, wants
      else printf "%s: %d floats within %g of the largest, tolerance %s\n", name, wants, worst, word[2]
    }
  ' "$reference/$name" "$other/$name" || status=1
done
exit $status
