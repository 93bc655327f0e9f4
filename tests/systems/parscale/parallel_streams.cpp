// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Parallel streams: weights against the plain formula, a single stream that is the plain operator,
// prefixes that make streams differ, a matrix that is read once for all streams with the same bits,
// and wrong sizes.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/random.hpp>
#include <heddle/systems/parscale/parallel_streams.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"

namespace test_parallel_streams {

using namespace heddle;

namespace {

std::vector<double> normals(std::size_t count, std::uint64_t seed, const char* name) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = Random(seed, name).normal(i);
  return values;
}

systems::StreamGate gate_of(std::size_t streams, std::size_t width, std::size_t hidden,
                            std::uint64_t seed) {
  return {streams,
          width,
          hidden,
          0.1,
          normals(hidden * streams * width, seed, "first"),
          normals(streams * hidden, seed, "second")};
}

/// Attention of the input over the keys and values of a stream's prefix, and a residual.
std::vector<double> attend(std::span<const double> input, const std::vector<double>& prefix) {
  const std::size_t n = input.size();
  std::vector<double> out(input.begin(), input.end());
  double sum = 0;
  for (std::size_t t = 0; t * 2 * n < prefix.size(); ++t) {
    double score = 0;
    for (std::size_t i = 0; i < n; ++i) score += input[i] * prefix[t * 2 * n + i];
    sum += std::exp(score);
  }
  for (std::size_t t = 0; t * 2 * n < prefix.size(); ++t) {
    double score = 0;
    for (std::size_t i = 0; i < n; ++i) score += input[i] * prefix[t * 2 * n + i];
    for (std::size_t i = 0; i < n; ++i) out[i] += std::exp(score) / sum * prefix[t * 2 * n + n + i];
  }
  return out;
}

}  // namespace

