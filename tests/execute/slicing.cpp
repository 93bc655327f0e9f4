// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/text.hpp>
#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>

#include "support/complaint.hpp"

namespace test_slicing {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

std::byte* no_memory(BufferId, const Buffer&) { return nullptr; }

/// `S0`, `R1`, `.`: send or receive at that port, or run; with what it waits for before: `(0:2)`
/// for the first two messages of port 0, a star for those of the previous step.
std::string steps_text(const Program& program) {
  std::string line;
  for (std::size_t i = 0; i < program.size(); ++i) {
    for (const Program::Wait& wait : program.waits_of(i))
      line += text("(", wait.port, ":", wait.messages, wait.carried ? "*" : "", ")");
    const Program::Step& step = program.steps[i];
    line += step.does == Program::Step::Does::run
                ? text(schedule::action_text(program.schedule, step.action))
            : step.does == Program::Step::Does::send ? text("S", step.port)
                                                     : text("R", step.port);
    line += " ";
  }
  return line;
}

}  // namespace

TEST_CASE("a program is its rank's part of the list, waits as late as possible") {
  const Schedule pipeline = schedule::one_f_one_b({.stages = 2, .microbatches = 2});
  // Ports of rank 0: 0 sends activations, 1 receives gradients. The outputs are sent from parts of
  // their own, so only the next step waits for the sends, when it writes them again.
  CHECK(steps_text(slice(pipeline, Rank{0}, no_memory)) ==
        "(0:1*)0F0 S0 (0:2*)0F1 S0 R1 (1:1)0B0 R1 (1:2)0B1 0UPDATE0 ");
  // Ports of rank 1: 0 receives activations, 1 sends gradients. B reads the input again, and says
  // so.
  CHECK(steps_text(slice(pipeline, Rank{1}, no_memory)) ==
        "R0 R0 (0:1)1F0 (0:1)(1:1*)1B0 S1 (0:2)1F1 (0:2)(1:2*)1B1 S1 1UPDATE0 ");
  const Program program = slice(pipeline, Rank{1}, no_memory);
  REQUIRE(program.ports.size() == 2);
  CHECK((program.ports[0].peer == Rank{0} && !program.ports[0].sends));
  CHECK((program.ports[1].sends && program.ports[1].messages == 2));
}

TEST_CASE("every action is in the program of each of its ranks, once") {
  const Schedule pipeline =
      schedule::interleaved({.ranks = 3, .stages_per_rank = 2, .microbatches = 6});
  std::map<std::uint32_t, int> places;
  for (int r = 0; r < 3; ++r) {
    const Program program = slice(pipeline, Rank{r}, no_memory);
    for (std::size_t i = 0; i < program.size(); ++i) ++places[program.steps[i].action.value];
  }
  for (std::size_t i = 0; i < pipeline.size(); ++i)
    CHECK(places[static_cast<std::uint32_t>(i)] ==
          (pipeline[ActionId{i}].kind == Kind::move ? 2 : 1));
}

TEST_CASE("memory is asked for once per buffer of the rank, and bound at the parts' offsets") {
  Builder builder("bound", 2);
  const LabelId label = builder.label("data");
  const BufferId mine = builder.add_buffer(
      {.parts = 3, .label = label, .type = Scalar::i32, .transient = false, .bytes = 4 * 7});
  const BufferId theirs =
      builder.add_buffer({.rank = Rank{1}, .parts = 3, .label = label, .bytes = 1});
  const BufferId unused = builder.add_buffer({.label = label, .bytes = 64});
  builder.add({.kind = Kind::user, .queue = builder.local(Rank{0})},
              {schedule::read(mine, 1), schedule::update(mine, 1, 2)});
  builder.add({.kind = Kind::group, .queue = builder.local(Rank{0})},
              {schedule::read(mine, 0), schedule::write(theirs, 0)});
  std::vector<std::byte> memory(64);
  std::vector<BufferId> asked;
  const Program program =
      slice(std::move(builder).build(), Rank{0}, [&](BufferId id, const Buffer&) -> std::byte* {
        asked.push_back(id);
        return id == unused ? nullptr : memory.data();
      });
  CHECK(asked == std::vector<BufferId>{mine, unused});
  REQUIRE(program.uses_of(0).size() == 2);
  // 7 elements in 3 parts: 3, 2, 2.
  CHECK(program.uses_of(0)[0].data == memory.data() + 12);
  CHECK(program.uses_of(0)[0].bytes == 8);
  CHECK(program.uses_of(0)[0].access == Access::read);
  CHECK(program.uses_of(0)[1].data == memory.data() + 12);
  CHECK(program.uses_of(0)[1].bytes == 16);
  // Of a group only the operands of this rank.
  REQUIRE(program.uses_of(1).size() == 1);
  CHECK((program.uses_of(1)[0].bytes == 12 && program.uses_of(1)[0].buffer == mine));
}

TEST_CASE("a rank that the schedule lacks, and a move of two sizes, are refused") {
  const Schedule pipeline =
      schedule::gpipe({.stages = 2, .microbatches = 2, .sizes = {.activation = 8}});
  CHECK_THAT(test::message_of<contract_error>([&] { (void)slice(pipeline, Rank{2}, no_memory); }),
             ContainsSubstring("heddle::slice: the schedule has no such rank (rank 2 of 2)"));
  const Schedule uneven = pipeline.with_sizes([](Buffer& buffer) {
    if (buffer.rank == Rank{1}) buffer.bytes = 6;
  });
  CHECK_THAT(test::message_of<contract_error>([&] { (void)slice(uneven, Rank{0}, no_memory); }),
             ContainsSubstring("the two ends of a move differ in size") &&
                 ContainsSubstring("0SEND_F0 -> 1RECV_F0: 8 and 3 bytes"));
}

TEST_CASE("an empty schedule is an empty program") {
  const Program program = slice(Builder("empty", 2).build(), Rank{1}, no_memory);
  CHECK(program.size() == 0);
  CHECK(program.ports.empty());
}

}  // namespace test_slicing
