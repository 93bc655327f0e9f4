// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of parallel_streams.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/systems/parscale/parallel_streams.hpp>

namespace heddle::inline v0::systems {

namespace impl {

/// Numbers that vector instructions add at once. A stream has a partial sum for each of them, so
/// the order of its sums does not depend on the compiler or on the number of streams.
template <class T>
inline constexpr std::size_t stream_lanes = 16 / sizeof(T);

template <class T>
struct StreamVector {
  typedef T type __attribute__((vector_size(16)));
};

/// Calls `use(first, size)` for the groups of streams that a row is multiplied with at once.
template <class Use>
void for_stream_groups(std::size_t streams, Use&& use) {
  std::size_t p = 0;
  for (; p + 4 <= streams; p += 4) use(p, std::size_t{4});
  for (; p + 2 <= streams; p += 2) use(p, std::size_t{2});
  if (p < streams) use(p, std::size_t{1});
}

template <class T>
[[nodiscard]] std::vector<T> pack_streams_of(std::span<const T> inputs, std::size_t columns) {
  constexpr std::size_t lanes = stream_lanes<T>;
  std::vector<T> packed;
  for_stream_groups(inputs.size() / columns, [&](std::size_t first, std::size_t size) {
    for (std::size_t j = 0; j < columns; j += lanes)
      for (std::size_t p = first; p < first + size; ++p)
        for (std::size_t i = j; i < j + lanes; ++i)
          packed.push_back(i < columns ? inputs[p * columns + i] : T{0});
  });
  return packed;
}

template <class T>
[[nodiscard]] inline typename StreamVector<T>::type load_stream(const T* numbers) {
  typename StreamVector<T>::type vector;
  std::memcpy(&vector, numbers, sizeof(vector));
  return vector;
}

template <std::size_t streams, class T>
void multiply_row_of(const T* row, std::size_t columns, const T* packed, T* results) {
  using Vector = typename StreamVector<T>::type;
  constexpr std::size_t lanes = stream_lanes<T>;
  Vector sums[streams] = {};
  // With constant indices the sums stay in registers.
  const auto add = [&]<std::size_t... p>(const T* numbers, std::index_sequence<p...>) {
    const Vector factor = load_stream(numbers);
    ((sums[p] += factor * load_stream(packed + p * lanes)), ...);
    packed += streams * lanes;
  };
  constexpr std::make_index_sequence<streams> all{};
  std::size_t j = 0;
  for (; j + lanes <= columns; j += lanes) add(row + j, all);
  if (j < columns) {
    T rest[lanes] = {};
    std::copy(row + j, row + columns, rest);
    add(rest, all);
  }
  for (std::size_t p = 0; p < streams; ++p) {
    results[p] = sums[p][0];
    for (std::size_t i = 1; i < lanes; ++i) results[p] += sums[p][i];
  }
}

template <class T>
void multiply_row_by_groups(const T* row, std::size_t columns, const T* packed, std::size_t streams,
                            T* results) {
  const std::size_t padded = (columns + stream_lanes<T> - 1) / stream_lanes<T> * stream_lanes<T>;
  for_stream_groups(streams, [&](std::size_t first, std::size_t size) {
    const T* const group = packed + first * padded;
    if (size == 4) return multiply_row_of<4>(row, columns, group, results + first);
    if (size == 2) return multiply_row_of<2>(row, columns, group, results + first);
    multiply_row_of<1>(row, columns, group, results + first);
  });
}

HEDDLE_INLINE std::vector<float> pack_streams(std::span<const float> inputs, std::size_t columns) {
  return pack_streams_of(inputs, columns);
}

HEDDLE_INLINE std::vector<double> pack_streams(std::span<const double> inputs,
                                               std::size_t columns) {
  return pack_streams_of(inputs, columns);
}

HEDDLE_INLINE void multiply_row(const float* row, std::size_t columns, const float* packed,
                                std::size_t streams, float* results) {
  multiply_row_by_groups(row, columns, packed, streams, results);
}

HEDDLE_INLINE void multiply_row(const double* row, std::size_t columns, const double* packed,
                                std::size_t streams, double* results) {
  multiply_row_by_groups(row, columns, packed, streams, results);
}

/// Throws contract_error if a number of the gate is not finite.
inline void expect_finite(const StreamGate& gate) {
  for (const auto* const layer : {&gate.first, &gate.second})
    for (std::size_t i = 0; i < layer->size(); ++i)
      expects(std::isfinite((*layer)[i]), [&] {
        return ErrorInfo{"heddle::systems::StreamGate", "a number of the gate is not finite",
                         text(layer == &gate.first ? "first[" : "second[", i, "] = ", (*layer)[i])};
      });
}

}  // namespace impl

HEDDLE_INLINE void impl::check_gate(const StreamGate& gate) {
  std::size_t all = 0, into = 0, out_of = 0;
  const bool counted = !__builtin_mul_overflow(gate.streams, gate.width, &all) &&
                       !__builtin_mul_overflow(gate.hidden, all, &into) &&
                       !__builtin_mul_overflow(gate.streams, gate.hidden, &out_of);
  const bool fits = gate.streams == 1 ||
                    (gate.hidden >= 1 && gate.first.size() == into && gate.second.size() == out_of);
  expects(counted && all >= 1 && fits && gate.smoothing >= 0 && gate.smoothing <= 1, [&] {
    return ErrorInfo{"heddle::systems::StreamGate", "the sizes or the smoothing do not fit",
                     text(gate.streams, " streams of ", gate.width, ", ", gate.hidden,
                          " hidden units, layers of ", gate.first.size(), " and ",
                          gate.second.size(), " numbers, smoothing = ", gate.smoothing),
                     "first has hidden x streams x width numbers, second streams x hidden"};
  });
}

HEDDLE_INLINE std::vector<double> StreamGate::weights(std::span<const double> outputs) const {
  impl::check_gate(*this);
  const std::size_t all = streams * width;
  expects(outputs.size() == all, [&] {
    return ErrorInfo{"heddle::systems::StreamGate", "every stream has an output of `width` numbers",
                     text(streams, " streams of ", width, ", ", outputs.size(), " outputs")};
  });
  if (streams == 1) return {1};
  std::vector<double> units(hidden);
  multiply_streams(
      hidden, all, [&](std::size_t h) { return first.data() + h * all; }, outputs,
      std::span(units));
  for (double& unit : units) unit /= 1 + std::exp(-unit);
  std::vector<double> weights(streams);
  multiply_streams(
      streams, hidden, [&](std::size_t p) { return second.data() + p * hidden; },
      std::span<const double>(units), std::span(weights));
  const double largest = *std::ranges::max_element(weights);
  double sum = 0;
  for (double& weight : weights) sum += weight = std::exp(weight - largest);
  if (!std::isfinite(sum)) impl::expect_finite(*this);
  for (double& weight : weights)
    weight = weight / sum * (1 - smoothing) + smoothing / static_cast<double>(streams);
  return weights;
}

HEDDLE_INLINE std::vector<double> StreamGate::combine(std::span<const double> outputs) const {
  const std::vector<double> shares = weights(outputs);
  if (streams == 1) return {outputs.begin(), outputs.end()};
  std::vector<double> sum(width, 0);
  for (std::size_t p = 0; p < streams; ++p)
    for (std::size_t i = 0; i < width; ++i) sum[i] += shares[p] * outputs[p * width + i];
  return sum;
}

}  // namespace heddle::inline v0::systems
