// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2 3 4
// space: its own
// program: its own

// Calls at the contract level "communication": what differs between ranks is named.

#define HEDDLE_CHECK_COMMUNICATION

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/collective/all_gather.hpp>
#include <heddle/collective/all_reduce.hpp>
#include <heddle/collective/all_to_all.hpp>
#include <heddle/collective/barrier.hpp>
#include <heddle/collective/broadcast.hpp>
#include <heddle/collective/exclusive_scan.hpp>
#include <heddle/collective/gather.hpp>
#include <heddle/collective/inclusive_scan.hpp>
#include <heddle/collective/reduce.hpp>
#include <heddle/collective/reduce_scatter.hpp>
#include <heddle/collective/scatter.hpp>
#include <heddle/collective/shared_view.hpp>
#include <heddle/collective/sum_in_place.hpp>
#include <heddle/systems/hap/sum_by_factors.hpp>

#include "support/one_rank_differs.hpp"
#include "support/world.hpp"

namespace test_agreement {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using hd::schedule::Algorithm;
using hd::test::said;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
template <class T>
using View = Kokkos::View<T*, Kokkos::HostSpace>;

void sum(const hd::Communicator& comm) {
  const View<double> view("view", 8);
  hd::all_reduce(Exec{}, view, hd::Sum{}, comm);
}

}  // namespace

TEST_CASE("equal calls agree") { CHECK(said(sum, sum) == "nothing"); }

TEST_CASE("a call that differs is named on every rank, and in what it differs") {
  const auto call = [](auto view, auto reduction, const hd::CallOptions& options = {}) {
    return [=](const hd::Communicator& comm) {
      hd::all_reduce(Exec{}, view, reduction, comm, options);
    };
  };
  const std::string count = said(sum, call(View<double>("view", 9), hd::Sum{}));
  CHECK_THAT(count,
             ContainsSubstring("bytes") && ContainsSubstring("64") && ContainsSubstring("72"));
  CHECK_THAT(said(sum, call(View<std::int64_t>("view", 8), hd::Sum{})),
             ContainsSubstring("type") && ContainsSubstring("f64") && ContainsSubstring("i64"));
  CHECK_THAT(said(sum, call(View<double>("view", 8), hd::Max{})), ContainsSubstring("reduction"));
  CHECK_THAT(
      said(sum, call(View<double>("view", 8), hd::Sum{}, {.algorithm = Algorithm::ring})),
      ContainsSubstring("algorithm") && ContainsSubstring("library") && ContainsSubstring("ring"));
  CHECK_THAT(said(sum, call(View<double>("view", 8), hd::Sum{}, {.shared_memory = false})),
             ContainsSubstring("shared memory"));
  const Kokkos::View<double**, Kokkos::LayoutLeft, Kokkos::HostSpace> left("left", 2, 4);
  const Kokkos::View<double**, Kokkos::LayoutRight, Kokkos::HostSpace> right("right", 2, 4);
  CHECK(said(sum, call(left, hd::Sum{})) == "nothing");  // by index, whatever the layout
  CHECK_THAT(said(call(right, hd::Sum{}, {.same_layout = true}),
                  call(left, hd::Sum{}, {.same_layout = true})),
             ContainsSubstring("order of elements") &&
                 ContainsSubstring("by strides 4 of 2, 1 of 4") &&
                 ContainsSubstring("by strides 1 of 2, 2 of 4"));
  const auto by_levels = [](bool whole_first) {
    return [=](const hd::Communicator& comm) {
      const int first = whole_first ? comm.size() : 1;
      hd::all_reduce(
          Exec{}, View<double>("view", 8), hd::Sum{}, comm,
          {.algorithm = Algorithm::hierarchical,
           .levels = {{first, Algorithm::ring}, {comm.size() / first, Algorithm::ring}}});
    };
  };
  CHECK_THAT(said(by_levels(true), by_levels(false)),
             ContainsSubstring("algorithm") && ContainsSubstring("1 by ring, "));
  const auto encoded = [](std::uint32_t last) {
    return [=](const hd::Communicator& comm) {
      std::vector<std::uint32_t> domains(static_cast<std::size_t>(comm.size()), 0);
      domains.back() = last;
      hd::all_reduce(Exec{}, View<double>("view", 8), hd::Sum{}, comm,
                     {.codec = hd::Codec{hd::Scalar::f32}, .codec_domains = domains});
    };
  };
  CHECK_THAT(said(encoded(0), encoded(1)), ContainsSubstring("domains of the codec"));
  CHECK_THAT(said(sum,
                  [](const hd::Communicator& comm) {
                    hd::broadcast(Exec{}, View<double>("view", 8), hd::Rank{0}, comm);
                  }),
             ContainsSubstring("all_reduce") && ContainsSubstring("broadcast"));
}

