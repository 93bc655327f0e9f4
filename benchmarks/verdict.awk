# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# The verdict of a bar: "holds", "falls short", "undecided" if the threshold lies within the
# interval LOW..HIGH of the value, or "not a number". Without an interval the value alone decides.
function verdict(value, low, high, comparison, threshold) {
  # Compared as texts: awk takes what is not a number for equal to anything.
  if (value low high ~ /[nN][aA][nN]/) return "not a number"
  threshold += 0
  low = low == "" ? value + 0 : low + 0
  high = high == "" ? value + 0 : high + 0
  if (low < threshold && threshold < high) return "undecided"
  return (comparison == ">=" ? value + 0 >= threshold : value + 0 <= threshold) ? "holds" : "falls short"
}
