// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4 7 8

// Calls on Views whose messages are encoded.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/collective/prepared.hpp>
#include <heddle/heddle.hpp>
#include <heddle/schedule/collective/group_level.hpp>

#include "support/complaint.hpp"

namespace test_codecs {

namespace hd = heddle;
using hd::Scalar;
using hd::schedule::Algorithm;
using Exec = Kokkos::DefaultHostExecutionSpace;

namespace {

using View = Kokkos::View<float*, Kokkos::HostSpace>;

/// Between -1 and 1, others on every rank.
double number(std::size_t rank, std::size_t i) {
  return 2 * hd::Random(rank, "codecs").uniform(i) - 1;
}

/// Bytes of the messages from one rank to another, `as` says of which many each is.
template <class As>
std::vector<hd::Bytes> sent(const hd::Schedule& schedule, std::size_t from, std::size_t to,
                            As&& as) {
  std::vector<hd::Bytes> found;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const hd::ActionId id{i};
    const hd::Queue& queue = schedule[schedule[id].queue];
    if (schedule[id].kind == hd::Kind::move && queue.from == hd::Rank{from} &&
        queue.to == hd::Rank{to} && !queue.local())
      found.push_back(as(schedule.bytes(schedule.uses(id)[0])));
  }
  return found;
}

}  // namespace

TEST_CASE("an encoded sum errs as its codec says, equally on all ranks, call by call") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto p = static_cast<std::size_t>(comm.size());
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::direct, Algorithm::star}) {
    for (const std::size_t n : {0, 1, 97, 100003}) {
      const hd::CallOptions options{
          .algorithm = algorithm,
          .codec = hd::Codec{.type = Scalar::i8, .block = 64, .agree = true}};
      const View view("view", n), least("least", n);
      auto prepared = hd::all_reduce<hd::Prepared>(Exec{}, view, hd::Sum{}, comm, options);
      for (int again = 0; again < 2; ++again) {
        for (std::size_t i = 0; i < n; ++i) view(i) = static_cast<float>(number(+comm.rank(), i));
        again == 0 ? hd::all_reduce(Exec{}, view, hd::Sum{}, comm, options) : prepared();
        // P - 1 merges of two numbers, each rounded once, and the sum; none is larger than P.
        const double bound = p == 1 ? 1e-6 : 1.1 * static_cast<double>((2 * p - 1) * p) / 127;
        for (std::size_t i = 0; i < n; ++i) {
          double sum = 0;
          for (std::size_t r = 0; r < p; ++r) sum += number(r, i);
          if (!(std::abs(view(i) - sum) <= bound)) FAIL(i << ": " << view(i) << ", " << sum);
        }
        MPI_Allreduce(view.data(), least.data(), static_cast<int>(n), MPI_FLOAT, MPI_MIN,
                      comm.get());
        for (std::size_t i = 0; i < n; ++i)
          if (least(i) != view(i)) FAIL(i << " is not the same on all ranks");
      }
    }
  }
}

TEST_CASE("without an algorithm a codec takes one of ours; extremes are merged encoded, too") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const hd::CallOptions options{.codec = hd::Codec{Scalar::f16}};
  const View view("view", 31);
  for (std::size_t i = 0; i < 31; ++i) view(i) = static_cast<float>(i + 31 * +comm.rank());
  auto prepared = hd::all_reduce<hd::Prepared>(Exec{}, view, hd::Max{}, comm, options);
  CHECK_FALSE(prepared.by_library());
  prepared();
  for (std::size_t i = 0; i < 31; ++i)  // whole numbers below 2048
    CHECK(view(i) == static_cast<float>(i + 31 * static_cast<std::size_t>(comm.size() - 1)));
}

TEST_CASE("what only moves arrives rounded once") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto p = static_cast<std::size_t>(comm.size());
  const hd::CallOptions options{.algorithm = Algorithm::ring, .codec = hd::Codec{Scalar::bf16}};
  const View mine("mine", 5), all("all", 5 * p);
  for (std::size_t i = 0; i < 5; ++i) mine(i) = static_cast<float>(number(+comm.rank(), i));
  hd::all_gather(Exec{}, mine, all, comm, options);
  for (std::size_t r = 0; r < p; ++r)
    for (std::size_t i = 0; i < 5; ++i) {
      const auto sent = static_cast<float>(number(r, i));
      CHECK(all(5 * r + i) == (r == +comm.rank() ? sent : static_cast<float>(hd::bf16(sent))));
    }
}

