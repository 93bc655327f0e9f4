// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// space: its own

// The forms of kernels that only devices use, run on the host and compared with the host's forms.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <heddle/core/random.hpp>
#include <heddle/kernel.hpp>

namespace test_device_forms {

namespace hk = heddle::kernel;
namespace hki = heddle::kernel::impl;
using Host = Kokkos::DefaultHostExecutionSpace;

namespace {

template <class T>
using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, Host::memory_space>;
template <class T>
using Vector = Kokkos::View<T*, Kokkos::LayoutRight, Host::memory_space>;

/// Normal numbers, f(name, index).
template <class View>
View random(const char* name, const View& view) {
  const heddle::Random numbers(17, name);
  for (std::size_t i = 0; i < view.size(); ++i)
    view.data()[i] = static_cast<typename View::value_type>(numbers.normal(i));
  return view;
}

/// What a kernel writes, in a list.
template <class Real>
struct Results {
  std::vector<Real> values;
  template <class... View>
  void add(const View&... view) {
    (values.insert(values.end(), view.data(), view.data() + view.size()), ...);
  }
};

/// Runs kernels by one thread for a row, or by a team.
struct Rows {
  bool team;
  template <class Kernel>
  void run(std::size_t rows, const Kernel& kernel) const {
    if (team)
      hki::rows_by_team("heddle::test::rows", Host{}, rows, kernel);
    else
      hki::rows_by_thread("heddle::test::rows", Host{}, rows, kernel);
  }
};

/// Compares the two forms of `compute`, which fills Results by kernels over rows of `columns`. A
/// sum of n terms in any order errs by at most n eps times the sum of their magnitudes. A result
/// here depends on at most four such sums, of size 1 relative to the result, each in both orders,
/// and on some ten other roundings.
template <class Real, class Compute>
void compare(std::size_t columns, const Compute& compute) {
  Results<Real> one, team;
  compute(Rows{false}, one);
  compute(Rows{true}, team);
  REQUIRE(one.values.size() == team.values.size());
  Real most = 1;
  for (const Real value : one.values)
    if (std::isfinite(value)) most = std::max(most, std::abs(value));
  const Real bound = static_cast<Real>(8 * columns + 16) * std::numeric_limits<Real>::epsilon();
  for (std::size_t i = 0; i < one.values.size(); ++i) {
    INFO("value " << i << " of " << one.values.size() << ": " << one.values[i] << " and "
                  << team.values[i]);
    const bool same = one.values[i] == team.values[i];
    REQUIRE((same || std::abs(one.values[i] - team.values[i]) <= bound * most));
  }
}

/// Some keys that the rows of a tile see: none, a part or all of `columns`.
hki::TileMask<Host> mask(const Kokkos::View<hk::KeyRange*, Host::memory_space>& ranges,
                         std::size_t columns) {
  const heddle::Random numbers(17, "ranges");
  for (std::size_t row = 0; row < ranges.size(); ++row) {
    const std::size_t begin = numbers.below(2 * row, columns + 1);
    ranges(row) = {5 + begin, 5 + begin + numbers.below(2 * row + 1, columns + 2)};
  }
  return {ranges, 5};
}

constexpr std::size_t some_rows[] = {0, 1, 3, 33}, some_columns[] = {1, 31, 32, 33, 300};

/// Calls body(rows, columns) for odd sizes.
template <class Body>
void for_sizes(const Body& body) {
  for (const std::size_t rows : some_rows)
    for (const std::size_t columns : some_columns) {
      INFO(rows << " x " << columns);
      body(rows, columns);
    }
}

}  // namespace

TEMPLATE_TEST_CASE("layer norm by teams gives what it gives by threads", "", float, double) {
  using Real = TestType;
  for_sizes([](std::size_t rows, std::size_t columns) {
    const auto x = random("x", Matrix<Real>("x", rows, columns));
    const auto grad = random("grad", Matrix<Real>("grad", rows, columns));
    const auto scale = random("scale", Vector<Real>("scale", columns));
    const auto shift = random("shift", Vector<Real>("shift", columns));
    compare<Real>(columns, [&](const Rows& by, Results<Real>& results) {
      const Matrix<Real> z("z", rows, columns), y("y", rows, columns), dx("dx", rows, columns);
      const Vector<Real> inverse("inverse", rows);
      by.run(rows, hki::LayerNormForward<Host, Real>{x, scale, shift, z, inverse, y});
      by.run(rows, hki::LayerNormBackwardInput<Host, Real>{z, inverse, scale, grad, dx});
      Kokkos::deep_copy(z, x);  // in place: the gradient of the input over that of the output
      Kokkos::deep_copy(y, grad);
      by.run(rows, hki::LayerNormBackwardInput<Host, Real>{z, inverse, scale, y, y});
      results.add(inverse, y, dx);
    });
  });
}

TEMPLATE_TEST_CASE("cross-entropy by teams gives what it gives by threads", "", float, double) {
  using Real = TestType;
  for_sizes([](std::size_t rows, std::size_t columns) {
    const auto logits = random("logits", Matrix<Real>("logits", rows, columns));
    const Matrix<std::uint16_t> targets("targets", 1, rows);
    for (std::size_t row = 0; row < rows; ++row)
      targets(0, row) = static_cast<std::uint16_t>(row * 7 % columns);
    const Vector<double> loss("loss", 1);
    double losses[2] = {};
    compare<Real>(columns, [&](const Rows& by, Results<Real>& results) {
      const Matrix<Real> p("p", rows, columns);
      const Vector<Real> row_loss("row_loss", rows);
      Kokkos::deep_copy(p, logits);
      by.run(rows, hki::CrossEntropyRows<Host, Real, std::uint16_t>{p, targets, row_loss});
      by.run(1, hki::CrossEntropySum<Host, Real>{row_loss, loss, 0.25});
      losses[by.team ? 1 : 0] = loss(0);
      results.add(p, row_loss);
      by.run(rows, hki::CrossEntropyBackward<Host, Real, std::uint16_t>{p, targets, p, Real(0.5)});
      results.add(p);
    });
    const double bound = std::is_same_v<Real, float> ? 1e-4 : 1e-12;  // of the rows' losses, above
    REQUIRE(std::abs(losses[0] - losses[1]) <= bound * (1 + losses[0]));
  });
}

TEMPLATE_TEST_CASE("softmax by teams gives what it gives by threads", "", float, double) {
  using Real = TestType;
  for_sizes([](std::size_t most, std::size_t columns) {
    const std::size_t rows = std::min(most, columns), begin = columns - rows;
    const auto scores = random("scores", Matrix<Real>("scores", rows, columns));
    const auto grad = random("grad", Matrix<Real>("grad", rows, columns));
    compare<Real>(columns, [&](const Rows& by, Results<Real>& results) {
      const Matrix<Real> p("p", rows, columns), g("g", rows, columns);
      Kokkos::deep_copy(p, scores);
      Kokkos::deep_copy(g, grad);
      by.run(rows, hki::CausalSoftmax<Host, Real>{p, begin});
      by.run(rows, hki::SoftmaxBackward<Host, Real>{p, g, begin});
      results.add(p, g);
    });
  });
}

TEMPLATE_TEST_CASE("attention of tiles by teams gives what it gives by threads", "", float,
                   double) {
  using Real = TestType;
  for_sizes([](std::size_t rows, std::size_t columns) {
    constexpr std::size_t width = 7;
    const auto scores = random("scores", Matrix<Real>("scores", rows, columns));
    const auto grad = random("grad", Matrix<Real>("grad", rows, columns));
    const auto out = random("out", Matrix<Real>("out", rows, width));
    const auto out_grad = random("out_grad", Matrix<Real>("out_grad", rows, width));
    const Kokkos::View<hk::KeyRange*, Host::memory_space> ranges("ranges", rows);
    const auto seen = mask(ranges, columns);
    compare<Real>(columns, [&](const Rows& by, Results<Real>& results) {
      const Matrix<Real> p("p", rows, columns), g("g", rows, columns), o("o", rows, width);
      const Matrix<Real> max("max", rows, 1), sum("sum", rows, 1);
      const Vector<Real> all_max("all_max", rows), all_sum("all_sum", rows);
      const hk::AttentionState<Real, Host> state{o, max, sum};
      Kokkos::deep_copy(o, out);
      Kokkos::deep_copy(max, -Kokkos::Experimental::infinity_v<Real>);
      Kokkos::deep_copy(all_max, -Kokkos::Experimental::infinity_v<Real>);
      for (int block = 0; block < 2; ++block) {  // the second one finds a state
        Kokkos::deep_copy(p, scores);
        by.run(rows, hki::ContinueSoftmax<Host, Real>{p, state, seen});
        results.add(p, o, max, sum);
        by.run(rows, hki::AddToSoftmaxSums<Host, Real>{scores, all_max, all_sum, seen});
        results.add(all_max, all_sum);
      }
      Kokkos::deep_copy(p, scores);
      Kokkos::deep_copy(g, grad);
      by.run(rows, hki::RecomputeSoftmax<Host, Real>{p, g, state, out_grad, seen});
      results.add(p, g);
      Kokkos::deep_copy(p, scores);
      Kokkos::deep_copy(g, grad);
      by.run(rows, hki::ScoresToProbabilities<Host, Real>{p, all_max, all_sum, seen});
      by.run(rows, hki::RowSoftmaxBackward<Host, Real>{p, g, out, out_grad, seen});
      results.add(p, g);
    });
  });
}

namespace {

/// The largest element of each row.
struct Largest {
  hk::Matrix<const float, Host> matrix;
  hk::Vector<float, Host> to;
  template <class Workers>
  KOKKOS_FUNCTION void operator()(std::size_t row, const Workers& workers) const {
    const float found = workers.largest(&matrix(row, 0), matrix.extent(1));
    workers.once([&] { to(row) = found; });
  }
};

}  // namespace

TEST_CASE("the largest element of a row is exact for teams, also among infinities") {
  constexpr float infinite = std::numeric_limits<float>::infinity();
  const std::size_t columns = GENERATE(1, 31, 33);
  const Matrix<float> matrix("matrix", 3, columns);
  for (std::size_t j = 0; j < columns; ++j) {
    matrix(0, j) = -infinite;
    matrix(1, j) = j + 1 == columns ? -3e38f : -infinite;
    matrix(2, j) = j == columns / 2 ? infinite : static_cast<float>(j);
  }
  const Vector<float> found("found", 3);
  Rows{true}.run(3, Largest{matrix, found});
  CHECK(found(0) == -infinite);
  CHECK(found(1) == -3e38f);
  CHECK(found(2) == infinite);
}

namespace {

struct Product {
  template <class T>
  KOKKOS_FUNCTION T operator()(T x, T y) const {
    return x * y;
  }
};

/// reduce() in the form of devices.
template <class Reducer, class F, class... In>
void reduce_by_teams(const Reducer& reducer, const F& f, const In&... in) {
  const auto walk = hki::make_walk("test", in...);
  const std::size_t elements = hki::reduce_block(walk.size());
  using Block = hki::ReduceBlock<Reducer, F, typename In::non_const_value_type...>;
  hki::reduce_by_teams(
      "heddle::test::reduce", Host{},
      Block{reducer, f, walk, hki::Sources<const typename In::value_type...>(in.data()...),
            elements},
      (walk.size() + elements - 1) / elements);
}

/// The two forms give the same sum and the same largest product, which are exact.
template <class X, class Y>
void compare_reduce(const X& x, const Y& y) {
  std::int64_t sum = 0, by_teams = -1;
  hk::reduce(Host{}, Kokkos::Sum<std::int64_t>(sum), Product{}, x, y);
  reduce_by_teams(Kokkos::Sum<std::int64_t>(by_teams), Product{}, x, y);
  REQUIRE(by_teams == sum);
  hk::reduce(Host{}, Kokkos::Max<std::int64_t>(sum), Product{}, x, y);
  const Kokkos::View<std::int64_t, Host::memory_space> target("target");
  reduce_by_teams(Kokkos::Max<std::int64_t, Host::memory_space>(target), Product{}, x, y);
  REQUIRE(target() == sum);
}

template <class View>
View numbered(const View& view, std::size_t first) {
  for (std::size_t i = 0; i < view.span(); ++i)
    view.data()[i] = static_cast<std::int64_t>((i + first) * 37 % 101) - 50;
  return view;
}

}  // namespace

TEST_CASE("reduce by teams equals reduce on Views without gaps") {
  for (const std::size_t n : {1, 7, 31, 33, 2047, 2048, 2049, 100'003}) {
    using View = Kokkos::View<std::int64_t*, Host::memory_space>;
    compare_reduce(numbered(View("x", n), 0), numbered(View("y", n), 3));
  }
}

TEST_CASE("reduce by teams equals reduce on Views of rows that lie apart") {
  using Right = Kokkos::View<std::int64_t****, Kokkos::LayoutRight, Host::memory_space>;
  using Left = Kokkos::View<std::int64_t****, Kokkos::LayoutLeft, Host::memory_space>;
  const auto x = numbered(Right("x", 9, 12, 11, 40), 0);
  const auto y = numbered(Left("y", 9, 12, 11, 40), 5);
  const auto part = [](const auto& view, int columns) {
    using Range = Kokkos::pair<int, int>;
    return Kokkos::subview(view, Range(1, 9), Range(2, 12), Range(3, 10), Range(1, 1 + columns));
  };
  for (const int columns : {1, 2, 3, 31, 33, 39}) {
    INFO(columns);
    compare_reduce(part(x, columns), part(x, columns));  // three axes of rows
    compare_reduce(part(x, columns), part(y, columns));
    compare_reduce(part(y, columns), part(x, columns));
  }
}

TEST_CASE("a cursor finds the elements of a walk without dividing on its way") {
  using View = Kokkos::View<double****, Kokkos::LayoutRight, Host::memory_space>;
  const View whole("whole", 6, 8, 5, 9);
  using Range = Kokkos::pair<int, int>;
  const auto view =
      Kokkos::subview(whole, Range(1, 5), Range(0, 7), Range(1, 4), Range(2, GENERATE(3, 4, 9)));
  const auto walk = hki::make_walk("test", view);
  REQUIRE(walk.axes >= 2);
  for (const std::size_t distance : {1, 2, 5, 31, 32, 100, 1000})
    for (const std::size_t first : {0, 1, 30}) {
      hki::WalkCursor at(walk, first, distance);
      for (std::size_t e = first; e < walk.size(); e += distance, at.next()) {
        INFO("element " << e << " by " << distance);
        REQUIRE(at.column() == e % walk.columns);
        REQUIRE(at.row().at[0] == walk.row(e / walk.columns).at[0]);
      }
    }
}

namespace {

/// A BLAS with column-major matrices, C = alpha op(A) op(B) + beta C by its definition.
template <class Real>
void column_major(const hki::BlasProduct<Real>& p) {
  const auto at = [](const Real* m, hk::Transpose transpose, int leading, int i, int j) {
    return transpose == hk::Transpose::yes ? m[j + i * leading] : m[i + j * leading];
  };
  for (int j = 0; j < p.columns; ++j)
    for (int i = 0; i < p.rows; ++i) {
      Real sum = 0;
      for (int l = 0; l < p.depth; ++l)
        sum +=
            at(p.a, p.transpose_a, p.leading_a, i, l) * at(p.b, p.transpose_b, p.leading_b, l, j);
      Real& c = p.c[i + j * p.leading_c];
      c = p.alpha * sum + p.beta * c;
    }
}

}  // namespace

TEMPLATE_TEST_CASE("a product by columns is the product by rows", "", float, double) {
  using Real = TestType;
  const auto whole = [](const auto& matrix, std::size_t gap) {  // without the last columns
    using Range = Kokkos::pair<std::size_t, std::size_t>;
    return hk::Matrix<Real, Host>(
        Kokkos::subview(matrix, Range(0, matrix.extent(0)), Range(0, matrix.extent(1) - gap)));
  };
  constexpr std::size_t shapes[][3] = {{1, 1, 1}, {2, 3, 5}, {31, 1, 33}, {1, 33, 7}, {33, 31, 32}};
  for (const auto& [m, n, k] : shapes)
    for (const hk::Transpose ta : {hk::Transpose::no, hk::Transpose::yes})
      for (const hk::Transpose tb : {hk::Transpose::no, hk::Transpose::yes}) {
        const bool a_turned = ta == hk::Transpose::yes, b_turned = tb == hk::Transpose::yes;
        INFO(m << " x " << n << " x " << k << " " << ta << " " << tb);
        const Matrix<Real> a("a", a_turned ? k : m, (a_turned ? m : k) + 2);
        const Matrix<Real> b("b", b_turned ? n : k, (b_turned ? k : n) + 1);
        const Matrix<Real> c("c", m, n + 3), expected("expected", m, n + 3);
        random("a", a), random("b", b), random("c", c), random("c", expected);
        const hk::Matrix<const Real, Host> left = whole(a, 2), right = whole(b, 1);
        hk::team_gemm(Host{}, ta, tb, Real(1.5), left, right, Real(-2), whole(expected, 3));
        column_major(
            hki::blas_product(ta, tb, Real(1.5), left, right, Real(-2), whole(c, 3)).by_columns());
        Host{}.fence();
        // Terms of at most 5 * 5 * 1.5; two orders of k + 1 of them. Beside the matrix, no change.
        const Real bound =
            2 * static_cast<Real>((k + 2) * (k + 2)) * 40 * std::numeric_limits<Real>::epsilon();
        for (std::size_t i = 0; i < m; ++i)
          for (std::size_t j = 0; j < n + 3; ++j)
            REQUIRE(std::abs(c(i, j) - expected(i, j)) <= (j < n ? bound : Real(0)));
      }
}

TEST_CASE("the tiles of a stencil are planned for the scratch memories, not for all threads") {
  CHECK(hki::scratch_count(Host{}) == static_cast<std::size_t>(Host{}.concurrency()));
  // A GPU of 132 multiprocessors with 227 KiB of scratch and 2048 threads each.
  hki::StencilShape<3> shape{{512, 512, 512}, {}, {1, 1, 1}, 8, 0};
  shape.leave_edges();
  const auto plan = hki::plan_stencil(shape, 227 * 1024, 132, 16, 1.08);
  REQUIRE_FALSE(plan.none());
  CHECK(hki::traffic(shape, plan) <= 1.08);
  const std::size_t rounds = (plan.tiles() + 131) / 132;
  CHECK(static_cast<double>(plan.tiles()) >= 0.9 * 132 * static_cast<double>(rounds));
  const auto for_threads = hki::plan_stencil(shape, 227 * 1024, 132 * 2048, 16, 1.08);
  CHECK(for_threads.tiles() > plan.tiles());
}

}  // namespace test_device_forms
