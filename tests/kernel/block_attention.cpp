// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// also on: heddle::Athread

// Attention block by block, and by whole rows of probabilities: keys in any blocks and any order
// give the attention over all of them, forward and backward. States join as a commutative monoid.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_message.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/random.hpp>
#include <heddle/kernel.hpp>
#include <heddle/layout/attention_mask.hpp>

#include "support.hpp"
#include "support/cases.hpp"

namespace test_block_attention {

using heddle::AttentionMask;
using heddle::IndexSet;
using heddle::Random;
using kernel_test::difference;
using kernel_test::Exec;
using kernel_test::largest;
using kernel_test::Tensor;
namespace hk = heddle::kernel;

namespace {

template <class Real>
constexpr double close = std::is_same_v<Real, double> ? 1e-11 : 1e-4;

/// The rows of `set` of a matrix.
template <class Real>
Tensor<Real> rows_of(const Tensor<Real>& all, const IndexSet& set) {
  Tensor<Real> some(static_cast<std::size_t>(set.size()), all.columns());
  for (std::size_t row = 0; row < some.rows(); ++row)
    for (std::size_t c = 0; c < all.columns(); ++c)
      some.at(row * all.columns() + c) =
          all.at(static_cast<std::size_t>(set[static_cast<std::int64_t>(row)]), c);
  some.push();
  return some;
}

/// Writes `some` to the rows of `set`.
template <class Real>
void put_rows(Tensor<Real>& all, const IndexSet& set, const Tensor<Real>& some) {
  for (std::size_t row = 0; row < some.rows(); ++row)
    for (std::size_t c = 0; c < all.columns(); ++c)
      all.at(static_cast<std::size_t>(set[static_cast<std::int64_t>(row)]) * all.columns() + c) =
          some.at(row, c);
}

/// Deals the positions below n out to `count` blocks, at random, in runs of random lengths.
std::vector<IndexSet> random_blocks(const Random& random, std::size_t n, std::size_t count) {
  std::vector<IndexSet> blocks(count);
  std::uint64_t draw = 0;
  for (std::size_t begin = 0; begin < n;) {
    const std::size_t end = std::min<std::size_t>(n, begin + 1 + random.below(draw++, 9));
    blocks[random.below(draw++, count)].add(
        {static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end)});
    begin = end;
  }
  return blocks;
}

/// A sequence of `n` positions: its input, and the gradient of its output.
template <class Real>
struct Sequence {
  hk::AttentionHeads heads;
  Tensor<Real> q, k, v, output_grad;
  Sequence(std::size_t n, const hk::AttentionHeads& h)
      : heads(h),
        q(n, h.query_columns(), "q"),
        k(n, h.kv_columns(), "k"),
        v(n, h.kv_columns(), "v"),
        output_grad(n, h.query_columns(), "output_grad") {}
  [[nodiscard]] std::size_t size() const { return q.rows(); }
};

/// What is computed from a Sequence.
template <class Real>
struct Result {
  Tensor<Real> output, max, sum, q_grad, k_grad, v_grad;
  explicit Result(const Sequence<Real>& s)
      : output(s.size(), s.heads.query_columns()),
        max(s.size(), s.heads.heads),
        sum(s.size(), s.heads.heads),
        q_grad(s.size(), s.heads.query_columns()),
        k_grad(s.size(), s.heads.kv_columns()),
        v_grad(s.size(), s.heads.kv_columns()) {}
};

template <class Real>
hk::AttentionState<Real, Exec> state_of(const Tensor<Real>& output, const Tensor<Real>& max,
                                        const Tensor<Real>& sum) {
  return {output.view(), max.view(), sum.view()};
}

/// Attention by blocks: for each block of queries the blocks of keys in the order of `keys`.
template <class Real>
Result<Real> by_blocks(const Sequence<Real>& s, const AttentionMask& mask,
                       const std::vector<IndexSet>& queries, const std::vector<IndexSet>& keys,
                       const hk::AttentionTile& tile) {
  Result<Real> all(s);
  Tensor<Real> scratch(tile.scratch_rows(), tile.keys);
  struct Block {
    IndexSet set;
    Tensor<Real> k, v, k_grad, v_grad;
  };
  std::vector<Block> blocks;
  for (const IndexSet& set : keys) {
    const auto count = static_cast<std::size_t>(set.size());
    const std::size_t columns = s.heads.kv_columns();
    blocks.push_back(
        {set, rows_of(s.k, set), rows_of(s.v, set), {count, columns}, {count, columns}});
  }
  for (const IndexSet& set : queries) {
    const auto count = static_cast<std::size_t>(set.size());
    const Tensor<Real> q = rows_of(s.q, set), output_grad = rows_of(s.output_grad, set);
    Tensor<Real> output(count, q.columns()), max(count, s.heads.heads), sum(count, s.heads.heads),
        q_grad(count, q.columns());
    const auto state = state_of(output, max, sum);
    hk::clear_attention(Exec{}, state);
    for (const Block& block : blocks)
      hk::block_attention_forward(Exec{}, s.heads, hk::VisibleKeys<Exec>(set, block.set, mask),
                                  {q.view(), block.k.view(), block.v.view()}, scratch.view(),
                                  state);
    for (const Block& block : blocks)
      hk::block_attention_backward(Exec{}, s.heads, hk::VisibleKeys<Exec>(set, block.set, mask),
                                   {q.view(), block.k.view(), block.v.view()}, state,
                                   output_grad.view(), scratch.view(),
                                   hk::AttentionInputGrad<Real, Exec>{
                                       q_grad.view(), block.k_grad.view(), block.v_grad.view()});
    put_rows(all.output, set, output.pull());
    put_rows(all.max, set, max.pull());
    put_rows(all.sum, set, sum.pull());
    put_rows(all.q_grad, set, q_grad.pull());
  }
  for (Block& block : blocks) {
    put_rows(all.k_grad, block.set, block.k_grad.pull());
    put_rows(all.v_grad, block.set, block.v_grad.pull());
  }
  return all;
}

/// Attention by whole rows of probabilities, with the keys in these blocks.
template <class Real>
Result<Real> by_rows(const Sequence<Real>& s, const AttentionMask& mask,
                     const std::vector<IndexSet>& keys) {
  const Real nothing = std::numeric_limits<Real>::quiet_NaN();  // scores that nothing has written
  Result<Real> all(s);
  const std::size_t rows = s.heads.heads * s.size();
  Tensor<Real> max(rows, 1, -std::numeric_limits<Real>::infinity()), sum(rows, 1, 0);
  struct Block {
    IndexSet set;
    hk::VisibleKeys<Exec> visible;
    Tensor<Real> k, v, k_grad, v_grad, scores, score_grad;
  };
  std::vector<Block> blocks;
  for (const IndexSet& set : keys) {
    const auto count = static_cast<std::size_t>(set.size());
    const std::size_t columns = s.heads.kv_columns();
    blocks.push_back({set,
                      {IndexSet(static_cast<std::int64_t>(s.size())), set, mask},
                      rows_of(s.k, set),
                      rows_of(s.v, set),
                      {count, columns},
                      {count, columns},
                      {rows, count, nothing},
                      {rows, count, nothing}});
    Block& block = blocks.back();
    hk::impl::attention_scores(Exec{}, s.heads, block.visible, s.q.view(), block.k.view(),
                               block.scores.view());
    hk::impl::add_to_softmax_sums(Exec{}, s.heads, block.visible, block.scores.view(), max.flat(),
                                  sum.flat());
  }
  for (const Block& block : blocks) {
    hk::impl::scores_to_probabilities(Exec{}, s.heads, block.visible, max.flat(), sum.flat(),
                                      block.scores.view());
    hk::attend(Exec{}, s.heads, block.visible, block.scores.view(), block.v.view(),
               all.output.view());
  }
  for (Block& block : blocks) {
    hk::impl::attention_values_backward(Exec{}, s.heads, block.visible, block.scores.view(),
                                        block.v.view(), all.output.view(), s.output_grad.view(),
                                        block.score_grad.view(), block.v_grad.view());
    hk::impl::attention_scores_backward(Exec{}, s.heads, block.visible, block.score_grad.view(),
                                        s.q.view(), block.k.view(), all.q_grad.view(),
                                        block.k_grad.view());
    put_rows(all.k_grad, block.set, block.k_grad.pull());
    put_rows(all.v_grad, block.set, block.v_grad.pull());
  }
  all.output.pull();
  all.q_grad.pull();
  max.pull();
  sum.pull();
  for (std::size_t i = 0; i < s.size(); ++i)
    for (std::size_t head = 0; head < s.heads.heads; ++head) {
      all.max.at(i * s.heads.heads + head) = max.at(head * s.size() + i);
      all.sum.at(i * s.heads.heads + head) = sum.at(head * s.size() + i);
    }
  return all;
}

/// The definition, in double, pair by pair.
template <class Real>
Result<double> by_definition(const Sequence<Real>& s, const AttentionMask& mask) {
  const Sequence<double> shape(s.size(), s.heads);
  Result<double> all(shape);
  const std::size_t n = s.size(), width = s.heads.head_width;
  const double scale = 1 / std::sqrt(static_cast<double>(width));
  const auto in = [](const Tensor<Real>& t, std::size_t row, std::size_t column) {
    return static_cast<double>(t.at(row, column));
  };
  for (std::size_t head = 0; head < s.heads.heads; ++head) {
    const std::size_t first = head * width, kv = s.heads.kv_head(head) * width;
    const std::size_t columns = s.heads.query_columns(), kv_columns = s.heads.kv_columns();
    for (std::size_t i = 0; i < n; ++i) {
      const auto sees = [&](std::size_t j) {
        if (mask.causal && j > i) return false;
        return std::ranges::none_of(mask.segments, [&](std::int64_t begin) {
          const auto b = static_cast<std::size_t>(begin);
          return (i < b) != (j < b);
        });
      };
      std::vector<double> p(n);
      double max = -std::numeric_limits<double>::infinity(), sum = 0, along = 0;
      for (std::size_t j = 0; j < n; ++j) {
        double score = 0;
        for (std::size_t d = 0; d < width; ++d) score += in(s.q, i, first + d) * in(s.k, j, kv + d);
        p[j] = score * scale;
        if (sees(j)) max = std::max(max, p[j]);
      }
      for (std::size_t j = 0; j < n; ++j) {
        p[j] = sees(j) ? std::exp(p[j] - max) : 0;
        sum += p[j];
      }
      all.max.at(i * s.heads.heads + head) = max;
      all.sum.at(i * s.heads.heads + head) = sum;
      for (std::size_t j = 0; j < n; ++j) {
        p[j] /= sum;
        for (std::size_t d = 0; d < width; ++d)
          all.output.at(i * columns + first + d) += p[j] * in(s.v, j, kv + d);
      }
      for (std::size_t d = 0; d < width; ++d)
        along += all.output.at(i, first + d) * in(s.output_grad, i, first + d);
      for (std::size_t j = 0; j < n; ++j) {
        double gradient = -along;
        for (std::size_t d = 0; d < width; ++d)
          gradient += in(s.output_grad, i, first + d) * in(s.v, j, kv + d);
        gradient *= p[j] * scale;
        for (std::size_t d = 0; d < width; ++d) {
          all.q_grad.at(i * columns + first + d) += gradient * in(s.k, j, kv + d);
          all.k_grad.at(j * kv_columns + kv + d) += gradient * in(s.q, i, first + d);
          all.v_grad.at(j * kv_columns + kv + d) += p[j] * in(s.output_grad, i, first + d);
        }
      }
    }
  }
  return all;
}

/// Compares relative to the largest entry, or to `floor` if all are smaller.
template <class A, class B>
void check_close(const Tensor<A>& ours, const Tensor<B>& expected, double floor = 0) {
  CHECK(difference(ours, expected) <= close<A> * std::max(floor, largest(expected)));
}

/// Compares gradients. A gradient that is small beside the others is the difference of larger
/// numbers, so a hundredth of the largest one is the least that errors are measured against.
template <class A, class B>
void check_close_gradients(const Result<A>& ours, const Result<B>& expected) {
  const double floor = 1e-2 * std::max({largest(expected.q_grad), largest(expected.k_grad),
                                        largest(expected.v_grad)});
  check_close(ours.q_grad, expected.q_grad, floor);
  check_close(ours.k_grad, expected.k_grad, floor);
  check_close(ours.v_grad, expected.v_grad, floor);
}

template <class A, class B>
void check_close(const Result<A>& ours, const Result<B>& expected) {
  check_close(ours.output, expected.output);
  check_close(ours.max, expected.max, 1);
  check_close(ours.sum, expected.sum, 1);
  check_close_gradients(ours, expected);
}

/// Tiles of a few scores, so that short sequences have many, and that of the library.
hk::AttentionTile random_tile(const Random& random) {
  if (random.below(100, 3) == 0) return hk::attention_tile<Exec>;
  return {1 + random.below(101, 12), 1 + random.below(102, 12)};
}

}  // namespace

