# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# awk -v machine=NAME -v today=DATE -f save.awk bars.csv results.csv OUTPUT: prints results.csv anew,
# in the order of the bars. What benchmarks printed to OUTPUT replaces the lines of this machine; of
# several lines of one bar the last counts. What has no bar is not kept.

function ends(text, key,   part) {
  if (split(text, part, /\.\./) != 2) return
  low[key] = part[1]; high[key] = part[2]
}
FILENAME ~ /bars\.csv$/ {
  split($0, columns, ",")
  if (columns[3] ~ /^[<>]=$/) bar[++bars] = columns[1] " " columns[2]
  next
}
FILENAME ~ /results\.csv$/ {
  if (FNR == 1) { print; next }
  split($0, columns, ",")
  key = columns[1] " " columns[2]
  line[key, ++lines[key]] = $0
  of[key, lines[key]] = columns[6]
  next
}
$1 == "ratio" || $1 == "value" {
  key = $2 " " $3
  value[key] = $4
  if (!(key in exact)) ends($5, key)
}
$1 == "interval" {
  key = $2 " " $3
  exact[key] = 1
  ends($4, key)
}
END {
  for (i = 1; i <= bars; ++i) {
    key = bar[i]
    for (l = 1; l <= lines[key]; ++l)
      if (!(key in value) || of[key, l] != machine) print line[key, l]
    if (!(key in value)) continue
    split(key, place, " ")
    printf "%s,%s,%s,%s,%s,%s,%s\n", place[1], place[2], value[key], low[key], high[key], machine, today
  }
}
