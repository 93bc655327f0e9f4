#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# chains.sh INCLUDE NAME...: headers, named as they are included, in lines. A unit that includes a line
# from left to right is as strict as a unit for each header: what stands left of a header is included
# by it anyway, so nothing reaches it that it does not ask for.
set -euo pipefail
cd "$1"
shift
grep -oE '^ *# *include *<[^>]+>' $(find heddle -name '*.hpp' | sort) |
  sed -E 's/:.*</ /; s/>//' |
  awk -v names="$*" '
    { includes[$1] = includes[$1] " " $2 }
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
        for (j = i - 1; j >= 1; --j) if (!taken[j] && (header[i], header[j]) in reached) break
        if (j >= 1) { taken[j] = 1; line[i] = line[j] " " }
        line[i] = line[i] header[i]
      }
      for (i = 1; i <= count; ++i) if (!taken[i]) print line[i]
    }'