TEMPLATE_TEST_CASE("block attention: equals attention over the whole sequence", "", double, float) {
  const std::size_t contexts[] = {1, 2, 3, 17, 64, 67, 131};
  for (std::uint64_t c = 0; c < heddle::test::cases(7, 2000); ++c) {
    const Random random(c, "oracle");
    const std::size_t n = contexts[c % std::size(contexts)];
    const hk::AttentionHeads heads{1 + random.below(0, 3), 1, 1 + random.below(1, 8)};
    const hk::AttentionHeads all{heads.heads, heads.heads, heads.head_width};
    INFO("case " << c << ", context " << n << ", heads " << all.heads << " of " << all.head_width);
    const Sequence<TestType> s(n, all);
    const std::size_t width = all.query_columns();

    // The oracle: one matrix of Q | K | V, and all probabilities.
    const hk::AttentionShape shape{1, n, all.heads, width};
    Tensor<TestType> qkv(n, 3 * width), probabilities(shape.probability_rows(), n),
        scratch(shape.probability_rows(), n), grad(n, 3 * width);
    Result<TestType> expected(s);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t d = 0; d < width; ++d) {
        qkv.at(i * 3 * width + d) = s.q.at(i, d);
        qkv.at(i * 3 * width + width + d) = s.k.at(i, d);
        qkv.at(i * 3 * width + 2 * width + d) = s.v.at(i, d);
      }
    qkv.push();
    hk::attention_forward(Exec{}, shape, qkv.view(), probabilities.view(), expected.output.view());
    hk::attention_backward_input(Exec{}, shape, qkv.view(), probabilities.view(),
                                 s.output_grad.view(), scratch.view(), grad.view());
    expected.output.pull();
    grad.pull();
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t d = 0; d < width; ++d) {
        expected.q_grad.at(i * width + d) = grad.at(i, d);
        expected.k_grad.at(i * width + d) = grad.at(i, width + d);
        expected.v_grad.at(i * width + d) = grad.at(i, 2 * width + d);
      }

    const Result<TestType> ours =
        by_blocks(s, {}, random_blocks(Random(c, "queries"), n, 1 + random.below(2, 3)),
                  random_blocks(Random(c, "keys"), n, 1 + random.below(3, 5)), random_tile(random));
    check_close(ours.output, expected.output);
    check_close_gradients(ours, expected);
  }
}

