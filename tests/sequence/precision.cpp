// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4
// program: its own
// space: its own

// The errors of attention by every method, against the definition in long double: at most 4 times
// those of one rank, for scores from 1 to 10^4, also where scores are exact and only the softmax
// can lose digits.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/comm/device_mesh.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/small_float.hpp>
#include <heddle/core/text.hpp>
#include <heddle/kernel.hpp>
#include <heddle/sequence.hpp>

#include "support/sequence_case.hpp"
#include "support/world.hpp"

namespace test_sequence_precision {

namespace hd = heddle;
namespace hk = heddle::kernel;
using namespace hd::test::sequence;
using hd::test::world_size;

namespace {

/// The type in which attention computes inputs of a type.
template <class Stored>
using Computed = std::conditional_t<std::is_same_v<Stored, hd::f16>, float, Stored>;

/// The output, and the gradients of Q, K and V.
constexpr std::array<const char*, 4> parts = {"output", "q_grad", "k_grad", "v_grad"};
using Errors = std::array<double, 4>;

/// How the scores of an input come about.
enum class Scores {
  random,  ///< normal numbers: products are rounded
  exact    ///< every score is a number of the type; rows differ by 16ths
};

/// Inputs whose scores are as large as `size`, of numbers that `Stored` has. Heads have 4 columns.
template <class Stored>
Input<Computed<Stored>> input_of(const hd::SequenceShape& shape, Scores scores, double size) {
  using Real = Computed<Stored>;
  Input<Real> made(shape);
  const hd::Random random(3, "precision");
  const std::size_t width = shape.heads.head_width;
  const std::size_t q_end = shape.heads.query_columns(), k_end = q_end + shape.heads.kv_columns();
  REQUIRE(width == 4);
  const double large = std::exp2(std::floor(std::log2(size) / 2));
  for (std::size_t row = 0; row < made.qkv.extent(0); ++row)
    for (std::size_t column = 0; column < made.qkv.extent(1); ++column) {
      Real& value = made.qkv(row, column);
      const bool of_q = column < q_end, of_k = !of_q && column < k_end;
      if (of_q || of_k) {
        // q . k / 2 is largest where both point the same way: 4 columns of at most 3 deviations.
        if (scores == Scores::random)
          value *= static_cast<Real>(std::sqrt(size / 8));
        else if (column % width == 0)  // the same in all rows
          value = static_cast<Real>(of_q ? large : std::floor(2 * size / large));
        else
          value = static_cast<Real>(random.below(row * 100 + column, 17)) - 8;
        if (scores == Scores::exact && of_q && column % width != 0) value /= 8;
      }
      value = static_cast<Real>(static_cast<Stored>(value));
    }
  for (std::size_t i = 0; i < made.output_grad.size(); ++i) {
    Real& value = made.output_grad.data()[i];
    value = static_cast<Real>(static_cast<Stored>(value));
  }
  return made;
}

/// The definition, pair by pair, and how large the terms of its sums are.
struct Definition {
  std::vector<long double> output, qkv_grad;
  Errors terms{};

  template <class Real>
  Definition(const hd::SequenceShape& shape, const Input<Real>& in)
      : output(in.output_grad.size()), qkv_grad(in.qkv.size()) {
    const auto& heads = shape.heads;
    const auto context = static_cast<std::size_t>(shape.context);
    const long double scale = 1 / std::sqrt(static_cast<long double>(heads.head_width));
    const std::size_t columns = shape.qkv_columns(), q_columns = heads.query_columns();
    std::vector<long double> p(context), dp(context);
    for (std::size_t s = 0; s < shape.sequences; ++s)
      for (std::size_t head = 0; head < heads.heads; ++head)
        for (std::size_t i = 0; i < context; ++i) {
          const std::size_t q = head * heads.head_width;
          const std::size_t k = q_columns + heads.kv_head(head) * heads.head_width;
          const std::size_t v = k + heads.kv_columns(), row = s * context + i;
          const std::size_t seen = shape.mask.causal ? i + 1 : context;
          long double max = -std::numeric_limits<long double>::infinity(), sum = 0, along = 0;
          const auto x = [&](std::size_t r, std::size_t c) -> long double { return in.qkv(r, c); };
          const auto go = [&](std::size_t d) -> long double { return in.output_grad(row, q + d); };
          for (std::size_t j = 0; j < seen; ++j) {
            p[j] = dp[j] = 0;
            for (std::size_t d = 0; d < heads.head_width; ++d) {
              p[j] += scale * x(row, q + d) * x(s * context + j, k + d);
              dp[j] += go(d) * x(s * context + j, v + d);
            }
            max = std::max(max, p[j]);
          }
          for (std::size_t j = 0; j < seen; ++j) sum += p[j] = std::exp(p[j] - max);
          for (std::size_t j = 0; j < seen; ++j) along += (p[j] /= sum) * dp[j];
          for (std::size_t j = 0; j < seen; ++j) {
            const std::size_t key = s * context + j;
            const long double ds = p[j] * (dp[j] - along) * scale;
            const auto term = [&](std::size_t part, long double size) {
              terms[part] = std::max(terms[part], static_cast<double>(std::abs(size)));
            };
            for (std::size_t d = 0; d < heads.head_width; ++d) {
              output[row * q_columns + q + d] += p[j] * x(key, v + d);
              qkv_grad[row * columns + q + d] += ds * x(key, k + d);
              qkv_grad[key * columns + k + d] += ds * x(row, q + d);
              qkv_grad[key * columns + v + d] += p[j] * go(d);
              term(0, p[j] * x(key, v + d));
              term(1, p[j] * dp[j] * scale * x(key, k + d));
              term(2, p[j] * dp[j] * scale * x(row, q + d));
              term(3, p[j] * go(d));
            }
          }
        }
  }

