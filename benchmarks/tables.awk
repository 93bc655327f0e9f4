# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# awk -f verdict.awk -f tables.awk bars.csv results.csv DOCUMENT: prints DOCUMENT with the lines between its markers made anew from the results. The markers are
#   <!-- results: begin --> and <!-- results: end -->

function number_of(key, row) {
  return value[key, row] (low[key, row] == "" ? "" : " (" low[key, row] ".." high[key, row] ")")
}
function judged(key, row) {
  return verdict(value[key, row], low[key, row], high[key, row], comparison[key], threshold[key])
}
function unit_of(key) { return unit[key] == "x" || unit[key] == "of_1" ? "" : " " unit[key] }

# Every result, in the order of the bars.
function print_results(   i, key, row, place, last) {
  print "| line | median (interval) | bar | verdict | machine, date |"
  print "|---|---|---|---|---|"
  for (i = 1; i <= bars; ++i) {
    key = bar[i]
    for (row = 1; row <= rows[key]; ++row) {
      split(key, place, " ")
      printf "| %s | %s%s | %s %s | %s | %s, %s |\n",
        (row > 1 ? "" : "`" place[1] "` " place[2]), number_of(key, row), unit_of(key),
        comparison[key], threshold[key], judged(key, row), machine[key, row], date[key, row]
    }
  }
}
FNR == 1 { ++file; split("", columns) }
FILENAME ~ /bars\.csv$/ {
  split($0, columns, ",")
  if (columns[3] !~ /^[<>]=$/) next
  key = columns[1] " " columns[2]
  bar[++bars] = key
  comparison[key] = columns[3]; threshold[key] = columns[4]; unit[key] = columns[5]
  next
}
FILENAME ~ /results\.csv$/ {
  if (FNR == 1) next
  split($0, columns, ",")
  key = columns[1] " " columns[2]
  row = ++rows[key]
  value[key, row] = columns[3]; low[key, row] = columns[4]; high[key, row] = columns[5]
  machine[key, row] = columns[6]; date[key, row] = columns[7]
  next
}
/^<!-- results: begin/ {
  print
  print ""
  print_results()
  print ""
  inside = found = 1
  next
}
/^<!-- results: end/ { inside = 0 }
!inside
END {
  if (!found) { print "tables: no markers" > "/dev/stderr"; failed = 1 }
  exit failed
}