TEMPLATE_TEST_CASE("block attention: every mask and number of K,V heads, by the definition", "",
                   double, float) {
  const std::size_t contexts[] = {0, 1, 5, 13, 37, 71};
  for (std::uint64_t c = 0; c < heddle::test::cases(24, 5000); ++c) {
    const Random random(c, "masks");
    const std::size_t n = contexts[c % std::size(contexts)];
    const std::size_t group = std::size_t{1} << random.below(0, 3);
    const std::size_t kv_heads = 1 + random.below(1, 2);
    const hk::AttentionHeads heads{group * kv_heads, kv_heads, 1 + random.below(2, 7)};
    AttentionMask mask{.causal = random.below(3, 2) == 0};
    for (std::size_t begin = 0; begin < n; ++begin)
      if (random.below(1000 + begin, 12) == 0)
        mask.segments.push_back(static_cast<std::int64_t>(begin));
    INFO("case " << c << ", context " << n << ", causal " << mask.causal << ", segments "
                 << mask.segments.size() << ", heads " << heads.heads << " / " << heads.kv_heads
                 << " of " << heads.head_width);
    const Sequence<TestType> s(n, heads);
    const Result<double> expected = by_definition(s, mask);
    const auto keys = random_blocks(Random(c, "keys"), n, 1 + random.below(5, 5));
    check_close(by_blocks(s, mask, random_blocks(Random(c, "queries"), n, 1 + random.below(4, 3)),
                          keys, random_tile(random)),
                expected);
    check_close(by_rows(s, mask, keys), expected);
  }
}