TEST_CASE("only what ranks of different numbers send each other is encoded") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  if (comm.size() != 4) return;
  const std::vector<std::uint32_t> hosts = {7, 7, 3, 3};
  const hd::CallOptions ring{.algorithm = Algorithm::ring,
                             .codec = hd::Codec{.type = Scalar::i8, .block = 64},
                             .codec_domains = hosts};
  hd::CallOptions levels = ring;
  levels.algorithm = Algorithm::hierarchical;
  levels.levels = {{2, Algorithm::direct}, {2, Algorithm::ring}};
  levels.codec->agree = true;
  hd::CallOptions turns = levels, uneven = levels;
  turns.codec_domains = {7, 3, 7, 3};
  uneven.codec_domains = {7, 7, 7, 3};
  for (hd::CallOptions* const each : {&turns, &uneven})
    each->levels[0] = hd::schedule::level_of(each->codec_domains, Algorithm::direct);
  for (const hd::CallOptions& options : {ring, levels, turns, uneven}) {
    for (const std::size_t n : {0, 1, 97, 100003}) {
      INFO(*options.algorithm << ", " << n << " elements");
      const View view("view", n), least("least", n);
      auto prepared = hd::all_reduce<hd::Prepared>(Exec{}, view, hd::Sum{}, comm, options);
      // Messages across are those of the exact call, encoded; all others are as they are there.
      hd::CallOptions exact = options;
      exact.codec.reset();
      exact.shared_memory = false;
      const hd::Schedule whole =
          hd::all_reduce<hd::Prepared>(Exec{}, view, hd::Sum{}, comm, exact).schedule();
      const auto encoded = [](hd::Bytes bytes) {
        return hd::impl::encoded_bytes(Scalar::i8, 64, bytes / sizeof(float));
      };
      const hd::Schedule made = prepared.schedule();
      for (std::size_t from = 0; from < 4; ++from)
        for (std::size_t to = 0; to < 4; ++to) {
          const bool across = options.codec_domains[from] != options.codec_domains[to];
          const auto messages = sent(made, from, to, std::identity{});
          CHECK(messages == sent(whole, from, to,
                                 [&](hd::Bytes bytes) { return across ? encoded(bytes) : bytes; }));
        }
      for (int again = 0; again < 2; ++again) {
        for (std::size_t i = 0; i < n; ++i) view(i) = static_cast<float>(number(+comm.rank(), i));
        again == 0 ? hd::all_reduce(Exec{}, view, hd::Sum{}, comm, options) : prepared();
        // A partial sum crosses at most twice, and the sum once; none is larger than 4.
        for (std::size_t i = 0; i < n; ++i) {
          double sum = 0;
          for (std::size_t r = 0; r < 4; ++r) sum += number(r, i);
          if (!(std::abs(view(i) - sum) <= 1.1 * 3 * 4 / 127)) FAIL(i << ": " << view(i));
        }
        MPI_Allreduce(view.data(), least.data(), static_cast<int>(n), MPI_FLOAT, MPI_MIN,
                      comm.get());
        for (std::size_t i = 0; i < n && options.codec->agree; ++i)
          if (least(i) != view(i)) FAIL(i << " is not the same on all ranks");
      }
    }
  }
  // In one domain nothing is rounded.
  hd::CallOptions near = ring;
  near.codec_domains = {5, 5, 5, 5};
  const View view("view", 33);
  for (std::size_t i = 0; i < 33; ++i) view(i) = 1 + static_cast<float>(i) / 1024;
  hd::all_reduce(Exec{}, view, hd::Sum{}, comm, near);
  for (std::size_t i = 0; i < 33; ++i) CHECK(view(i) == 4 + static_cast<float>(i) / 256);
}