TEST_CASE("SharedViews of other sizes are found when they are made") {
  const auto shared = [](std::size_t count) {
    return [=](const hd::Communicator& comm) { const hd::SharedView<double*> view(comm, count); };
  };
  CHECK(said(shared(500), shared(500)) == "nothing");
  CHECK_THAT(said(shared(500), shared(501)),
             ContainsSubstring("heddle::SharedView") && ContainsSubstring("bytes") &&
                 ContainsSubstring("4000") && ContainsSubstring("4008"));
}

TEST_CASE("ranks that give other parts of a SharedView, or other memory, are found") {
  const auto sum_from = [](std::size_t first) {
    return [=](const hd::Communicator& comm) {
      const hd::SharedView<double*> before(comm, 1), shared(comm, 9000);
      const auto part = Kokkos::subview(shared.view(), std::pair(first, first + 8000));
      hd::all_reduce(Exec{}, part, hd::Sum{}, comm);
    };
  };
  const auto elsewhere = [](const hd::Communicator& comm) {
    const hd::SharedView<double*> before(comm, 1), shared(comm, 9000);
    hd::all_reduce(Exec{}, View<double>("view", 8000), hd::Sum{}, comm, {});
  };
  CHECK(said(sum_from(3), sum_from(3)) == "nothing");
  CHECK_THAT(said(sum_from(0), sum_from(100)), ContainsSubstring("in SharedView") &&
                                                   ContainsSubstring("number 1 from byte 0") &&
                                                   ContainsSubstring("number 1 from byte 800"));
  CHECK_THAT(said(sum_from(0), elsewhere),
             ContainsSubstring("number 1 from byte 0") && ContainsSubstring("none"));
}

TEST_CASE("counts that some ranks give and others do not are found before they are exchanged") {
  const auto exchange = [](const hd::Communicator& comm, bool counted) {
    const auto p = static_cast<std::size_t>(comm.size());
    hd::CallOptions options;
    if (counted) options.counts.assign(p, 1);
    hd::all_to_all(Exec{}, View<double>("in", p), View<double>("out", p), comm, options);
  };
  CHECK_THAT(
      said([&](const auto& comm) { exchange(comm, false); },
           [&](const auto& comm) { exchange(comm, true); }),
      ContainsSubstring("counts") && ContainsSubstring("none") && ContainsSubstring("given"));
}

TEST_CASE("other roots, and other counts of one rank, are found by every call that has them") {
  const auto cast_from = [](int root) {
    return [=](const hd::Communicator& comm) {
      hd::broadcast(Exec{}, View<double>("view", 3), hd::Rank{root}, comm);
    };
  };
  CHECK_THAT(said(cast_from(0), cast_from(1)), ContainsSubstring("root"));
  // Rank 0 has a block of 3 or 4 elements, all others of 1.
  enum class Way { gather, scatter, reduce_scatter, all_gather };
  const auto moved = [](Way way, std::size_t first) {
    return [=](const hd::Communicator& comm) {
      const auto p = static_cast<std::size_t>(comm.size());
      hd::CallOptions options;
      options.counts.assign(p, 1);
      options.counts[0] = first;
      const bool root = comm.rank() == hd::Rank{0};
      const View<double> mine("mine", root ? first : 1), all("all", first + p - 1);
      const View<double> of_root("of_root", root ? all.size() : 0);
      switch (way) {
        case Way::gather: return hd::gather(Exec{}, mine, of_root, hd::Rank{0}, comm, options);
        case Way::scatter: return hd::scatter(Exec{}, of_root, mine, hd::Rank{0}, comm, options);
        case Way::reduce_scatter:
          return hd::reduce_scatter(Exec{}, all, mine, hd::Sum{}, comm, options);
        case Way::all_gather: return hd::all_gather(Exec{}, mine, all, comm, options);
      }
    };
  };
  for (const Way way : {Way::gather, Way::scatter, Way::reduce_scatter, Way::all_gather}) {
    CHECK(said(moved(way, 3), moved(way, 3)) == "nothing");
    CHECK_THAT(said(moved(way, 3), moved(way, 4)), ContainsSubstring("bytes of blocks"));
  }
}