TEST_CASE("block attention: a query that sees nothing keeps its state and gets no gradient") {
  const hk::AttentionHeads heads{2, 1, 3};
  const Sequence<double> s(6, heads);
  const hk::AttentionTile tile{4, 3};
  Tensor<double> scratch(tile.scratch_rows(), tile.keys, 99);
  IndexSet early, late;
  early.add({0, 6});
  late.add({6, 12});
  const double nothing = -std::numeric_limits<double>::infinity();
  const AttentionMask masks[] = {{}, {.causal = false, .segments = {6}}};
  for (const AttentionMask& mask : masks) {
    const hk::VisibleKeys<Exec> visible(early, late, mask);
    CHECK(visible.pairs() == 0);
    Tensor<double> output(6, heads.query_columns(), 7), max(6, heads.heads, 7),
        sum(6, heads.heads, 7);
    const auto state = state_of(output, max, sum);
    hk::clear_attention(Exec{}, state);
    hk::block_attention_forward(Exec{}, heads, visible, {s.q.view(), s.k.view(), s.v.view()},
                                scratch.view(), state);
    output.pull();
    for (const double value : output.values()) CHECK(value == 0);
    for (const double value : max.pull().values()) CHECK(value == nothing);
    for (const double value : sum.pull().values()) CHECK(value == 0);
    Tensor<double> q_grad(6, heads.query_columns(), 1.5), k_grad(6, heads.kv_columns(), 2.5),
        v_grad(6, heads.kv_columns(), 3.5);
    hk::block_attention_backward(
        Exec{}, heads, visible, {s.q.view(), s.k.view(), s.v.view()}, state, s.output_grad.view(),
        scratch.view(),
        hk::AttentionInputGrad<double, Exec>{q_grad.view(), k_grad.view(), v_grad.view()});
    for (const double value : q_grad.pull().values()) CHECK(value == 1.5);
    for (const double value : k_grad.pull().values()) CHECK(value == 2.5);
    for (const double value : v_grad.pull().values()) CHECK(value == 3.5);
  }

  // Some rows of a tile see nothing: query 0 has no key before position 1.
  IndexSet keys;
  keys.add({1, 7});
  const hk::VisibleKeys<Exec> visible(early, keys, {});
  CHECK(visible.pairs() == 15);
  Tensor<double> output(6, heads.query_columns()), max(6, heads.heads), sum(6, heads.heads);
  Tensor<double> q_grad(6, heads.query_columns()), k_grad(6, heads.kv_columns()),
      v_grad(6, heads.kv_columns());
  const auto state = state_of(output, max, sum);
  hk::clear_attention(Exec{}, state);
  hk::block_attention_forward(Exec{}, heads, visible, {s.q.view(), s.k.view(), s.v.view()},
                              scratch.view(), state);
  hk::block_attention_backward(
      Exec{}, heads, visible, {s.q.view(), s.k.view(), s.v.view()}, state, s.output_grad.view(),
      scratch.view(),
      hk::AttentionInputGrad<double, Exec>{q_grad.view(), k_grad.view(), v_grad.view()});
  output.pull();
  max.pull();
  sum.pull();
  q_grad.pull();
  for (std::size_t h = 0; h < 2; ++h) CHECK(max.at(0, h) == nothing);
  for (std::size_t h = 0; h < 2; ++h) CHECK(sum.at(0, h) == 0);
  for (std::size_t d = 0; d < 6; ++d) {
    CHECK(output.at(0, d) == 0);
    CHECK(q_grad.at(0, d) == 0);
    CHECK(output.at(1, d) == s.v.at(0, d % 3));  // one key: its value
  }
  for (const Tensor<double>* t : {&output, &q_grad, &k_grad.pull(), &v_grad.pull()})
    for (const double value : t->values()) CHECK(std::isfinite(value));
}

