// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2
// threads: yes
// program: its own

/// @file
/// What differs where kernels have a memory of their own: pools, events, messages, sums over ranks
/// and codecs in the memory of examples::Space, against the host. scripts/gpu runs this program on
/// a GPU.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/collective/all_reduce.hpp>
#include <heddle/collective/call_options.hpp>
#include <heddle/collective/cast.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/collective/request.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/device_transport.hpp>
#include <heddle/comm/gpu_aware.hpp>
#include <heddle/core/encoded.hpp>
#include <heddle/execute/await.hpp>
#include <heddle/memory/execution_events.hpp>
#include <heddle/memory/pool.hpp>
#include <heddle/memory/source/from_space.hpp>
#include <heddle/memory/stream_ordered.hpp>
#include <heddle/memory/view.hpp>

#include "host_copy.hpp"
#include "space.hpp"
#include "support/world.hpp"

namespace test_device_memory {

namespace hd = heddle;
namespace memory = heddle::memory;
using Exec = examples::Space;
using Memory = Exec::memory_space;

namespace {

template <class T>
using View = Kokkos::View<T*, Memory>;

struct Multiples {
  View<std::int64_t> to;
  std::int64_t factor;
  KOKKOS_FUNCTION void operator()(std::size_t i) const {
    to(i) += factor * static_cast<std::int64_t>(i);
  }
};

void add_multiples(const Exec& exec, const View<std::int64_t>& to, std::int64_t factor) {
  Kokkos::parallel_for(
      "heddle::test::multiples",
      Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::size_t>>(exec, 0, to.extent(0)),
      Multiples{to, factor});
}

/// The elements that are not `factor` times their index.
std::size_t wrong(const View<std::int64_t>& view, std::int64_t factor) {
  const auto host = examples::copy_to_host<Exec>(view.data(), view.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < host.size(); ++i)
    count += host[i] != factor * static_cast<std::int64_t>(i);
  return count;
}

// Devices do not keep the bits of a NaN: any NaN is the same as any other.
template <class T>
bool same(T a, T b) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  return std::bit_cast<Bits>(a) == std::bit_cast<Bits>(b) || (a != a && b != b);
}
template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](T x, T y) { return same(x, y); });
}

