// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4 7 8

// A gradient from gathered factors equals the sum of the ranks' own.

#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/heddle.hpp>
#include <heddle/systems/hap/sum_by_factors.hpp>

namespace test_sufficient_factors {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using Exec = Kokkos::DefaultHostExecutionSpace;

namespace {

template <class Real>
using Matrix = Kokkos::View<Real**, Kokkos::LayoutRight, Kokkos::HostSpace>;

template <class Real>
Real number(const char* name, std::size_t row, std::size_t column, bool whole) {
  const double drawn = 8 * hd::Random(3, name).uniform(row * 1000 + column) - 4;
  return static_cast<Real>(whole ? std::floor(drawn) : drawn);
}

/// This rank's rows, and NaN where the others' are to arrive.
template <class Real>
Matrix<Real> own_rows(const char* name, std::size_t rows, std::size_t columns, std::size_t first,
                      std::size_t count, bool whole) {
  const Matrix<Real> matrix(name, rows, columns);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c)
      matrix(r, c) = r >= first && r < first + count ? number<Real>(name, r, c, whole)
                                                     : std::numeric_limits<Real>::quiet_NaN();
  return matrix;
}

}  // namespace

TEMPLATE_TEST_CASE("factors gathered and multiplied are the sum of the gradients", "", float,
                   double) {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto p = static_cast<std::size_t>(comm.size());
  const std::size_t me = +comm.rank();
  const std::size_t inputs = 7, outputs = 5;
  for (const bool whole : {true, false}) {
    for (const bool even : {true, false}) {
      for (const auto algorithm : {std::optional<hd::schedule::Algorithm>{},
                                   std::optional{hd::schedule::Algorithm::ring}}) {
        std::vector<std::size_t> counts(p, 3);
        for (std::size_t r = 0; r < p && !even; ++r) counts[r] = r * r;  // rank 0 has none
        const std::size_t rows = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
        const std::size_t first =
            std::accumulate(counts.begin(), counts.begin() + me, std::size_t{0});
        const auto x = own_rows<TestType>("x", rows, inputs, first, counts[me], whole);
        const auto dy = own_rows<TestType>("dy", rows, outputs, first, counts[me], whole);
        const Matrix<TestType> gradient("gradient", inputs, outputs);
        hd::CallOptions options{.algorithm = algorithm};
        if (!even) options.counts = counts;
        hd::systems::sum_by_factors(Exec{}, x, dy, gradient, comm, options);
        Exec{}.fence();

        Matrix<TestType> sum("sum", inputs, outputs), bound("bound", inputs, outputs);
        for (std::size_t r = first; r < first + counts[me]; ++r)
          for (std::size_t i = 0; i < inputs; ++i)
            for (std::size_t j = 0; j < outputs; ++j) {
              const TestType term =
                  number<TestType>("x", r, i, whole) * number<TestType>("dy", r, j, whole);
              sum(i, j) += term;
              bound(i, j) += std::abs(term);
            }
        hd::all_reduce(Exec{}, sum, hd::Sum{}, comm);
        hd::all_reduce(Exec{}, bound, hd::Sum{}, comm);
        // Whole numbers are exact. Else both sums err by one rounding for each row, and the product
        // by two more.
        const auto share =
            static_cast<TestType>(2 * rows + 2) * std::numeric_limits<TestType>::epsilon();
        for (std::size_t i = 0; i < inputs; ++i)
          for (std::size_t j = 0; j < outputs; ++j)
            REQUIRE(std::abs(gradient(i, j) - sum(i, j)) <= (whole ? 0 : share * bound(i, j)));
      }
    }
  }
}

TEST_CASE("layers without inputs or samples have gradients, too") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const Matrix<double> none("x", 0, 3), nothing("dy", 0, 2), gradient("gradient", 3, 2);
  Kokkos::deep_copy(gradient, 1.0);
  hd::systems::sum_by_factors(Exec{}, none, nothing, gradient, comm);
  Exec{}.fence();
  CHECK((gradient(0, 0) == 0 && gradient(2, 1) == 0));
  const auto rows = static_cast<std::size_t>(comm.size());
  const Matrix<double> narrow("x", rows, 0), dy("dy", rows, 2), empty("gradient", 0, 2);
  hd::systems::sum_by_factors(Exec{}, narrow, dy, empty, comm);
}

TEST_CASE("factors that do not fit are refused") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const Matrix<double> x("x", 4, 3), dy("dy", 4, 2), gradient("gradient", 3, 2);
  const auto why = [&](const Matrix<double>& a, const Matrix<double>& b, const Matrix<double>& c,
                       const hd::CallOptions& options) {
    std::string message;
    try {
      hd::systems::sum_by_factors(Exec{}, a, b, c, comm, options);
    } catch (const hd::contract_error& error) {
      message = error.what();
    }
    return message;
  };
  CHECK_THAT(why(x, Matrix<double>("dy", 5, 2), gradient, {}),
             ContainsSubstring("dy has the wrong shape (it is 5 x 2, expected 4 x 2)"));
  CHECK_THAT(why(x, dy, Matrix<double>("gradient", 2, 3), {}),
             ContainsSubstring("the gradient has the wrong shape (it is 2 x 3, expected 3 x 2)"));
  CHECK_THAT(why(x, dy, gradient, {.counts = {1, 1, 1, 1, 1}}),
             ContainsSubstring("CallOptions::counts do not fit the ranks or the View"));
}

}  // namespace test_sufficient_factors