TEMPLATE_TEST_CASE("block attention: states join to the attention over all keys", "", double,
                   float) {
  for (std::uint64_t c = 0; c < heddle::test::cases(6, 1000); ++c) {
    const Random random(c, "join");
    const std::size_t n = 1 + random.below(0, 40);
    const hk::AttentionHeads heads{2 * (1 + random.below(1, 2)), 2, 1 + random.below(2, 6)};
    INFO("case " << c << ", context " << n);
    const Sequence<TestType> s(n, heads);
    const IndexSet all(static_cast<std::int64_t>(n));
    const auto blocks = random_blocks(Random(c, "keys"), n, 3);
    const hk::AttentionTile tile = random_tile(random);
    Tensor<TestType> scratch(tile.scratch_rows(), tile.keys);

    // A state in one piece for each block of keys; the causal mask leaves some rows empty.
    const std::size_t size = hk::impl::attention_state_size(heads, n);
    CHECK(size == n * heads.heads * (heads.head_width + 2));
    std::vector<Tensor<TestType>> parts;
    const auto at = [&](const Tensor<TestType>& t) {
      return hk::impl::attention_state_at<Exec>(t.view().data(), heads, n);
    };
    for (const IndexSet& set : blocks) {
      parts.emplace_back(1, size);
      hk::clear_attention(Exec{}, at(parts.back()));
      const Tensor<TestType> k = rows_of(s.k, set), v = rows_of(s.v, set);
      hk::block_attention_forward(Exec{}, heads, hk::VisibleKeys<Exec>(all, set, {}),
                                  {s.q.view(), k.view(), v.view()}, scratch.view(),
                                  at(parts.back()));
      parts.back().pull();
    }
    const auto joined = [&](const Tensor<TestType>& a, const Tensor<TestType>& b) {
      Tensor<TestType> result(1, size);
      for (std::size_t i = 0; i < size; ++i) result.at(i) = a.at(i);
      result.push();
      hk::join_attention(Exec{}, heads, at(b), at(result));
      return result.pull();
    };
    const auto equal = [&](const Tensor<TestType>& a, const Tensor<TestType>& b, double bound) {
      for (std::size_t i = 0; i < size; ++i)
        if (a.at(i) != b.at(i)) REQUIRE(std::abs(a.at(i) - b.at(i)) <= bound);
    };
    Tensor<TestType> identity(1, size);
    hk::clear_attention(Exec{}, at(identity));
    identity.pull();
    for (const auto& part : parts) {
      equal(joined(part, identity), part, 0);
      equal(joined(identity, part), part, 0);
    }
    const double bound = close<TestType> * 5;  // values are of the order of 1
    equal(joined(parts[0], parts[1]), joined(parts[1], parts[0]), bound);
    const auto left = joined(joined(parts[0], parts[1]), parts[2]);
    equal(left, joined(parts[0], joined(parts[1], parts[2])), bound);

    const Result<TestType> whole = by_blocks(s, {}, {all}, {all}, tile);
    for (std::size_t i = 0; i < whole.output.size(); ++i)
      REQUIRE(std::abs(left.at(i) - whole.output.at(i)) <= bound);
    const std::size_t outputs = whole.output.size(), rows = whole.max.size();
    for (std::size_t i = 0; i < rows; ++i) {
      REQUIRE(left.at(outputs + i) == whole.max.at(i));
      REQUIRE(std::abs(left.at(outputs + rows + i) - whole.sum.at(i)) <= bound);
    }
  }
}

