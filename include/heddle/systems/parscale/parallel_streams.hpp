// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// parallel_streams(): one operator on several variants of an input, and the weighted sum of the
/// results. multiply_streams() reads a matrix once for the vectors of all variants.

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>

namespace heddle::inline v0::systems {

namespace impl {

/// Returns the vectors of `columns` numbers of all streams in the order in which multiply_row()
/// reads them: interleaved in groups of streams, and padded with zeros.
[[nodiscard]] std::vector<float> pack_streams(std::span<const float> inputs, std::size_t columns);
/// Packs vectors of doubles.
[[nodiscard]] std::vector<double> pack_streams(std::span<const double> inputs, std::size_t columns);

/// Multiplies one row of a matrix with the packed vectors of `streams` streams. The sums of a
/// stream have the same order for any number of streams.
void multiply_row(const float* row, std::size_t columns, const float* packed, std::size_t streams,
                  float* results);
/// Multiplies a row of doubles.
void multiply_row(const double* row, std::size_t columns, const double* packed, std::size_t streams,
                  double* results);

}  // namespace impl

/// Multiplies a matrix with the vectors of all streams. `row(r)` returns the r-th row, a pointer to
/// `columns` numbers, and is called once for each row, in order, whatever the number of streams. If
/// the matrix does not fit into the caches, the product therefore takes little longer for a few
/// streams than for one, because it waits for the memory. `inputs` has the vectors of the streams
/// one after another; `outputs` gets one vector of `rows` numbers after another. The result of a
/// stream is the same, bit by bit, for any number of streams.
///
/// Rows are independent, so threads may divide them.
/// @throws contract_error if the inputs or the outputs are not the same number of whole vectors.
template <std::floating_point T, class Row>
requires std::is_invocable_r_v<const T*, Row&, std::size_t>
void multiply_streams(std::size_t rows, std::size_t columns, Row&& row, std::span<const T> inputs,
                      std::span<T> outputs) {
  const std::size_t streams = columns == 0 ? 0 : inputs.size() / columns;
  std::size_t results_of_all = 0;
  expects(columns >= 1 && inputs.size() == streams * columns &&
              !__builtin_mul_overflow(streams, rows, &results_of_all) &&
              outputs.size() == results_of_all,
          [&] {
            return ErrorInfo{
                "heddle::systems::multiply_streams", "the vectors do not fit the matrix",
                text("a matrix of ", rows, " x ", columns, ", ", inputs.size(),
                     " numbers of input, ", outputs.size(), " of output"),
                "give each stream one input of all columns and one output of all rows"};
          });
  const std::vector<T> packed = impl::pack_streams(inputs, columns);
  std::vector<T> results(streams);
  for (std::size_t r = 0; r < rows; ++r) {
    impl::multiply_row(row(r), columns, packed.data(), streams, results.data());
    for (std::size_t p = 0; p < streams; ++p) outputs[p * rows + r] = results[p];
  }
}

/// The learned weights of parallel streams: the sizes and the numbers of a network of two layers,
/// which sees the outputs of all streams. Matrices are stored row by row.
struct StreamGate {
  std::size_t streams = 1;          ///< number of streams, P
  std::size_t width = 1;            ///< numbers in the output of a stream
  std::size_t hidden = 1;           ///< units of the hidden layer
  double smoothing = 0.1;           ///< share of the weights that is divided evenly, from 0 to 1
  std::vector<double> first = {};   ///< hidden x (streams width)
  std::vector<double> second = {};  ///< streams x hidden

  /// Returns the weight of every stream. Let y be the vector of all `outputs`, one stream after
  /// another, and s the softmax of the `streams` numbers second * silu(first * y), with silu(x) =
  /// x / (1 + exp(-x)). A stream p has the weight s_p (1 - e) + e / P with e = `smoothing`. The
  /// weights sum to 1, and each is at least e / P. A single stream has the weight 1.
  /// @throws contract_error if a size does not fit, if `smoothing` is out of range, or if the
  ///         result is no number because `first` or `second` has an entry that is not finite.
  [[nodiscard]] std::vector<double> weights(std::span<const double> outputs) const;
  /// Returns the sum of the outputs of all streams with their weights.
  /// @throws contract_error as weights().
  [[nodiscard]] std::vector<double> combine(std::span<const double> outputs) const;
};

namespace impl {

/// Checks the sizes and the smoothing of a gate. @throws contract_error as StreamGate::weights().
void check_gate(const StreamGate& gate);

}  // namespace impl

/// Applies `map` to `gate.streams` copies of `input` and returns the weighted sum of its outputs.
/// `map(inputs, outputs)` is called once. It reads the copies one after another and writes an
/// output of `gate.width` numbers for each. What makes the streams differ is learned and belongs to
/// the map, such as a prefix of keys and values for each stream. The map has all streams at once,
/// so that it can read its matrices once, by multiply_streams(). With one stream the result is the
/// output of the map.
///
/// This is the parallel scaling of ParScale (Chen et al., 2025).
/// @throws contract_error as StreamGate::weights(); what `map` throws.
template <class Map>
requires std::invocable<Map&, std::span<const double>, std::span<double>>
[[nodiscard]] std::vector<double> parallel_streams(std::span<const double> input,
                                                   const StreamGate& gate, Map&& map) {
  impl::check_gate(gate);
  std::vector<double> inputs;
  for (std::size_t p = 0; p < gate.streams; ++p)
    inputs.insert(inputs.end(), input.begin(), input.end());
  std::vector<double> outputs(gate.streams * gate.width);
  map(std::span<const double>(inputs), std::span<double>(outputs));
  return gate.combine(outputs);
}

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/parscale/parallel_streams.ipp>
#endif
