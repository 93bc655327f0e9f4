// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The arrays of a model's state on this rank and on the others, under common numbers.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/pipeline/impl/held_array.hpp>
#include <heddle/plan/migration.hpp>

namespace heddle::inline v0::impl {

/// Host memory that is aligned for any element.
class HostElements {
 public:
  explicit HostElements(Bytes bytes) : m_words((bytes + sizeof(double) - 1) / sizeof(double)) {}
  [[nodiscard]] std::byte* data() { return reinterpret_cast<std::byte*>(m_words.data()); }

 private:
  std::vector<double> m_words;
};

/// Returns the bytes of [data, data + bytes) that no array has.
[[nodiscard]] inline Bytes bytes_without_name(const std::vector<HeldArray>& held,
                                              const std::byte* data, Bytes bytes) {
  std::vector<std::pair<std::uintptr_t, std::uintptr_t>> ranges;
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t end = begin + bytes;
  for (const HeldArray& each : held) {
    const auto first = reinterpret_cast<std::uintptr_t>(each.data);
    ranges.emplace_back(std::clamp(first, begin, end),
                        std::clamp(first + each.info.bytes(), begin, end));
  }
  std::ranges::sort(ranges);
  Bytes without = 0;
  std::uintptr_t at = begin;
  for (const auto& [first, last] : ranges) {
    if (first > at) without += first - at;
    at = std::max(at, last);
  }
  return without + (end - at);
}

/// Appends the bytes of a number, or of the characters of a name.
template <class N>
void append(std::vector<std::byte>& out, N number) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(&number);
  out.insert(out.end(), bytes, bytes + sizeof(N));
}

/// Returns the infos in the form in which ranks exchange them.
[[nodiscard]] inline std::vector<std::byte> packed(const std::vector<HeldArray>& held) {
  std::vector<std::byte> out;
  for (const HeldArray& each : held) {
    const ArrayInfo& info = each.info;
    append(out, std::int64_t{info.layer});
    append(out, static_cast<std::int64_t>(info.type));
    append(out, info.whole);
    append(out, static_cast<std::int64_t>(info.name.size()));
    for (const char c : info.name) append(out, c);
    append(out, static_cast<std::int64_t>(info.elements.intervals().size()));
    for (const Interval& interval : info.elements.intervals()) {
      append(out, interval.begin);
      append(out, interval.end);
    }
  }
  return out;
}

/// Returns the infos that packed() has packed.
[[nodiscard]] inline std::vector<ArrayInfo> unpacked(std::span<const std::byte> bytes) {
  std::vector<ArrayInfo> infos;
  std::size_t at = 0;
  const auto number = [&] {
    std::int64_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof(value));
    at += sizeof(value);
    return value;
  };
  while (at < bytes.size()) {
    ArrayInfo& info = infos.emplace_back();
    info.layer = static_cast<int>(number());
    info.type = static_cast<Scalar>(number());
    info.whole = number();
    const auto length = static_cast<std::size_t>(number());
    info.name.assign(reinterpret_cast<const char*>(bytes.data()) + at, length);
    at += length;
    for (std::int64_t left = number(); left > 0; --left) {
      const std::int64_t begin = number();
      info.elements.add({begin, number()});
    }
  }
  return infos;
}

/// Returns the indices that are in one of the sets, or in both.
[[nodiscard]] inline IndexSet in_either(const IndexSet& a, const IndexSet& b) {
  const IndexSet more = difference(b, a);
  std::vector<Interval> all(a.intervals().begin(), a.intervals().end());
  all.insert(all.end(), more.intervals().begin(), more.intervals().end());
  std::ranges::sort(all, {}, &Interval::begin);
  IndexSet either;
  for (const Interval& each : all) either.add(each);
  return either;
}

/// The arrays of all ranks under common numbers. All ranks make the same calls.
class ArrayNumbers {
 public:
  explicit ArrayNumbers(const char* where) : m_where(where) {}