TEST_CASE("a pool of the kernels' memory") {
  memory::Pool pool(memory::FromSpace<Memory>{});
  const void* first = nullptr;
  {
    const View<std::int64_t> numbers = pool.view<std::int64_t*>("heddle::test::numbers", 100'003);
    first = numbers.data();
    const Exec exec;
    add_multiples(exec, numbers, 3);
    exec.fence("heddle::test::done");
    CHECK(wrong(numbers, 3) == 0);
  }
  const auto reserved = pool.reserved();
  CHECK(reserved >= 8 * 100'003);
  {
    const View<std::int64_t> again = pool.view<std::int64_t*>("heddle::test::again", 100'003);
    CHECK(static_cast<const void*>(again.data()) == first);
    CHECK(wrong(again, 0) == 0);
  }
  CHECK(pool.reserved() == reserved);
  pool.trim();
  CHECK(pool.reserved() == 0);
}

TEST_CASE("blocks in the order of two instances") {
  memory::Pool pool(memory::FromSpace<Memory>{});
  memory::Ordered<Exec, memory::Ref<decltype(pool)>> ordered(pool);
  const auto instances = Kokkos::Experimental::partition_space(Exec(), 1, 1);
  const View<std::int64_t> sums[] = {View<std::int64_t>("heddle::test::first", 50'021),
                                     View<std::int64_t>("heddle::test::second", 50'021)};
  for (std::size_t step = 0; step < 100; ++step) {
    const Exec& exec = instances[step % 2];
    const auto temporary =
        memory::make_view<std::int64_t*>(exec, ordered, "heddle::test::temporary", 50'021);
    add_multiples(exec, temporary, 1);
    add_multiples(exec, sums[step % 2], static_cast<std::int64_t>(step));
  }
  using Events = memory::ExecutionEvents<Exec>;
  for (const Exec& exec : instances) Events::wait(Events::record(exec));
  CHECK(wrong(sums[0], 2450) == 0);
  CHECK(wrong(sums[1], 2500) == 0);
  ordered.wait();
}

TEST_CASE("messages between the kernels' memories, by every path") {
  using Transport = hd::DeviceTransport<hd::MpiTransport, Memory>;
  using enum hd::DevicePath;
  std::vector<hd::DevicePath> paths{automatic, staged, owned};
  if (hd::impl::gpu_aware<Memory>()) paths.push_back(direct);
  hd::MpiTransport inner(MPI_COMM_WORLD);
  const int here = hd::test::world_rank(), ranks = hd::test::world_size();
  const hd::Rank next{(here + 1) % ranks}, before{(here + ranks - 1) % ranks};
  for (const auto path : paths)
    for (const std::size_t count : {std::size_t{1}, std::size_t{7}, std::size_t{200'003}}) {
      Transport transport(inner, path);
      CAPTURE(static_cast<int>(path), count);
      const View<std::int64_t> from("heddle::test::from", count), to("heddle::test::to", count);
      const Exec exec;
      add_multiples(exec, from, here + 5);
      exec.fence("heddle::test::filled");
      auto receive = transport.receive(before, hd::Lane{0}, reinterpret_cast<std::byte*>(to.data()),
                                       8 * count);
      auto send = transport.send(next, hd::Lane{0}, reinterpret_cast<const std::byte*>(from.data()),
                                 8 * count);
      const auto nowhere = [] { return std::string("test"); };
      const auto stuck = [] { return hd::ErrorInfo{"test", "a message did not arrive"}; };
      hd::impl::await(transport, send, hd::Idle::yield, 60, nowhere, stuck);
      hd::impl::await(transport, receive, hd::Idle::yield, 60, nowhere, stuck);
      CHECK(wrong(to, +before + 5) == 0);
    }
}

TEST_CASE("sums of Views in the kernels' memory: exact, and encoded as on the host") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const int here = hd::test::world_rank(), ranks = hd::test::world_size();
  const Exec exec;
  std::int64_t all = 0;
  for (int rank = 0; rank < ranks; ++rank) all += rank + 1;
  const hd::CallOptions ring{.algorithm = hd::schedule::Algorithm::ring};
  for (const std::size_t count : {0, 1, 97, 100'003}) {
    CAPTURE(count);
    View<std::int64_t> numbers("heddle::test::numbers", count);
    add_multiples(exec, numbers, here + 1);
    hd::all_reduce(exec, numbers, hd::Sum{}, comm);
    exec.fence("heddle::test::summed");
    CHECK(wrong(numbers, all) == 0);
    hd::all_reduce(exec, numbers, hd::Sum{}, comm, ring);
    exec.fence("heddle::test::summed");
    CHECK(wrong(numbers, all * ranks) == 0);

    const hd::CallOptions encoded{
        .algorithm = hd::schedule::Algorithm::ring,
        .codec = hd::Codec{.type = hd::Scalar::i8, .block = 64, .agree = true}};
    const Kokkos::View<float*, Kokkos::HostSpace> host("heddle::test::host", count);
    for (std::size_t i = 0; i < count; ++i)
      host(i) = static_cast<float>(i * 7919 % 1009) / static_cast<float>(here + 3);
    const View<float> device("heddle::test::device", count);
    Kokkos::deep_copy(device, host);
    hd::all_reduce(Kokkos::DefaultHostExecutionSpace{}, host, hd::Sum{}, comm, encoded);
    hd::all_reduce(exec, device, hd::Sum{}, comm, encoded);
    exec.fence("heddle::test::summed");
    const std::vector<float> got = examples::copy_to_host<Exec>(device.data(), count);
    CHECK(same(got, std::vector<float>(host.data(), host.data() + count)));
  }
}

TEST_CASE("a progress thread sums while the caller queues kernels in its own instance") {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  if (level != MPI_THREAD_MULTIPLE) SKIP("MPI takes no calls of several threads");
  const hd::Communicator comm(MPI_COMM_WORLD);
  const hd::CallOptions by_thread{.algorithm = hd::schedule::Algorithm::ring,
                                  .progress_thread = true,
                                  .wait = {.watchdog = 30}};
  // all_reduce() recommends an instance that the caller's own kernels do not use. This test gives
  // it the same one: on a device a progress thread merges in an instance beside it, so the sum is
  // complete after request.wait() and kernels of two threads never meet in one instance.
  const Exec exec;
  std::int64_t all = 0;
  for (int rank = 0; rank < comm.size(); ++rank) all += rank + 1;
  for (int round = 0; round < 5; ++round) {
    const View<std::int64_t> numbers("heddle::test::numbers", 100'003);
    const View<std::int64_t> others("heddle::test::others", 100'003);
    add_multiples(exec, numbers, +comm.rank() + 1);
    hd::Request request = hd::all_reduce<hd::Request>(exec, numbers, hd::Sum{}, comm, by_thread);
    for (int kernel = 0; kernel < 50; ++kernel) add_multiples(exec, others, 1);
    request.wait();
    exec.fence("heddle::test::summed");
    CHECK(wrong(numbers, all) == 0);
    CHECK(wrong(others, 50) == 0);
  }
}

// --- Codecs.

struct Codes {
  hd::Scalar type;
  std::uint32_t block;
};
constexpr Codes codes[] = {{hd::Scalar::f16, 0},     {hd::Scalar::bf16, 0},
                           {hd::Scalar::f8e4m3, 0},  {hd::Scalar::f8e5m2, 0},
                           {hd::Scalar::f8e4m3, 64}, {hd::Scalar::f8e5m2, 37},
                           {hd::Scalar::i8, 64},     {hd::Scalar::i8, 1}};

template <class T>
View<T> on_device(const std::vector<T>& values) {
  const View<T> view("heddle::test::copy", values.size());
  examples::copy_from_host<Exec>(values, view.data());
  return view;
}

/// A message's bytes and what its encoding and decoding gave.
template <class Wide>
struct Outcome {
  std::vector<std::byte> bytes;
  std::vector<Wide> decoded, lost, kept, merged;
};

hd::Encoded message_at(std::byte* data, Codes code, std::size_t count) {
  return {data, code.type, code.block, count};
}

template <class Wide, class Run>
void encode_and_decode(const Run& run, hd::Encoded message, const Wide* from, Wide* lost,
                       Wide* kept, Wide* decoded, Wide* merged) {
  run(hd::impl::Encode<Wide>{message, from, lost, kept});
  run(hd::impl::Decode<Wide>{message, decoded});
  run(hd::impl::CombineDecoded<Wide, hd::impl::AddNumber>{message, merged, {}});
}

template <class Wide>
Outcome<Wide> on_host(Codes code, const std::vector<Wide>& from, bool feedback) {
  const std::size_t n = from.size();
  Outcome<Wide> out{std::vector<std::byte>(hd::impl::encoded_bytes(code.type, code.block, n)),
                    std::vector<Wide>(n), std::vector<Wide>(n), std::vector<Wide>(n), from};
  const auto run = [](const auto& body) {
    for (std::size_t call = 0; call < body.message.calls(); ++call) body(call);
  };
  encode_and_decode(run, message_at(out.bytes.data(), code, n), from.data(),
                    feedback ? out.lost.data() : nullptr, out.kept.data(), out.decoded.data(),
                    out.merged.data());
  return out;
}

template <class Wide>
Outcome<Wide> by_kernels(Codes code, const std::vector<Wide>& from, bool feedback) {
  const std::size_t n = from.size();
  const View<std::byte> bytes("heddle::test::bytes",
                              hd::impl::encoded_bytes(code.type, code.block, n));
  const View<Wide> source = on_device(from), merged = on_device(from);
  const View<Wide> decoded("heddle::test::decoded", n), lost("heddle::test::lost", n),
      kept("heddle::test::kept", n);
  const hd::impl::RunAsKernel<Exec> run;
  encode_and_decode(run, message_at(bytes.data(), code, n), source.data(),
                    feedback ? lost.data() : nullptr, kept.data(), decoded.data(), merged.data());
  run.exec.fence("heddle::test::encoded");
  const auto back = [](const auto& view) {
    return examples::copy_to_host<Exec>(view.data(), view.size());
  };
  return {back(bytes), back(decoded), back(lost), back(kept), back(merged)};
}

/// Numbers at, half-way between and beside the values of all 2^16 patterns of a type.
template <class Narrow, class Wide>
std::vector<Wide> around_all() {
  std::vector<Wide> numbers;
  for (std::uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
    const auto at = [](std::uint32_t p) {
      return static_cast<Wide>(Narrow::of_pattern(static_cast<std::uint16_t>(p)));
    };
    const Wide here = at(pattern), middle = (here + at((pattern + 1) & 0xffff)) / 2;
    numbers.insert(numbers.end(),
                   {here, middle, middle * (1 + Wide(1e-6)), middle * (1 - Wide(1e-6))});
  }
  return numbers;
}

/// The bytes of the scales, and of the values that are no NaN.
template <class Wide>
std::vector<std::byte> of_numbers(Codes code, Outcome<Wide> outcome) {
  const std::size_t count = outcome.decoded.size(),
                    scales = code.block == 0 ? 0 : (count + code.block - 1) / code.block,
                    width = (outcome.bytes.size() - scales) / count;
  for (std::size_t i = 0; i < count * width; ++i)
    if (const Wide x = outcome.decoded[i / width]; x != x) outcome.bytes[scales + i] = {};
  return outcome.bytes;
}

template <class Wide>
void expect_the_hosts(const std::vector<Wide>& from, bool feedback) {
  for (const Codes code : codes) {
    CAPTURE(static_cast<int>(code.type), code.block, feedback, sizeof(Wide));
    const auto host = on_host(code, from, feedback), device = by_kernels(code, from, feedback);
    CHECK(same(device.decoded, host.decoded));
    CHECK((of_numbers(code, device) == of_numbers(code, host)));
    CHECK(same(device.kept, host.kept));
    CHECK(same(device.merged, host.merged));
    CHECK(same(device.lost, host.lost));
  }
}

TEST_CASE("kernels encode as the host does, numbers around all values of 16 bits") {
  expect_the_hosts(around_all<hd::f16, float>(), true);
  expect_the_hosts(around_all<hd::f16, double>(), true);
  // Without feedback: beyond the range of a float a rest may be fused with a product.
  expect_the_hosts(around_all<hd::bf16, float>(), false);
  expect_the_hosts(around_all<hd::bf16, double>(), false);
}

/// All patterns of a type as messages, decoded.
template <class Narrow, class Wide>
void expect_decoded(hd::Scalar type) {
  using Pattern = std::conditional_t<sizeof(Narrow) == 1, std::uint8_t, std::uint16_t>;
  constexpr std::size_t count = std::size_t{1} << (8 * sizeof(Narrow));
  std::vector<std::byte> bytes(count * sizeof(Narrow));
  for (std::size_t i = 0; i < count; ++i) {
    const auto narrow = std::bit_cast<Narrow>(static_cast<Pattern>(i));
    std::memcpy(bytes.data() + i * sizeof(Narrow), &narrow, sizeof narrow);
  }
  std::vector<Wide> expected(count);
  for (std::size_t i = 0; i < count; ++i)
    expected[i] = static_cast<Wide>(std::bit_cast<Narrow>(static_cast<Pattern>(i)));
  const View<std::byte> message = on_device(bytes);
  const View<Wide> decoded("heddle::test::decoded", count);
  const hd::impl::RunAsKernel<Exec> run;
  run(hd::impl::Decode<Wide>{message_at(message.data(), {type, 0}, count), decoded.data()});
  run.exec.fence("heddle::test::decoded");
  CHECK(same(examples::copy_to_host<Exec>(decoded.data(), count), expected));
}

TEST_CASE("kernels decode all patterns of 8 and 16 bits as the host does") {
  expect_decoded<hd::f16, float>(hd::Scalar::f16);
  expect_decoded<hd::f16, double>(hd::Scalar::f16);
  expect_decoded<hd::bf16, float>(hd::Scalar::bf16);
  expect_decoded<hd::bf16, double>(hd::Scalar::bf16);
  expect_decoded<hd::f8e4m3, float>(hd::Scalar::f8e4m3);
  expect_decoded<hd::f8e4m3, double>(hd::Scalar::f8e4m3);
  expect_decoded<hd::f8e5m2, float>(hd::Scalar::f8e5m2);
  expect_decoded<hd::f8e5m2, double>(hd::Scalar::f8e5m2);
  expect_decoded<std::int8_t, float>(hd::Scalar::i8);
  expect_decoded<std::int8_t, double>(hd::Scalar::i8);
}

}  // namespace

}  // namespace test_device_memory
