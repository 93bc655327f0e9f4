// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/device/athread.hpp>

namespace test_athread_instances {

using Catch::Matchers::ContainsSubstring;
using heddle::Athread, heddle::CoreGroupOptions;

static_assert(std::regular<Athread> && Kokkos::is_execution_space_v<Athread>);
static_assert(sizeof(Athread) <= 16);

namespace {

using Token =
    Kokkos::Experimental::UniqueToken<Athread, Kokkos::Experimental::UniqueTokenScope::Global>;

/// Notes the token that each item gets.
struct NoteToken {
  Token token;
  Kokkos::View<int*, Athread> to;
  void operator()(int i) const {
    const int mine = token.acquire();
    to(static_cast<std::size_t>(i)) = mine;
    token.release(mine);
  }
};

struct AddUp {
  void operator()(std::int64_t i, std::int64_t& to) const { to += i; }
};

[[nodiscard]] std::int64_t add_up(const Athread& space, std::int64_t items) {
  std::int64_t sum = 0;
  Kokkos::parallel_reduce("heddle::test::add_up", Kokkos::RangePolicy<Athread>(space, 0, items),
                          AddUp{}, sum);
  return sum;
}

}  // namespace

TEST_CASE("default instances share a core group, others have their own") {
  const Athread one, two, own(CoreGroupOptions{}), copy = own;
  REQUIRE(one == two);
  REQUIRE(copy == own);
  REQUIRE(one != own);
  REQUIRE(&one.core_group() == &two.core_group());
  REQUIRE(&one.core_group() != &own.core_group());
  const auto before = one.core_group().total().launches;
  REQUIRE(add_up(own, 1009) == 1009 * 1008 / 2);
  REQUIRE(own.core_group().total().launches == 1);
  REQUIRE(one.core_group().total().launches == before);
}

TEST_CASE("an instance says what it is") {
  std::ostringstream out;
  const Athread space(CoreGroupOptions{.local_memory = 64 * 1024, .host_threads = 1});
  space.print_configuration(out);
  REQUIRE(out.str() ==
          "  Sunway-style core group, emulated: 64 cores with 65536 B of local memory, played by 1 "
          "threads of the host\n");
  REQUIRE(space.concurrency() == 64);
}

TEST_CASE("core groups made by partition_space have the options of the divided one") {
  const Athread base(CoreGroupOptions{.local_memory = 64 * 1024, .host_threads = 1});
  const auto parts = Kokkos::Experimental::partition_space(base, 1, 1, 1, 1, 1, 1);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    REQUIRE(parts[i].core_group().options().local_memory == 64 * 1024);
    REQUIRE(parts[i] != base);
    for (std::size_t j = 0; j < i; ++j) REQUIRE(parts[i] != parts[j]);
  }
}

TEST_CASE("global tokens differ between core groups") {
  const Athread one(CoreGroupOptions{}), two(CoreGroupOptions{});
  std::vector<int> tokens;
  for (const Athread& space : {one, two}) {
    const NoteToken note{Token(space), Kokkos::View<int*, Athread>("to", 64)};
    Kokkos::parallel_for("heddle::test::tokens", Kokkos::RangePolicy<Athread>(space, 0, 64), note);
    tokens.insert(tokens.end(), note.to.data(), note.to.data() + 64);
  }
  std::ranges::sort(tokens);
  REQUIRE(std::ranges::adjacent_find(tokens) == tokens.end());
  REQUIRE(tokens.front() >= 0);
  REQUIRE(tokens.back() < Token().size());
}

TEST_CASE("there are 16 core groups at most, and their numbers come back") {
  for (int repetition = 0; repetition < 2; ++repetition) {
    std::vector<Athread> groups;
    REQUIRE_THROWS_WITH(
        [&] {
          for (int i = 0; i < 17; ++i) groups.emplace_back(CoreGroupOptions{.host_threads = 1});
        }(),
        ContainsSubstring("heddle::Athread: too many core groups (there are 16 already)"));
    REQUIRE(groups.size() >= 8);
    REQUIRE(groups.size() <= 16);
    for (const Athread& space : groups) REQUIRE(add_up(space, 65) == 65 * 64 / 2);
  }
}

#ifndef KOKKOS_ENABLE_ATOMICS_BYPASS
TEST_CASE("threads of the host launch at the same time, on one core group or on their own") {
  const Athread shared(CoreGroupOptions{});
  const std::vector<Athread> spaces = {shared, shared, Athread(CoreGroupOptions{}),
                                       Athread(CoreGroupOptions{})};
  std::vector<std::int64_t> wrong(spaces.size());
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < spaces.size(); ++t)
    threads.emplace_back([&, t] {
      for (std::int64_t items = 0; items < 300; ++items)
        if (add_up(spaces[t], items) != items * (items - 1) / 2) ++wrong[t];
    });
  for (std::thread& thread : threads) thread.join();
  REQUIRE(wrong == std::vector<std::int64_t>(spaces.size()));
  REQUIRE(shared.core_group().total().launches == 2 * 299);  // none for an empty range
}
#endif

}  // namespace test_athread_instances