TEST_CASE("block attention: large scores neither overflow nor lose a far smaller block") {
  const hk::AttentionHeads heads{1, 1, 1};
  Sequence<float> s(4, heads);
  const float q[] = {1, 1, 1, 1}, k[] = {300, -300, 299, 90}, v[] = {1, 2, 3, 4};
  for (std::size_t i = 0; i < 4; ++i) {
    s.q.at(i) = q[i];
    s.k.at(i) = k[i];
    s.v.at(i) = v[i];
  }
  s.q.push();
  s.k.push();
  s.v.push();
  std::vector<IndexSet> single(4);
  for (std::int64_t i = 0; i < 4; ++i)
    single[static_cast<std::size_t>(i)].add({3 - i, 4 - i});  // the last key first
  const AttentionMask all{.causal = false};
  check_close(by_blocks(s, all, {IndexSet(4)}, single, {1, 1}), by_definition(s, all));
}

TEST_CASE("attention: the weights of large scores that are exact keep all digits") {
  const hk::AttentionHeads heads{1, 1, 1};
  const std::size_t n = 40;
  Sequence<float> s(n, heads);
  for (std::size_t i = 0; i < n; ++i) {
    s.q.at(i) = 128;  // scores of 10000 - 1/2 k
    s.k.at(i) = 78.125f - static_cast<float>(Random(1, "keys").below(i, 20)) / 256;
  }
  s.q.push();
  s.k.push();
  const AttentionMask all{.causal = false};
  const Result<double> expected = by_definition(s, all);
  const auto keys = random_blocks(Random(2, "blocks"), n, 4);
  for (const Result<float>& ours :
       {by_blocks(s, all, {IndexSet(n)}, keys, {7, 5}), by_rows(s, all, keys)}) {
    CHECK(difference(ours.max, expected.max) == 0);
    for (const auto part : {&Result<float>::sum, &Result<float>::output, &Result<float>::v_grad}) {
      const Tensor<double>& right = part == &Result<float>::sum      ? expected.sum
                                    : part == &Result<float>::output ? expected.output
                                                                     : expected.v_grad;
      CHECK(difference(ours.*part, right) <= 1e-6 * largest(right));
    }
  }
}

