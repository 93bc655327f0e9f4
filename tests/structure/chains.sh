#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# chains.sh INCLUDE NAME...: headers, named as they are included, in lines. A unit that includes a line
# from left to right is as strict as a unit for each header: what stands left of a header is included
# by it anyway, so nothing reaches it that it does not ask for.
set -euo pipefail
cd "$1"
shift
awk -v names="$*" '
    # What is included under a condition is not counted on.
    FNR == 1 { depth = 0 }
    /^ *# *if/ { ++depth }
    /^ *# *endif/ { --depth }
    depth == 0 && /^ *# *include *</ {
      match($0, /<[^>]+>/)
      includes[FILENAME] = includes[FILENAME] " " substr($0, RSTART + 1, RLENGTH - 2)
    }
    # All that a header brings, itself among it: reached[root, name].
    function reach(root, name,    list, n, i) {
      if ((root, name) in reached) return
      reached[root, name]
      ++size[root]
      n = split(includes[name], list)
      for (i = 1; i <= n; ++i) reach(root, list[i])
    }
    END {
      count = split(names, header)
      for (i = 1; i <= count; ++i) reach(header[i], header[i])
      for (i = 2; i <= count; ++i)  # the small ones first
        for (j = i; j > 1 && size[header[j]] < size[header[j - 1]]; --j) {
          swap = header[j]; header[j] = header[j - 1]; header[j - 1] = swap
        }
      # Each goes to the right of the largest that it includes and that nothing stands right of yet.
      for (i = 1; i <= count; ++i) {
        for (j = i - 1; j >= 1; --j)
          if (!taken[j] && (header[i], header[j]) in reached &&
              !((header[j], header[i]) in reached)) break  # each of two that include each other is first
        if (j >= 1) { taken[j] = 1; line[i] = line[j] " " }
        line[i] = line[i] header[i]
      }
      for (i = 1; i <= count; ++i) if (!taken[i]) print line[i]
    }' $(find heddle -name '*.hpp' | sort)
