// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// strided_block_of() what has the members of an mdspan, and std::mdspan where there is one.

#include <array>
#include <cstddef>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#if __has_include(<mdspan>)
#include <mdspan>
#endif

#include <heddle/layout.hpp>

#include "support/complaint.hpp"

namespace test_strided_span {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

/// No more of an mdspan than is asked of it.
template <class T, std::size_t axes>
struct Span {
  using element_type = T;
  using rank_type = std::size_t;
  static constexpr rank_type rank() { return axes; }
  std::size_t extent(rank_type axis) const { return extents[axis]; }
  std::ptrdiff_t stride(rank_type axis) const { return strides[axis]; }
  bool is_strided() const { return strided; }
  T* data_handle() const { return nullptr; }

  std::array<std::size_t, axes> extents{};
  std::array<std::ptrdiff_t, axes> strides{};
  bool strided = true;
};
static_assert(heddle::impl::StridedSpan<Span<int, 2>> &&
              !heddle::impl::StridedSpan<std::vector<int>>);

}  // namespace

TEST_CASE("an mdspan is the bytes of its elements, the last index fastest") {
  CHECK(strided_block_of(Span<double, 3>{{5, 6, 7}, {42, 7, 1}}) == StridedBlock(5 * 6 * 7 * 8));
  CHECK(strided_block_of(Span<const float, 2>{{3, 5}, {1, 3}}) ==
        StridedBlock(4).repeated(5, 12).repeated(3, 4));
  CHECK(strided_block_of(Span<char, 2>{{3, 5}, {-20, 2}}) ==
        StridedBlock(1).repeated(5, 2).repeated(3, -20));
  CHECK(strided_block_of(Span<double, 0>{}) == StridedBlock(8));
  CHECK(strided_block_of(Span<double, 2>{{3, 0}, {1, 1}}) == StridedBlock());
#if defined(__cpp_lib_mdspan)
  const std::array<double, 6> six{};
  CHECK(strided_block_of(std::mdspan(six.data(), 2, 3)) == StridedBlock(48));
#endif
}

TEST_CASE("an mdspan whose layout has no strides is refused") {
  CHECK_THAT(test::message_of<contract_error>([] {
               (void)strided_block_of(Span<int, 1>{{4}, {1}, false});
             }),
             ContainsSubstring("heddle::strided_block_of: the layout has no strides"));
}

}  // namespace test_strided_span