  /// The largest errors of this rank's rows.
  template <class Real>
  [[nodiscard]] Errors errors(const hd::SequenceLine<Real, Exec>& line,
                              const hd::SequenceShape& shape, const Results<Real>& ours) const {
    Errors worst{};
    const hd::IndexSet mine = line.positions(shape.context);
    const auto count = static_cast<std::size_t>(mine.size());
    const std::size_t q_end = shape.heads.query_columns();
    const std::size_t k_end = q_end + shape.heads.kv_columns();
    const auto compare = [&](const Real2<Real>& found, const std::vector<long double>& expected,
                             const auto& part_of) {
      for (std::size_t row = 0; row < found.extent(0); ++row) {
        const auto at = row / count * static_cast<std::size_t>(shape.context) +
                        static_cast<std::size_t>(mine[static_cast<std::int64_t>(row % count)]);
        for (std::size_t c = 0; c < found.extent(1); ++c) {
          const auto apart =
              static_cast<double>(std::abs(found(row, c) - expected[at * found.extent(1) + c]));
          double& error = worst[part_of(c)];
          if (!(apart <= error)) error = apart;  // also what is not a number
        }
      }
    };
    compare(ours.output, output, [](std::size_t) { return 0; });
    compare(ours.qkv_grad, qkv_grad, [&](std::size_t c) {
      return c < q_end ? 1 : c < k_end ? 2 : 3;
    });
    return worst;
  }
};

/// A method on a mesh of all ranks.
struct Method {
  int heads_ranks;
  hd::SequenceOptions options;
};

std::vector<Method> methods() {
  using enum hd::SequenceMethod;
  const int p = world_size();
  std::vector<Method> all = {{p, {.method = ulysses}}};
  if (p == 1) return all;
  for (const hd::ShardOrder& order : {hd::ShardOrder(), hd::ShardOrder::zigzag()}) {
    all.push_back({1, {.method = ring, .order = order}});
    all.push_back({1, {.method = ring, .order = order, .ways = 2}});
    all.push_back({1, {.method = rsa, .order = order}});
    all.push_back({1, {.method = token_ring, .order = order}});
    if (p == 4) all.push_back({2, {.method = usp, .order = order}});
  }
  return all;
}

/// The line of a method, with the mesh that it refers to.
template <class Real>
struct MethodLine {
  hd::DeviceMesh mesh;
  hd::SequenceLine<Real, Exec> line;
  bool trains;
  explicit MethodLine(const Method& method)
      : mesh(MPI_COMM_WORLD,
             {{"ring", world_size() / method.heads_ranks}, {"heads", method.heads_ranks}}),
        line(mesh["heads"], mesh["ring"], method.options),
        trains(method.options.method != hd::SequenceMethod::token_ring) {}
};

/// Forward, and backward if the method has one; otherwise the gradients are NaN.
template <class Real>
Results<Real> results(const MethodLine<Real>& method, const hd::SequenceShape& shape,
                      const Input<Real>& all) {
  const auto& line = method.line;
  if (method.trains) return divided(line, shape, all);
  const std::size_t rows = line.rows(shape);
  Results<Real> made{Real2<Real>("output", rows, shape.heads.query_columns()),
                     Real2<Real>("qkv_grad", rows, shape.qkv_columns())};
  const Real1<Real> saved("saved", line.saved_size(shape));
  hd::sequence_attention_forward(line, Exec{}, shape,
                                 rows_of(all.qkv, shape.sequences, line.positions(shape.context)),
                                 saved, made.output);
  return made;
}

/// The errors of one rank: the smaller ones of block attention and of attention that keeps all
/// probabilities, which needs a causal mask and as many K,V heads as heads.
template <class Real>
Errors one_rank(const hd::SequenceShape& shape, const Input<Real>& all,
                const Definition& expected) {
  const hd::SequenceLine<Real, Exec> alone;
  Errors errors = expected.errors(alone, shape, divided(alone, shape, all));
  if (!shape.mask.causal || shape.heads.heads != shape.heads.kv_heads) return errors;
  const hk::AttentionShape whole{shape.sequences, static_cast<std::size_t>(shape.context),
                                 shape.heads.heads, shape.heads.query_columns()};
  const Real2<Real> probabilities("p", whole.probability_rows(), whole.context),
      scratch("s", whole.probability_rows(), whole.context);
  const Results<Real> made{Real2<Real>("output", whole.rows(), whole.width),
                           Real2<Real>("qkv_grad", whole.rows(), 3 * whole.width)};
  hk::attention_forward(Exec{}, whole, all.qkv, probabilities, made.output);
  hk::attention_backward_input(Exec{}, whole, all.qkv, probabilities, all.output_grad, scratch,
                               made.qkv_grad);
  const Errors keeping = expected.errors(alone, shape, made);
  for (std::size_t i = 0; i < errors.size(); ++i) errors[i] = std::min(errors[i], keeping[i]);
  return errors;
}

}  // namespace

TEMPLATE_TEST_CASE("attention by every method: at most 4 times the error of one rank", "", double,
                   float, hd::f16) {
  using Real = Computed<TestType>;
  std::vector<MethodLine<Real>> lines;
  for (const Method& method : methods()) lines.emplace_back(method);
  // The last one has more keys than a tile.
  for (const hd::SequenceShape& shape : {hd::SequenceShape{1, 24, {4, 4, 4}},
                                         {2, 19, {8, 4, 4}, {.causal = false}},
                                         {1, 290, {4, 4, 4}, {.causal = false}}})
    for (const Scores scores : {Scores::random, Scores::exact})
      for (const double size : {1.0, 900.0, 1e4}) {
        if (shape.context > 256 && size != 1e4) continue;
        const Input<Real> all = input_of<TestType>(shape, scores, size);
        const Definition expected(shape, all);
        const Errors alone = one_rank(shape, all, expected);
        for (std::size_t m = 0; m < lines.size(); ++m) {
          Errors ours = expected.errors(lines[m].line, shape, results(lines[m], shape, all));
          MPI_Allreduce(MPI_IN_PLACE, ours.data(), 4, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
          for (std::size_t part = 0; part < (lines[m].trains ? 4u : 1u); ++part) {
            const double rounding = 2 * std::numeric_limits<Real>::epsilon() * expected.terms[part];
            INFO(hd::text(lines[m].line.method(shape), " number ", m, " of ", shape, ", ",
                          scores == Scores::exact ? "exact" : "random", " scores of ", size, ": ",
                          parts[part], " on one rank is off by ", alone[part],
                          ", of terms as large as ", expected.terms[part]));
            CHECK(ours[part] <= 4 * std::max(alone[part], rounding));
          }
        }
      }
}

TEST_CASE("attention by every method: equal gradients of the values leave no gradient of a score") {
  // Two tokens of one head of width 1; q k = 900 and 899 in float.
  const hd::SequenceShape shape{1, 2, {1, 1, 1}, {.causal = false}};
  Input<float> all(shape);
  for (std::size_t row = 0; row < 2; ++row) {
    all.qkv(row, 0) = 30;
    all.qkv(row, 1) = row == 0 ? 30.0f : 30 - 1 / 30.0f;
    all.qkv(row, 2) = 1;
    all.output_grad(row, 0) = 1;
  }
  for (const Method& method : methods()) {
    if (method.heads_ranks > 1) continue;  // one head
    const MethodLine<float> line(method);
    INFO(hd::text(line.line.method(shape)));
    const Results<float> found = results(line, shape, all);
    for (std::size_t row = 0; row < found.output.extent(0); ++row) {
      CHECK(found.output(row, 0) == 1);
      if (!line.trains) continue;
      CHECK(found.qkv_grad(row, 0) == 0);
      CHECK(found.qkv_grad(row, 1) == 0);
    }
  }
}

}  // namespace test_sequence_precision