TEST_CASE("block attention: the visible pairs are those that the mask leaves") {
  const auto pairs = [](const IndexSet& q, const IndexSet& k, const AttentionMask& mask) {
    return hk::VisibleKeys<Exec>(q, k, mask).pairs();
  };
  const IndexSet all(100);
  CHECK(pairs(all, all, {}) == 5050);
  CHECK(pairs(all, all, {.causal = false}) == 10000);
  CHECK(pairs(all, all, {.causal = true, .segments = {0, 10, 40}}) == 55 + 465 + 1830);
  CHECK(pairs(all, all, {.causal = false, .segments = {10, 40}}) == 100 + 900 + 3600);
  CHECK(pairs(IndexSet{}, all, {}) == 0);
  CHECK(pairs(all, IndexSet{}, {.causal = false}) == 0);
}

TEST_CASE("block attention: rejects what does not fit") {
  using Catch::Matchers::ContainsSubstring;
  const hk::AttentionHeads heads{2, 1, 3};
  const Tensor<double> q(4, 6), kv(5, 3), softmax(4, 2), scratch(2, 1), narrow(1, 1);
  const hk::VisibleKeys<Exec> visible(IndexSet(4), IndexSet(5), {});
  const auto forward = [&](const hk::AttentionHeads& of, const Tensor<double>& keys,
                           const Tensor<double>& room) {
    hk::block_attention_forward(Exec{}, of, visible, {q.view(), keys.view(), kv.view()},
                                room.view(), state_of(q, softmax, softmax));
  };
  CHECK_THROWS_WITH(
      forward({2, 3, 3}, kv, scratch),
      ContainsSubstring("the number of heads must be a multiple of the number of K,V heads"));
  CHECK_THROWS_WITH(forward({2, 0, 3}, kv, scratch), ContainsSubstring("kv_heads 0"));
  CHECK_THROWS_WITH(forward(heads, q, scratch),
                    ContainsSubstring("keys has the wrong shape") &&
                        ContainsSubstring("it is 4 x 6, expected 5 x 3"));
  CHECK_THROWS_WITH(
      forward(heads, kv, narrow),
      ContainsSubstring("the scratch is too small for a tile") && ContainsSubstring("it is 1 x 1"));
  CHECK_THROWS_WITH(hk::VisibleKeys<Exec>(IndexSet(4), IndexSet(4), {.segments = {2, 2}}),
                    ContainsSubstring("the segments do not ascend") &&
                        ContainsSubstring("segment 1 begins at position 2; expected at least 3"));
}

}  // namespace test_block_attention