TEST_CASE("prepared calls with error feedback err no more over many steps than in one") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto p = static_cast<std::size_t>(comm.size());
  constexpr std::size_t n = 97;
  constexpr int steps = 48;
  // Of sums of the same numbers in every step, one times 1 and one times 10^6, which take turns:
  // the larger error, in parts of the largest number.
  const auto error = [&](bool feedback) {
    const hd::CallOptions options{
        .algorithm = Algorithm::ring,
        .codec = hd::Codec{.type = Scalar::i8, .block = 32, .feedback = feedback, .agree = true}};
    const std::array<float, 2> scales = {1, 1e6F};
    const std::array<View, 2> views = {View("small", n), View("great", n)};
    std::array sums = {hd::all_reduce<hd::Prepared>(Exec{}, views[0], hd::Sum{}, comm, options),
                       hd::all_reduce<hd::Prepared>(Exec{}, views[1], hd::Sum{}, comm, options)};
    std::array totals = {std::vector<double>(n), std::vector<double>(n)};
    const auto mine = [&](std::size_t which, std::size_t rank, std::size_t i) {
      return scales[which] * static_cast<float>(number(rank, i));
    };
    for (int step = 0; step < steps; ++step) {
      for (const std::size_t which : {0, 1}) {
        for (std::size_t i = 0; i < n; ++i) views[which](i) = mine(which, +comm.rank(), i);
        if (step % 3 == 0)
          sums[which].start().wait();
        else
          sums[which]();
        for (std::size_t i = 0; i < n; ++i) totals[which][i] += views[which](i);
      }
    }
    double worst = 0;
    for (const std::size_t which : {0, 1}) {
      for (std::size_t i = 0; i < n; ++i) {
        double exact = 0;
        for (std::size_t r = 0; r < p; ++r) exact += mine(which, r, i);
        worst = std::max(worst, std::abs(totals[which][i] - steps * exact) / scales[which]);
      }
    }
    return worst;
  };
  // What is still kept at the end: of each of the p messages of a block one rounding, of numbers up
  // to p and what was kept.
  const auto ranks = static_cast<double>(p);
  const double bound = ranks * (ranks + 0.1) / 127;
  CHECK(error(true) <= bound);
  if (p > 1) CHECK(error(false) > 2 * bound);
}

TEST_CASE("domains of a codec are of all ranks, or there are none") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const View view("view", 4);
  const auto refused = [&](std::size_t domains, std::optional<hd::Codec> codec) {
    const hd::CallOptions options{.codec = codec,
                                  .codec_domains = std::vector<std::uint32_t>(domains)};
    return hd::test::message_of<hd::contract_error>(
        [&] { hd::all_reduce(Exec{}, view, hd::Sum{}, comm, options); });
  };
  const auto ranks = static_cast<std::size_t>(comm.size());
  for (const auto& codec : {std::optional<hd::Codec>(), std::optional(hd::Codec{Scalar::f16})})
    CHECK(refused(ranks + 1, codec)
              .find("heddle::collective::all_reduce: CallOptions::codec_domains must be empty or "
                    "have one number per rank (" +
                    hd::text(ranks + 1, " domains, ", ranks, " ranks")) != std::string::npos);
}

TEST_CASE("codecs that a call has no place for are refused") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const View view("view", 4 * static_cast<std::size_t>(comm.size()));
  const View other("other", view.size());
  const auto why = [&](const hd::Codec& codec, auto&& call) {
    return hd::test::message_of<hd::contract_error>(
        [&] { call(hd::CallOptions{.algorithm = Algorithm::direct, .codec = codec}); });
  };
  CHECK(why({.type = Scalar::i8, .feedback = true},
            [&](const hd::CallOptions& options) {
              hd::all_reduce(Exec{}, view, hd::Sum{}, comm, options);
            })
            .find("error feedback needs a prepared call, which keeps the rounding errors between "
                  "calls (codec i8 "
                  "with feedback); prepare the call, as in all_reduce<Prepared>(...)") !=
        std::string::npos);
  CHECK(why({.type = Scalar::i8, .block = 32, .agree = true},
            [&](const hd::CallOptions& options) {
              hd::all_to_all(Exec{}, view, other, comm, options);
            })
            .find("Codec::agree would change the input of this call, which may only be read (codec "
                  "i8/32 in agreement)") != std::string::npos);
  if (comm.size() == 1) return;
  const Kokkos::View<std::int32_t*, Kokkos::HostSpace> whole("whole", 8);
  CHECK(why({Scalar::i8}, [&](const hd::CallOptions& options) {
          hd::all_reduce(Exec{}, whole, hd::Sum{}, comm, options);
        }).find("a codec needs elements of f32 or f64") != std::string::npos);
}

}  // namespace test_codecs
