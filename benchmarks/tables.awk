# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# awk -v table=docs|readme -f verdict.awk -f tables.awk bars.csv results.csv [readme.csv] DOCUMENT:
# prints DOCUMENT with the lines between its markers made anew from the results. The markers are
#   <!-- results: begin --> and <!-- results: end -->

function number_of(key, row) {
  return value[key, row] (low[key, row] == "" ? "" : " (" low[key, row] ".." high[key, row] ")")
}
function judged(key, row) {
  return verdict(value[key, row], low[key, row], high[key, row], comparison[key], threshold[key])
}
# The newest result of `key`, the last line of those of one day; 0 if there is none.
function newest(key,   row, found) {
  for (row = 1; row <= rows[key]; ++row)
    if (!found || date[key, row] >= date[key, found]) found = row
  return found
}
function unit_of(key) { return unit[key] == "x" || unit[key] == "of_1" ? "" : " " unit[key] }

# Every result, in the order of the bars.
function print_docs(   i, key, row, place, last) {
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
# The newest results of the bars that each row names.
function print_readme(   i, parts, part, key, row, measured, limits, verdicts, each, same, comma) {
  print "| | measured | bar | verdict |"
  print "|---|---|---|---|"
  for (i = 1; i <= labels; ++i) {
    parts = split(label[i], part, ";")
    measured = limits = verdicts = comma = ""
    same = 1
    for (key = 2; key <= parts; ++key) {
      row = newest(part[key])
      if (!(part[key] in comparison)) { print "tables: no bar " part[key] > "/dev/stderr"; failed = 1 }
      each[key] = row ? judged(part[key], row) : "not measured"
      measured = measured comma (row ? number_of(part[key], row) unit_of(part[key]) : "not measured")
      limits = limits comma comparison[part[key]] " " threshold[part[key]]
      verdicts = verdicts comma each[key]
      same = same && each[key] == each[2]
      comma = ", "
    }
    printf "| %s | %s | %s | %s |\n", part[1], measured, limits, same ? each[2] : verdicts
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
FILENAME ~ /readme\.csv$/ { if ($0 !~ /^#/) label[++labels] = $0; next }
/^<!-- results: begin/ {
  print
  print ""
  if (table == "docs") print_docs(); else print_readme()
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
