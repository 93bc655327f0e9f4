// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <Kokkos_DualView.hpp>

#include "support/space_battery.hpp"

namespace test_space_views {

using namespace space_test;

namespace {

template <class View>
struct Number {  // element (i, j) = 1000 i + j
  View to;
  KOKKOS_FUNCTION void operator()(int i, int j) const { to(i, j) = 1000 * i + j; }
};

template <class Space, class View>
void number(const View& view) {
  Kokkos::parallel_for("heddle::test::number",
                       Kokkos::MDRangePolicy<Space, Kokkos::Rank<2>>(
                           {0, 0}, {static_cast<std::int64_t>(view.extent(0)),
                                    static_cast<std::int64_t>(view.extent(1))}),
                       Number<View>{view});
}

template <class View>
[[nodiscard]] bool is_numbered(const View& view, int first_row = 0, int first_column = 0) {
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view);
  for (std::size_t i = 0; i < host.extent(0); ++i)
    for (std::size_t j = 0; j < host.extent(1); ++j)
      if (host(i, j) !=
          1000 * (first_row + static_cast<int>(i)) + first_column + static_cast<int>(j))
        return false;
  return true;
}

template <class Space>
using Left = Kokkos::View<int**, Kokkos::LayoutLeft, Space>;
template <class Space>
using Right = Kokkos::View<int**, Kokkos::LayoutRight, Space>;

}  // namespace

TEMPLATE_LIST_TEST_CASE("Views start at zero and are copied, between layouts too", "", Spaces) {
  const TestType space;
  for (const std::size_t rows : {0, 1, 7, 131})
    for (const std::size_t columns : {0, 1, 64, 257}) {
      const Right<TestType> right("right", rows, columns), second("second", rows, columns);
      REQUIRE(values_of(right) == std::vector<int>(rows * columns));
      const Left<TestType> left("left", rows, columns);
      number<TestType>(right);
      Kokkos::deep_copy(space, second, right);
      Kokkos::deep_copy(left, right);
      space.fence("heddle::test::copied");
      REQUIRE(is_numbered(right));
      REQUIRE(is_numbered(second));
      REQUIRE(is_numbered(left));

      Kokkos::deep_copy(space, second, 7);
      Kokkos::deep_copy(left, -7);
      space.fence("heddle::test::filled");
      REQUIRE(values_of(second) == std::vector<int>(rows * columns, 7));
      REQUIRE(values_of(left) == std::vector<int>(rows * columns, -7));
    }
}

TEMPLATE_LIST_TEST_CASE("mirrors, subviews, resized and scalar Views", "", Spaces) {
  Right<TestType> view("view", 13, 29);
  number<TestType>(view);
  auto mirror = Kokkos::create_mirror(view);
  Kokkos::deep_copy(mirror, view);
  REQUIRE(is_numbered(mirror));
  const Right<TestType> back("back", 13, 29);
  Kokkos::deep_copy(back, mirror);
  REQUIRE(is_numbered(back));

  const auto block = Kokkos::subview(view, std::pair(3, 11), std::pair(5, 29));
  const Right<TestType> copy("copy", 8, 24);
  Kokkos::deep_copy(copy, block);
  REQUIRE(is_numbered(copy, 3, 5));

  Kokkos::resize(view, 17, 11);
  const auto kept = Kokkos::subview(view, std::pair(0, 13), Kokkos::ALL);
  const Right<TestType> kept_copy("kept_copy", 13, 11);
  Kokkos::deep_copy(kept_copy, kept);
  REQUIRE(is_numbered(kept_copy));
  Kokkos::realloc(view, 2, 3);
  REQUIRE(values_of(view) == std::vector<int>(6));

  const Kokkos::View<double, TestType> scalar("scalar");
  Kokkos::deep_copy(scalar, 2.5);
  double value = 0;
  Kokkos::deep_copy(value, scalar);
  REQUIRE(value == 2.5);
}

namespace {

template <class View>
struct AddTo {
  View to;
  KOKKOS_FUNCTION void operator()(int i) const { to(i % 7) += 1; }
};

}  // namespace

TEMPLATE_LIST_TEST_CASE("atomic Views and dual Views", "", Spaces) {
  using Atomic = Kokkos::View<int*, TestType, Kokkos::MemoryTraits<Kokkos::Atomic>>;
  Kokkos::DualView<int*, TestType> dual("dual", 7);
  dual.view_host()(3) = 100;
  dual.modify_host();
  dual.sync_device();
  Kokkos::parallel_for("heddle::test::add", Kokkos::RangePolicy<TestType>(0, 7 * 1009),
                       AddTo<Atomic>{Atomic(dual.view_device())});
  dual.modify_device();
  dual.sync_host();
  for (int i = 0; i < 7; ++i) REQUIRE(dual.view_host()(i) == 1009 + (i == 3 ? 100 : 0));
}

TEMPLATE_LIST_TEST_CASE("a space is regular, small, named and fenced", "", Spaces) {
  STATIC_REQUIRE(Kokkos::is_execution_space_v<TestType>);
  STATIC_REQUIRE(sizeof(TestType) <= 2 * sizeof(void*));
  TestType space, same = space;
  same = TestType();
  REQUIRE(space == same);
  REQUIRE_FALSE(space != same);
  REQUIRE(space.concurrency() >= 1);
  REQUIRE(TestType::name() != std::string());
  space.fence();
  space.fence("heddle::test::fence");
  Kokkos::fence("heddle::test::fence_of_all");
}

}  // namespace test_space_views
