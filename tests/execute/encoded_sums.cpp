// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Collectives whose messages are encoded at cuts, over threads: what they send, how far they err.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/random.hpp>
#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>

#include "support/complaint.hpp"

namespace test_encoded_sums {

using namespace heddle;

namespace {

constexpr auto everywhere = [](Rank, Rank) { return true; };

/// One rank's memory for the buffers of role "data"; casts and adds on the host.
template <class Real>
struct Adder {
  std::vector<Real>* mine;
  std::byte* memory(const Schedule& schedule, BufferId id) {
    return schedule[schedule[id].label] == "data" ? reinterpret_cast<std::byte*>(mine->data())
                                                  : nullptr;
  }
  void operator()(const Task& task) {
    task.kind() == Kind::cast ? cast_on_host(task) : combine_on_host(task);
  }
};

template <class Real>
using Data = std::vector<std::vector<Real>>;

/// Numbers between -1 and 1, others on every rank.
template <class Real>
Data<Real> numbers(int ranks, std::size_t count) {
  Data<Real> data(static_cast<std::size_t>(ranks));
  for (std::size_t r = 0; r < data.size(); ++r)
    for (std::size_t i = 0; i < count; ++i)
      data[r].push_back(static_cast<Real>(2 * Random(r, "data").uniform(i) - 1));
  return data;
}

/// Runs the all-reduce `schedule` `steps` times; `before(step, data of a rank)` refills the data.
template <class Real, class Refill>
void run(const Schedule& schedule, Data<Real>& data, int steps, Refill&& refill) {
  run_threads(schedule.ranks(), [&](ThreadTransport& transport) {
    auto& mine = data[+transport.rank()];
    Runner runner(Adder<Real>{&mine}, schedule, transport);
    for (int step = 0; step < steps; ++step) {
      refill(step, mine);
      runner.step();
      runner.drain();
    }
  });
}
template <class Real>
void run(const Schedule& schedule, Data<Real>& data) {
  run(schedule, data, 1, [](int, const std::vector<Real>&) {});
}

std::vector<double> sum_of(const auto& data) {
  std::vector<double> sum(data.front().size());
  for (const auto& rank : data)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(rank[i]);
  return sum;
}

Bytes bytes_sent(const Schedule& schedule) {
  Bytes bytes = 0;
  for (std::size_t i = 0; i < schedule.size(); ++i)
    if (schedule[ActionId{i}].kind == Kind::move)
      bytes += schedule.bytes(schedule.uses(ActionId{i})[0]);
  return bytes;
}

template <class Real>
Schedule ring(int ranks, std::size_t count, int chunks = 2) {
  return schedule::collective(
      schedule::Collective::all_reduce, schedule::Algorithm::ring,
      {.ranks = ranks, .bytes = count * sizeof(Real), .type = scalar_of<Real>, .chunks = chunks});
}

}  // namespace

TEST_CASE("an all-reduce around a ring errs as far as its roundings, and ranks agree") {
  // Of every element the sums of 1 .. P-1 ranks cross once, and the whole sum once: P roundings of
  // numbers up to k, each by at most a share e of the largest in the block; P (P + 1) / 2 of them
  // count as one of numbers up to 1. What a rounding adds to the next one's numbers: (1 + e)^P.
  struct Case {
    Codec codec;
    double share;
  };
  for (const Case& each : {Case{{.type = Scalar::i8, .block = 32, .agree = true}, 1.0 / 127},
                           Case{{.type = Scalar::f8e4m3, .block = 64, .agree = true}, 1.0 / 16},
                           Case{{.type = Scalar::f8e5m2, .block = 7, .agree = true}, 1.0 / 8},
                           Case{{.type = Scalar::f16, .agree = true}, 1.0 / 2048},
                           Case{{.type = Scalar::bf16, .agree = true}, 1.0 / 256}}) {
    for (const int p : {1, 2, 3, 4, 7}) {
      for (const std::size_t n : {0, 1, 5, 97, 1009}) {
        const Schedule plain = ring<float>(p, n);
        const Schedule narrow = schedule::cast_at_cut(plain, each.codec, everywhere);
        Data<float> data = numbers<float>(p, n);
        const std::vector<double> exact = sum_of(data);
        run(narrow, data);
        const double bound =
            p == 1 ? 0 : each.share * p * (p + 1) / 2 * std::pow(1 + each.share, p) + 1e-6 * p;
        double worst = 0;
        for (const auto& rank : data) {
          REQUIRE(rank == data.front());
          for (std::size_t i = 0; i < n; ++i) worst = std::max(worst, std::abs(rank[i] - exact[i]));
        }
        INFO(each.codec.type << ", " << p << " ranks, " << n << " elements");
        CHECK(worst <= bound);
      }
    }
  }
}

TEST_CASE("every algorithm of an all-reduce errs as far as its roundings, and ranks agree") {
  // A sum of P numbers up to 1 has P - 1 merges of two, which are rounded at most once each, as is
  // the whole sum; all of them are at most P.
  using namespace schedule;
  constexpr std::size_t n = 97;
  for (const Algorithm algorithm :
       {Algorithm::ring, Algorithm::direct, Algorithm::recursive_doubling,
        Algorithm::recursive_halving, Algorithm::star, Algorithm::binomial_tree,
        Algorithm::double_tree, Algorithm::bidirectional_ring}) {
    for (const int p : {1, 2, 3, 4, 7, 8}) {
      const CollectiveOptions options{.ranks = p, .bytes = n * sizeof(float), .type = Scalar::f32};
      if (!schedule::why_not(Collective::all_reduce, algorithm, options).empty()) continue;
      const Schedule plain = collective(Collective::all_reduce, algorithm, options);
      const Schedule narrow = schedule::cast_at_cut(
          plain, {.type = Scalar::i8, .block = 32, .agree = true}, everywhere);
      Data<float> data = numbers<float>(p, n);
      const std::vector<double> exact = sum_of(data);
      run(narrow, data);
      INFO(plain.name());
      // Of those who hold the sum already only some hand it to the ranks beyond a power of two.
      const bool agrees = algorithm != Algorithm::recursive_doubling || (p & (p - 1)) == 0;
      for (const auto& rank : data) {
        if (agrees) REQUIRE(rank == data.front());
        for (std::size_t i = 0; i < n; ++i)
          REQUIRE(std::abs(rank[i] - exact[i]) <= (2 * p - 1) * p / 127.0 * 1.1);
      }
    }
  }
}

TEST_CASE("messages at cuts have the bytes of their codec, part by part") {
  for (const int p : {2, 3, 4}) {
    for (const std::size_t n : {0, 1, 5, 97, 1009}) {
      const Schedule plain = ring<float>(p, n, 1);
      for (const std::uint32_t block : {1u, 32u, 64u}) {
        const Schedule narrow =
            schedule::cast_at_cut(plain, {.type = Scalar::i8, .block = block}, everywhere);
        // Every piece of the ring travels 2 (P - 1) times.
        Bytes expected = 0;
        for (int piece = 0; piece < p; ++piece) {
          const std::size_t elements =
              n / static_cast<std::size_t>(p) +
              (static_cast<std::size_t>(piece) < n % static_cast<std::size_t>(p));
          expected += elements + (elements + block - 1) / block;
        }
        CHECK(bytes_sent(narrow) == 2 * static_cast<Bytes>(p - 1) * expected);
      }
      CHECK(bytes_sent(schedule::cast_at_cut(plain, {Scalar::bf16}, everywhere)) * 2 ==
            bytes_sent(plain));
    }
  }
}

TEST_CASE("with feedback the error of a sum over steps does not grow with them") {
  constexpr int ranks = 3, steps = 64;
  constexpr std::size_t count = 97;
  const Codec codec{.type = Scalar::i8, .block = 32, .agree = true};
  const auto error = [&](bool feedback) {
    Codec chosen = codec;
    chosen.feedback = feedback;
    const Schedule schedule = schedule::cast_at_cut(ring<double>(ranks, count), chosen, everywhere);
    const Data<double> before = numbers<double>(ranks, count);
    Data<double> data = before;
    Data<double> total(ranks, std::vector<double>(count));
    run_threads(ranks, [&](ThreadTransport& transport) {
      auto& mine = data[+transport.rank()];
      Runner runner(Adder<double>{&mine}, schedule, transport);
      for (int step = 0; step < steps; ++step) {
        mine = before[+transport.rank()];
        runner.step();
        runner.drain();
        for (std::size_t i = 0; i < count; ++i) total[+transport.rank()][i] += mine[i];
      }
    });
    const std::vector<double> exact = sum_of(before);
    double worst = 0;
    for (const auto& rank : total) {
      REQUIRE(rank == total.front());
      for (std::size_t i = 0; i < count; ++i)
        worst = std::max(worst, std::abs(rank[i] - steps * exact[i]));
    }
    return worst;
  };
  // What is still kept at the end: of each of the `ranks` messages one rounding, of numbers up to
  // `ranks` and what was kept.
  const double bound = ranks * (ranks + 0.1) / 127;
  CHECK(error(true) <= bound);
  // Equal data are rounded equally at every step: without feedback the error is `steps` times one.
  CHECK(error(false) > 3 * bound);
}

TEST_CASE("an infinity in a gradient does not stay in what the next messages make up for") {
  const Schedule schedule = schedule::cast_at_cut(
      ring<float>(2, 64), {.type = Scalar::i8, .block = 32, .feedback = true, .agree = true},
      everywhere);
  Data<float> data = numbers<float>(2, 64);
  const Data<float> before = data;
  run(schedule, data, 2, [&](int step, std::vector<float>& mine) {
    mine = &mine == &data[0] ? before[0] : before[1];
    if (step == 0 && &mine == &data[0]) mine[5] = std::numeric_limits<float>::infinity();
    if (step == 1)
      for (float& each : mine) each = 0.5F;
  });
  for (const auto& rank : data)
    for (const float each : rank) CHECK(std::abs(each - 1) < 0.1F);
}

TEST_CASE("at one slow link only its messages are encoded, and what crossed twice is equal") {
  const auto slow = [](Rank from, Rank to) { return from == Rank{1} && to == Rank{2}; };
  Data<double> data = numbers<double>(3, 101);
  const std::vector<double> exact = sum_of(data);
  const Schedule plain = ring<double>(3, 101);
  const Schedule narrow = schedule::cast_at_cut(plain, {Scalar::f16}, slow);
  CHECK(bytes_sent(narrow) < bytes_sent(plain));
  run(narrow, data);
  for (const auto& rank : data)
    for (std::size_t i = 0; i < exact.size(); ++i)
      CHECK(std::abs(rank[i] - exact[i]) < 2 * 3.0 / 2048);
}

TEST_CASE("floats become integers by a rule, whatever they are") {
  constexpr float infinite = std::numeric_limits<float>::infinity();
  constexpr auto most = std::numeric_limits<std::int32_t>::max();
  constexpr auto least = std::numeric_limits<std::int32_t>::min();
  CHECK(heddle::impl::saturating_cast<std::int32_t>(1.75) == 1);
  CHECK(heddle::impl::saturating_cast<std::int32_t>(-2.5) == -2);
  CHECK(heddle::impl::saturating_cast<std::int32_t>(2147483647.5) == most);
  CHECK(heddle::impl::saturating_cast<std::int32_t>(2147483648.0) == most);
  CHECK(heddle::impl::saturating_cast<std::int32_t>(2147483520.0F) == 2147483520);
  CHECK(heddle::impl::saturating_cast<std::int32_t>(2147483648.0F) == most);
  CHECK(heddle::impl::saturating_cast<std::int32_t>(-2147483648.0F) == least);
  CHECK(heddle::impl::saturating_cast<std::int32_t>(-1e20F) == least);
  CHECK(heddle::impl::saturating_cast<std::int32_t>(infinite) == most);
  CHECK(heddle::impl::saturating_cast<std::int32_t>(-infinite) == least);
  CHECK(heddle::impl::saturating_cast<std::int32_t>(std::numeric_limits<float>::quiet_NaN()) == 0);
  CHECK(heddle::impl::saturating_cast<std::int64_t>(9223372036854775808.0) ==
        std::numeric_limits<std::int64_t>::max());
  CHECK(heddle::impl::saturating_cast<std::int64_t>(-9223372036854775808.0) ==
        std::numeric_limits<std::int64_t>::min());
  CHECK(heddle::impl::saturating_cast<std::int64_t>(1e300) ==
        std::numeric_limits<std::int64_t>::max());
  CHECK(heddle::impl::saturating_cast<std::int32_t>(std::int64_t{1} << 40) == most);
  CHECK(heddle::impl::saturating_cast<std::int32_t>(-(std::int64_t{1} << 40)) == least);
  CHECK(heddle::impl::saturating_cast<std::int32_t>(std::int64_t{-7}) == -7);
  CHECK(heddle::impl::saturating_cast<float>(1e300) == infinite);
}

TEST_CASE("a cast that no codec makes is refused by name") {
  Builder builder("cast", 1);
  const BufferId from = builder.add_buffer({.type = Scalar::i32, .transient = false, .bytes = 24});
  const BufferId into = builder.add_buffer({.type = Scalar::i8, .bytes = 6});
  const ActionId id = builder.add({.kind = Kind::cast, .queue = builder.local(Rank{0})},
                                  {schedule::read(from), schedule::write(into)});
  const Schedule integers = std::move(builder).build();
  std::vector<std::byte> memory(24);
  const auto why = [&](const Schedule& schedule, Bytes bytes) {
    const BoundUse uses[] = {{memory.data(), 24, from, Access::read},
                             {memory.data(), bytes, into, Access::write}};
    return test::message_of<contract_error>([&] { cast_on_host(Task(schedule, id, uses)); });
  };
  CHECK(why(integers, 6).find("no codec converts between these types (24 bytes of i32, 6 of i8)") !=
        std::string::npos);
  const Schedule blocks = integers.with_sizes([](Buffer& buffer) {
    if (buffer.transient) buffer.block = 4;
    if (!buffer.transient) buffer.type = Scalar::f32;
  });
  CHECK(why(blocks, 6).find("the two buffers have different numbers of elements") !=
        std::string::npos);
}

}  // namespace test_encoded_sums
