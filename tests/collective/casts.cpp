// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1

// Casts as kernels write the bytes that casts on the host do, with any codec.

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

#include <heddle/collective/cast.hpp>
#include <heddle/collective/combine.hpp>
#include <heddle/heddle.hpp>
#include <heddle/schedule/pass/cast_at_cut.hpp>

#include "support/complaint.hpp"
#include "support/label_recorder.hpp"

namespace test_casts {

namespace hd = heddle;
using hd::Scalar;
using Space = Kokkos::DefaultExecutionSpace::memory_space;

namespace {

/// Memory of a buffer where kernels reach it, and on the host.
struct Twice {
  Kokkos::View<std::byte*, Space> there;
  std::vector<std::byte> here;

  explicit Twice(const std::vector<std::byte>& bytes)
      : there("heddle::collective::bytes", bytes.size()), here(bytes) {
    copy(true);
  }
  [[nodiscard]] std::vector<std::byte> kernel_wrote() {
    std::vector<std::byte> host = here;
    here.swap(host);
    copy(false);
    here.swap(host);
    return host;
  }

 private:
  void copy(bool to_kernels) {
    const Kokkos::View<std::byte*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged> host(here.data(),
                                                                                    here.size());
    to_kernels ? Kokkos::deep_copy(there, host) : Kokkos::deep_copy(host, there);
  }
};

template <class Real>
std::vector<std::byte> bytes_of(const std::vector<Real>& numbers) {
  const auto* const begin = reinterpret_cast<const std::byte*>(numbers.data());
  return {begin, begin + numbers.size() * sizeof(Real)};
}

/// An all-reduce of one rank pair's worth: a send with all that a codec may keep, a cast back, and
/// a sum that decodes; each action done twice, by kernels and on the host.
template <class Real>
void compare(const hd::Codec& codec, std::size_t count) {
  hd::Builder builder("pair", 2);
  const auto buffer = [&](int rank, bool transient, std::uint32_t parts) {
    return builder.add_buffer({.rank = hd::Rank{rank},
                               .parts = parts,
                               .type = hd::scalar_of<Real>,
                               .transient = transient,
                               .bytes = count * sizeof(Real)});
  };
  using hd::schedule::read, hd::schedule::update, hd::schedule::write;
  const auto data = buffer(0, false, 3), got = buffer(1, true, 3), sum = buffer(1, false, 3);
  const auto other = buffer(1, false, 3);
  for (const hd::BufferId into : {got, other})
    builder.add({.kind = hd::Kind::move, .queue = builder.queue(hd::Rank{0}, hd::Rank{1})},
                {read(data, 0, 3), write(into, 0, 3)});
  builder.add({.kind = hd::Kind::combine, .queue = builder.local(hd::Rank{1})},
              {read(got, 0, 3), update(sum, 0, 3)});
  const hd::Schedule schedule = hd::schedule::cast_at_cut(std::move(builder).build(), codec,
                                                          [](hd::Rank, hd::Rank) { return true; });

  std::vector<Twice> memory;
  for (std::size_t b = 0; b < schedule.buffers().size(); ++b) {
    const hd::Buffer& each = schedule.buffers()[b];
    if (each.type == hd::scalar_of<Real>) {
      std::vector<Real> numbers(count);
      for (std::size_t i = 0; i < count; ++i)
        numbers[i] = static_cast<Real>(hd::Random(b, "numbers").normal(i));
      if (b == 0 && count > 6) numbers[6] = std::numeric_limits<Real>::infinity();
      memory.emplace_back(bytes_of(numbers));
    } else {
      memory.emplace_back(std::vector<std::byte>(each.bytes));
    }
  }
  std::size_t done = 0;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const hd::ActionId id{i};
    std::vector<hd::BoundUse> here, there;
    for (const hd::Use& use : schedule.uses(id)) {
      Twice& of = memory[+use.buffer];
      here.push_back({of.here.data(), schedule.bytes(use), use.buffer, use.access()});
      there.push_back({of.there.data(), schedule.bytes(use), use.buffer, use.access()});
    }
    const hd::Task on_host(schedule, id, here), in_kernel(schedule, id, there);
    switch (schedule[id].kind) {
      case hd::Kind::cast:
        hd::cast_on_host(on_host);
        hd::cast_in<Space>(in_kernel);
        break;
      case hd::Kind::combine:
        REQUIRE(hd::impl::combines_encoded(on_host));
        hd::combine_on_host(on_host);
        hd::combine_in<Space>(in_kernel);
        break;
      default:
        memory[+schedule.uses(id)[1].buffer] = Twice(memory[+schedule.uses(id)[0].buffer].here);
        continue;
    }
    ++done;
    for (const hd::Use& use : schedule.uses(id))
      REQUIRE(memory[+use.buffer].kernel_wrote() == memory[+use.buffer].here);
  }
  REQUIRE(done == 4);
}

}  // namespace

TEMPLATE_TEST_CASE("kernels encode, decode and combine as the host does", "", float, double) {
  for (const hd::Codec& codec :
       {hd::Codec{Scalar::f16}, hd::Codec{Scalar::bf16},
        hd::Codec{.type = Scalar::f8e4m3, .block = 32, .agree = true},
        hd::Codec{.type = Scalar::f8e5m2, .feedback = true},
        hd::Codec{.type = Scalar::i8, .block = 7, .feedback = true},
        hd::Codec{.type = Scalar::i8, .block = 64, .feedback = true, .agree = true}})
    for (const std::size_t count : {0, 1, 5, 64, 1009}) compare<TestType>(codec, count);
  if constexpr (std::is_same_v<TestType, double>)
    for (const std::size_t count : {0, 1, 1009}) compare<double>({Scalar::f32}, count);
}

TEST_CASE("kernels of casts have labels of their room") {
  const hd::test::LabelRecorder recorder;
  compare<float>({.type = Scalar::i8, .block = 32}, 100);
  CHECK(hd::test::LabelRecorder::strangers({"collective"}) == std::vector<std::string>{});
  const auto ours = hd::test::LabelRecorder::ours();
  for (const char* const label : {"heddle::collective::encode", "heddle::collective::decode",
                                  "heddle::collective::combine_decoded"})
    CHECK(ours.contains(label));
}

TEST_CASE("what no codec makes is refused where kernels would have to") {
  hd::Builder builder("cast", 1);
  const auto from = builder.add_buffer({.type = Scalar::f64, .transient = false, .bytes = 24});
  const auto into = builder.add_buffer({.type = Scalar::i32, .bytes = 12});
  const auto id = builder.add({.kind = hd::Kind::cast, .queue = builder.local(hd::Rank{0})},
                              {hd::schedule::read(from), hd::schedule::write(into)});
  const hd::Schedule schedule = std::move(builder).build();
  const hd::BoundUse uses[] = {{nullptr, 24, from, hd::Access::read},
                               {nullptr, 12, into, hd::Access::write}};
  CHECK(hd::test::message_of<hd::contract_error>([&] {
          hd::cast_in<Space>(hd::Task(schedule, id, uses));
        }).find("no codec converts between these types (24 bytes of f64, 12 of i32)") !=
        std::string::npos);
}

}  // namespace test_casts