TEST_CASE("the weights of streams sum to 1, are at least e / P, and follow the formula") {
  for (std::uint64_t seed = 0; seed < test::cases(60, 3'000); ++seed) {
    const std::size_t streams = 1 + seed % 9;
    const std::size_t width = 1 + seed % 5;
    const std::size_t hidden = 1 + seed % 7;
    const systems::StreamGate gate = gate_of(streams, width, hidden, seed);
    const std::vector<double> outputs = normals(streams * width, seed, "outputs");
    const std::vector<double> weights = gate.weights(outputs);
    std::vector<double> scores(streams, 0);
    for (std::size_t h = 0; h < hidden; ++h) {
      double unit = 0;
      for (std::size_t i = 0; i < outputs.size(); ++i)
        unit += gate.first[h * outputs.size() + i] * outputs[i];
      unit /= 1 + std::exp(-unit);
      for (std::size_t p = 0; p < streams; ++p) scores[p] += gate.second[p * hidden + h] * unit;
    }
    double all = 0;
    for (const double score : scores) all += std::exp(score);
    double sum = 0;
    std::vector<double> expected(width, 0);
    for (std::size_t p = 0; p < streams; ++p) {
      const double weight = 0.9 * std::exp(scores[p]) / all + 0.1 / static_cast<double>(streams);
      CHECK(std::abs(weights[p] - weight) < 1e-12);
      CHECK(weights[p] >= 0.1 / static_cast<double>(streams));
      sum += weights[p];
      for (std::size_t i = 0; i < width; ++i) expected[i] += weight * outputs[p * width + i];
    }
    CHECK(std::abs(sum - 1) < 1e-14);
    const std::vector<double> combined = gate.combine(outputs);
    for (std::size_t i = 0; i < width; ++i) CHECK(std::abs(combined[i] - expected[i]) < 1e-11);
  }
}

TEST_CASE("streams with prefixes are combined, and a single stream is the plain operator") {
  constexpr std::size_t width = 6;
  const std::vector<double> input = normals(width, 1, "input");
  for (const std::size_t streams : {1, 2, 4}) {
    std::vector<std::vector<double>> prefixes;
    for (std::size_t p = 0; p < streams; ++p)
      prefixes.push_back(normals(5 * 2 * width, p, "prefix"));
    int calls = 0;
    const auto map = [&](std::span<const double> inputs, std::span<double> outputs) {
      ++calls;
      for (std::size_t p = 0; p < streams; ++p)
        std::ranges::copy(attend(inputs.subspan(p * width, width), prefixes[p]),
                          outputs.begin() + static_cast<std::ptrdiff_t>(p * width));
    };
    const systems::StreamGate gate = gate_of(streams, width, 3, 5);
    const std::vector<double> found = systems::parallel_streams(input, gate, map);
    CHECK(calls == 1);
    std::vector<double> outputs;
    for (const auto& prefix : prefixes)
      for (const double value : attend(input, prefix)) outputs.push_back(value);
    CHECK(found == gate.combine(outputs));
    if (streams == 1) CHECK(found == attend(input, prefixes[0]));
    // Equal prefixes: the weights sum to 1, so the result is that of one stream.
    for (auto& prefix : prefixes) prefix = prefixes[0];
    const std::vector<double> equal = systems::parallel_streams(input, gate, map);
    for (std::size_t i = 0; i < width; ++i)
      CHECK(std::abs(equal[i] - attend(input, prefixes[0])[i]) < 1e-14);
  }
}

TEST_CASE("a matrix is read once for all streams, and every stream has its own bits") {
  for (const std::size_t columns : {1, 3, 4, 17, 64})
    for (const std::size_t streams : {0, 1, 2, 3, 4, 5, 7, 8, 9}) {
      constexpr std::size_t rows = 11;
      const auto check = [&]<class T>(T) {
        std::vector<T> matrix, inputs;
        for (const double value : normals(rows * columns, 3, "matrix"))
          matrix.push_back(static_cast<T>(value));
        for (const double value : normals(streams * columns, 4, "inputs"))
          inputs.push_back(static_cast<T>(value));
        std::size_t reads = 0;
        const auto row = [&](std::size_t r) {
          ++reads;
          return matrix.data() + r * columns;
        };
        std::vector<T> together(streams * rows), apart(rows);
        systems::multiply_streams<T>(rows, columns, row, inputs, together);
        CHECK(reads == rows);
        bool same = true;
        double error = 0;
        for (std::size_t p = 0; p < streams; ++p) {
          systems::multiply_streams<T>(
              rows, columns, row, std::span<const T>(inputs).subspan(p * columns, columns), apart);
          for (std::size_t r = 0; r < rows; ++r) {
            same = same && together[p * rows + r] == apart[r];
            double sum = 0;
            for (std::size_t j = 0; j < columns; ++j)
              sum += static_cast<double>(matrix[r * columns + j]) *
                     static_cast<double>(inputs[p * columns + j]);
            error = std::max(error, std::abs(sum - static_cast<double>(apart[r])));
          }
        }
        CHECK(same);
        CHECK(error < (sizeof(T) == 4 ? 1e-4 : 1e-13));
        CHECK(reads == rows * (1 + streams));  // the loop reads it once for each stream
      };
      check(float{});
      check(double{});
    }
}

TEST_CASE("wrong sizes of streams are named") {
  using Catch::Matchers::ContainsSubstring;
  systems::StreamGate gate = gate_of(2, 3, 4, 1);
  const std::vector<double> outputs(6, 1);
  const auto message = [&] {
    return test::message_of<contract_error>([&] { (void)gate.weights(outputs); });
  };
  gate.smoothing = 1.5;
  CHECK_THAT(message(), ContainsSubstring("smoothing = 1.5"));
  gate.smoothing = 0.1;
  gate.second.pop_back();
  CHECK_THAT(message(), ContainsSubstring("layers of 24 and 7 numbers"));
  std::vector<float> result(4);
  CHECK_THAT(test::message_of<contract_error>([&] {
               systems::multiply_streams<float>(
                   2, 3, [&](std::size_t) { return result.data(); }, std::vector<float>(7),
                   std::span(result));
             }),
             ContainsSubstring("a matrix of 2 x 3, 7 numbers of input"));
}

}  // namespace test_parallel_streams