  /// Returns what each rank holds. Arrays that are new get the next numbers.
  /// @throws contract_error if ranks see different arrays of one name.
  [[nodiscard]] std::vector<std::vector<plan::HeldElements>> add(
      const std::vector<std::vector<std::byte>>& by_rank) {
    std::vector<std::vector<plan::HeldElements>> all(by_rank.size());
    for (std::size_t r = 0; r < by_rank.size(); ++r) {
      for (const ArrayInfo& info : unpacked(by_rank[r])) {
        const std::size_t array = number(info, r);
        const auto known = info.layer == whole_model  // both copies on this rank
                               ? std::ranges::find(all[r], array, &plan::HeldElements::array)
                               : all[r].end();
        if (known == all[r].end())
          all[r].push_back({array, info.elements});
        else
          known->elements = in_either(known->elements, info.elements);
      }
    }
    return all;
  }

  /// Returns the number of an array that was added.
  [[nodiscard]] std::size_t of(const ArrayInfo& info) const {
    return m_numbers.at({info.layer, info.name});
  }
  /// Returns all arrays. Their `elements` mean nothing.
  [[nodiscard]] const std::vector<ArrayInfo>& arrays() const { return m_arrays; }
  /// Returns the bytes of an element of each array.
  [[nodiscard]] std::vector<Bytes> element_bytes() const {
    std::vector<Bytes> bytes;
    for (const ArrayInfo& info : m_arrays) bytes.push_back(size_of(info.type));
    return bytes;
  }

 private:
  std::size_t number(const ArrayInfo& info, std::size_t rank) {
    const auto [at, added] = m_numbers.try_emplace({info.layer, info.name}, m_arrays.size());
    if (added) m_arrays.push_back(info);
    const ArrayInfo& known = m_arrays[at->second];
    expects(known.type == info.type && known.whole == info.whole, [&] {
      return ErrorInfo{m_where, "ranks see different arrays of one name",
                       text(info.called(), " on rank ", rank, ": ", info.whole, " elements of ",
                            info.type, ", elsewhere ", known.whole, " of ", known.type)};
    });
    return at->second;
  }

  const char* m_where;
  std::map<std::pair<int, std::string>, std::size_t> m_numbers;
  std::vector<ArrayInfo> m_arrays;
};

/// Finds ascending indices of a set.
class IndexCursor {
 public:
  explicit IndexCursor(const IndexSet& set) : m_intervals(set.intervals()) {}
  /// Moves to an index of the set, which is not below the one before.
  void to(std::int64_t index) {
    for (; m_intervals[m_at].end <= index; ++m_at) m_before += m_intervals[m_at].size();
    m_index = index;
  }
  /// Returns the position of the index in the set.
  [[nodiscard]] Bytes position() const {
    return static_cast<Bytes>(m_before + m_index - m_intervals[m_at].begin);
  }
  /// Returns the number of indices of the set that follow without a gap, with this one.
  [[nodiscard]] std::int64_t run() const { return m_intervals[m_at].end - m_index; }

 private:
  std::span<const Interval> m_intervals;
  std::size_t m_at = 0;
  std::int64_t m_before = 0, m_index = 0;
};

/// Copies the elements `which`, which both sets have, between arrays on the host that hold the
/// elements of `from` and `to` in ascending order.
inline void copy_elements(const IndexSet& which, const IndexSet& from, const std::byte* source,
                          const IndexSet& to, std::byte* target, Bytes element) {
  IndexCursor read(from), write(to);
  for (const Interval& each : which.intervals())
    for (std::int64_t at = each.begin; at < each.end;) {
      read.to(at);
      write.to(at);
      const std::int64_t count = std::min({each.end - at, read.run(), write.run()});
      std::memcpy(target + write.position() * element, source + read.position() * element,
                  static_cast<Bytes>(count) * element);
      at += count;
    }
}

}  // namespace heddle::inline v0::impl
