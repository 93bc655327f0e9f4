// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Casts at cuts, as executed: what the far rank sees is what its elements' type can hold.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>

#include "support/complaint.hpp"

namespace test_casts {

using namespace heddle;

TEST_CASE("a message cast at a cut arrives rounded, the others as they were") {
  constexpr std::size_t length = 5;
  const auto value = [](Item m, std::size_t i) {
    return (1.0 + +m) / (3.0 + static_cast<double>(i));
  };
  const Schedule schedule = schedule::fold(schedule::cast_at_cut(
      schedule::stream({.ranks = 3,
                        .microbatches = 7,
                        .sizes = {.activation = 8 * length, .type = Scalar::f64}}),
      {Scalar::f32}, [](Rank from, Rank) { return from == Rank{0}; }));
  std::mutex guard;
  std::size_t compared = 0;
  bool equal = true;
  run_threads(3, [&](ThreadTransport& transport) {
    std::vector<std::vector<double>> memory(schedule.buffers().size());
    auto handler = [&](const Task& task) {
      if (task.kind() == Kind::cast) return cast_on_host(task);
      if (task.stage() == Stage{0}) {
        const auto output = task.get<double>(role::output);
        for (std::size_t i = 0; i < length; ++i) output[i] = value(task.item(), i);
        return;
      }
      const auto input = task.get<const double>(role::input);
      const std::lock_guard lock(guard);
      for (std::size_t i = 0; i < length; ++i) {
        equal &= input[i] == static_cast<double>(static_cast<float>(value(task.item(), i)));
        ++compared;
      }
      if (task.has(role::output))
        std::copy(input.begin(), input.end(), task.get<double>(role::output).begin());
    };
    Executor<ThreadTransport> executor(
        slice(schedule, transport.rank(),
              [&](BufferId id, const Buffer& buffer) {
                memory[+id].resize((buffer.bytes + 7) / 8);
                return reinterpret_cast<std::byte*>(memory[+id].data());
              }),
        transport);
    executor.step(handler);
    executor.drain();
  });
  CHECK(compared == 2 * 7 * length);
  CHECK(equal);
  CHECK(value(Item{0}, 0) != static_cast<double>(static_cast<float>(value(Item{0}, 0))));
}

TEST_CASE("casts go between all number types") {
  Builder builder("cast", 1);
  const BufferId from = builder.add_buffer({.type = Scalar::f64, .transient = false, .bytes = 24});
  const BufferId into = builder.add_buffer({.type = Scalar::i32, .bytes = 12});
  const ActionId id = builder.add({.kind = Kind::cast, .queue = builder.local(Rank{0})},
                                  {schedule::read(from), schedule::write(into)});
  double numbers[] = {1.75, -2.5, 3};
  std::int32_t whole[3] = {};
  const auto cast = [&](Scalar source, Scalar target, Bytes bytes) {
    const Schedule schedule = Schedule(Builder(builder).build()).with_sizes([&](Buffer& buffer) {
      buffer.type = buffer.transient ? target : source;
    });
    const BoundUse uses[] = {{reinterpret_cast<std::byte*>(numbers), 24, from, Access::read},
                             {reinterpret_cast<std::byte*>(whole), bytes, into, Access::write}};
    cast_on_host(Task(schedule, id, uses));
  };
  cast(Scalar::f64, Scalar::i32, 12);
  CHECK((whole[0] == 1 && whole[1] == -2 && whole[2] == 3));

  const std::string count =
      test::message_of<contract_error>([&] { cast(Scalar::f64, Scalar::i32, 8); });
  CHECK(count.find("the two buffers have different numbers of elements") != std::string::npos);
  CHECK(count.find("24 bytes of f64, 8 of i32") != std::string::npos);
  const std::string type =
      test::message_of<contract_error>([&] { cast(Scalar::byte, Scalar::byte, 24); });
  CHECK(type.find("bytes have no values to cast") != std::string::npos);
}

}  // namespace test_casts