TEST_CASE("arguments that are wrong on one rank are an error on all ranks") {
  using Call = std::function<void(const hd::Communicator&, bool wrong)>;
  const auto view = [](std::size_t count) { return View<double>("view", count); };
  const auto size = [](const hd::Communicator& comm) {
    return static_cast<std::size_t>(comm.size());
  };
  const auto counts = [&](const hd::Communicator& comm, std::size_t each) {
    return hd::CallOptions{.counts = std::vector<std::size_t>(size(comm), each)};
  };
  const hd::Rank no_rank{99};
  const std::pair<const char*, Call> table[] = {
      {"the input has the wrong size",
       [&](const auto& comm, bool wrong) {
         hd::all_gather(Exec{}, view(wrong ? 3 : 2), view(2 * size(comm)), comm);
       }},
      {"counts do not fit",
       [&](const auto& comm, bool wrong) {
         hd::all_gather(Exec{}, view(2), view(2 * size(comm)), comm, counts(comm, wrong ? 1 : 2));
       }},
      {"counts do not fit",
       [&](const auto& comm, bool wrong) {
         hd::all_to_all(Exec{}, view(2 * size(comm)), view(2 * size(comm)), comm,
                        counts(comm, wrong ? 1 : 2));
       }},
      {"the output has the wrong size",
       [&](const auto& comm, bool wrong) {
         hd::all_to_all(Exec{}, view(2 * size(comm)), view(2 * size(comm) + wrong), comm,
                        counts(comm, 2));
       }},
      {"the output has the wrong size",
       [&](const auto& comm, bool wrong) {
         hd::all_to_all(Exec{}, view(size(comm)), view(size(comm) + wrong), comm);
       }},
      {"the output has the wrong size",
       [&](const auto& comm, bool wrong) {
         hd::reduce_scatter(Exec{}, view(size(comm)), view(1 + wrong), hd::Sum{}, comm);
       }},
      {"no such root",
       [&](const auto& comm, bool wrong) {
         hd::gather(Exec{}, view(1), view(size(comm)), wrong ? no_rank : hd::Rank{0}, comm);
       }},
      {"the input has the wrong size",
       [&](const auto& comm, bool wrong) {
         hd::scatter(Exec{}, view(wrong ? 1 : size(comm)), view(1), hd::Rank{1}, comm);
       }},
      {"no such root",
       [&](const auto& comm, bool wrong) {
         hd::broadcast(Exec{}, view(1), wrong ? no_rank : hd::Rank{0}, comm);
       }},
      {"no such root",
       [&](const auto& comm, bool wrong) {
         hd::reduce(Exec{}, view(1), hd::Sum{}, wrong ? no_rank : hd::Rank{0}, comm);
       }},
      {"counts must be empty",
       [&](const auto& comm, bool wrong) {
         hd::all_reduce(Exec{}, view(1), hd::Sum{}, comm,
                        wrong ? counts(comm, 1) : hd::CallOptions{});
       }},
      {"counts must be empty",
       [&](const auto& comm, bool wrong) {
         hd::inclusive_scan(Exec{}, view(1), hd::Sum{}, comm,
                            wrong ? counts(comm, 1) : hd::CallOptions{});
       }},
      {"counts must be empty",
       [&](const auto& comm, bool wrong) {
         hd::exclusive_scan(Exec{}, view(1), hd::Sum{}, comm,
                            wrong ? counts(comm, 1) : hd::CallOptions{});
       }},
      {"counts must be empty",
       [&](const auto& comm, bool wrong) {
         hd::barrier(comm, wrong ? counts(comm, 1) : hd::CallOptions{});
       }},
      {"codec_domains must be empty",
       [&](const auto& comm, bool wrong) {
         std::vector<std::uint32_t> domains(size(comm) + wrong, 0);
         hd::all_reduce(Exec{}, view(1), hd::Sum{}, comm,
                        {.codec = hd::Codec{hd::Scalar::f32}, .codec_domains = domains});
       }},
      {"error feedback needs a prepared call",
       [&](const auto& comm, bool wrong) {
         hd::all_reduce(Exec{}, view(1), hd::Sum{}, comm,
                        {.codec = hd::Codec{.type = hd::Scalar::f32, .feedback = wrong}});
       }},
      {"same_layout needs a View without gaps",
       [&](const auto& comm, bool wrong) {
         const Kokkos::View<double**, Kokkos::LayoutRight, Kokkos::HostSpace> matrix("matrix", 2,
                                                                                     4);
         const auto part = Kokkos::subview(matrix, Kokkos::ALL, std::pair(0, wrong ? 3 : 4));
         hd::all_reduce(Exec{}, part, hd::Sum{}, comm, {.same_layout = true});
       }},
      {"counts do not fit",
       [&](const auto& comm, bool wrong) {
         auto request = hd::all_gather<hd::Request>(Exec{}, view(2), view(2 * size(comm)), comm,
                                                    counts(comm, wrong ? 1 : 2));
         request.wait();
       }},
      {"counts do not fit",
       [&](const auto& comm, bool wrong) {
         auto prepared = hd::all_to_all<hd::Prepared>(
             Exec{}, view(2 * size(comm)), view(2 * size(comm)), comm, counts(comm, wrong ? 1 : 2));
         prepared();
       }},
      {"elements cannot be added",
       [&](const auto& comm, bool wrong) {
         double value = 0;
         hd::sum_in_place(&value, 1, wrong ? hd::Scalar::byte : hd::Scalar::f64, comm, [] {});
       }},
      {"dy", [&](const auto& comm, bool wrong) {
         const Kokkos::View<double**, Kokkos::LayoutRight, Kokkos::HostSpace> x("x", size(comm), 1),
             dy("dy", size(comm) + wrong, 1), gradient("gradient", 1, 1);
         hd::systems::sum_by_factors(Exec{}, x, dy, gradient, comm);
       }}};
  for (const auto& [why, call] : table) {
    INFO(why << ", call " << (&why - &table[0].first));
    CHECK(said([&](const auto& comm) { call(comm, false); },
               [&](const auto& comm) { call(comm, false); }) == "nothing");
    const std::string error = said([&](const auto& comm) { call(comm, false); },
                                   [&](const auto& comm) { call(comm, true); });
    CHECK_THAT(error, ContainsSubstring(why));
    CHECK((error.find("rank 1 reports: ") != std::string::npos) == (hd::test::world_rank() != 1));
  }
}

TEST_CASE("calls are compared while some ranks wait for a request that needs the others first") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const View<double> first("first", 5000);
  Kokkos::deep_copy(first, 1);
  hd::Request request =
      hd::all_reduce<hd::Request>(Exec{}, first, hd::Sum{}, comm, {.algorithm = Algorithm::ring});
  if (+comm.rank() % 2 == 1) request.wait();
  sum(comm);
  request.wait();
  CHECK(first(0) == comm.size());
}

TEST_CASE("of several ranks, the one that differs is named") {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks < 3) return;
  CHECK_THAT(said(sum,
                  [](const hd::Communicator& comm) {
                    hd::all_reduce(Exec{}, View<double>("view", 2), hd::Sum{}, comm);
                  }),
             ContainsSubstring("rank 1"));
}

}  // namespace test_agreement
