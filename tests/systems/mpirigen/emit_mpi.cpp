// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Emitted programs post and await what slice() says, in its order; the rest is refused by name.
// That they compile and run is tested by comm.emitted.

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/text.hpp>
#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>
#include <heddle/systems/mpirigen/emit_mpi.hpp>

#include "support/complaint.hpp"
#include "support/emittable.hpp"
#include "support/execution.hpp"

namespace test_emit_mpi {

using namespace heddle;
using test::message_of;

namespace {

/// The lines of the function of a rank.
std::vector<std::string> lines_of(const std::string& file, int rank) {
  std::istringstream in(file.substr(file.find(text("  void rank_", rank, "(Work&"))));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line) && line != "  }";) lines.push_back(line);
  return lines;
}

std::size_t count(std::string_view file, std::string_view phrase) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = file.find(phrase, at)) != std::string_view::npos; ++at) ++found;
  return found;
}

/// The number that follows `phrase` in `line`.
std::size_t number_after(const std::string& line, const std::string& phrase) {
  const std::size_t at = line.find(phrase);
  REQUIRE(at != std::string::npos);
  std::size_t value = 0;
  const char* const begin = line.data() + at + phrase.size();
  REQUIRE(std::from_chars(begin, line.data() + line.size(), value).ec == std::errc{});
  return value;
}

/// Reads the function of a rank as what it is, a list of MPI calls, and compares it with a Program.
class Reader {
 public:
  Reader(const Schedule& schedule, const std::string& file, int rank)
      : m_program(slice(schedule, Rank{rank}, [](BufferId, const Buffer&) { return nullptr; })),
        m_lines(lines_of(file, rank)) {
    for (const Program::Port& port : m_program.ports)
      m_names.push_back(text(port.sends ? "to_" : "from_", port.peer,
                             +port.lane == 0 ? "" : text("_lane_", port.lane)));
  }

  void check() {
    find_awaited();
    std::size_t step = 0;
    std::map<std::string, std::uint32_t> posted;
    m_done.clear();
    for (const std::string& line : m_lines) {
      note_wait(line);
      const bool posts = line.find("MPI_I") != std::string::npos;
      const bool calls =
          line.find("work.") != std::string::npos || line.find("std::memcpy") != std::string::npos;
      if (!posts && !calls) continue;
      REQUIRE(step < m_program.size());
      INFO(m_program.schedule.name() << ", rank " << m_program.rank << ": " << line);
      for (const Program::Wait& wait : m_program.waits_of(step)) require(wait);
      const Program::Step& present = m_program.steps[step++];
      REQUIRE(posts == present.moves());
      if (!posts) continue;
      const Program::Port& port = m_program.ports[present.port];
      const std::string& name = m_names[present.port];
      REQUIRE((line.find("MPI_Isend") != std::string::npos) == port.sends);
      REQUIRE(line.find(text(", MPI_BYTE, ", port.peer, ", ", port.lane, ", comm_, &", name, "[",
                             posted[name]++, "]);")) != std::string::npos);
      REQUIRE(line.find(text(", ", m_program.uses_of(step - 1)[0].bytes, ", MPI_BYTE")) !=
              std::string::npos);
    }
    REQUIRE(step == m_program.size());
    // Nothing of the step before may be in flight when its requests are used again.
    for (std::size_t p = 0; p < m_names.size(); ++p)
      for (std::uint32_t k = 0; k < m_program.ports[p].messages; ++k)
        REQUIRE(
            (m_awaited.contains({m_names[p], k}) || m_done.contains({m_names[p] + "_before", k})));
  }

 private:
  using Message = std::pair<std::string, std::size_t>;

  /// Notes the messages that a line waits for.
  void note_wait(const std::string& line) {
    if (line.find("MPI_Wait") == std::string::npos) return;
    const std::size_t many =
        line.find("MPI_Waitall(") == std::string::npos ? 1 : number_after(line, "MPI_Waitall(");
    const std::size_t begin = line.find('&') + 1;
    const std::string name = line.substr(begin, line.find('[') - begin);
    const std::size_t first = number_after(line, name + "[");
    for (std::size_t k = first; k < first + many; ++k) m_done.insert({name, k});
  }
  /// Messages that a step awaits itself.
  void find_awaited() {
    for (const std::string& line : m_lines) note_wait(line);
    m_awaited = m_done;
  }
  void require(const Program::Wait& wait) const {
    const std::string& name = m_names[wait.port];
    for (std::uint32_t k = 0; k < wait.messages; ++k) {
      if (wait.carried)
        REQUIRE((m_awaited.contains({name, k}) || m_done.contains({name + "_before", k})));
      else
        REQUIRE(m_done.contains({name, k}));
    }
  }

  Program m_program;
  std::vector<std::string> m_lines;
  std::vector<std::string> m_names;
  std::set<Message> m_done, m_awaited;
};

void check_text(const Schedule& schedule) {
  const std::string file = systems::emit_mpi(schedule);
  std::size_t moves = 0;
  for (std::size_t i = 0; i < schedule.size(); ++i)
    moves +=
        schedule[ActionId{i}].kind == Kind::move && !schedule[schedule[ActionId{i}].queue].local();
  REQUIRE(count(file, "MPI_Isend(") == moves);
  REQUIRE(count(file, "MPI_Irecv(") == moves);
  REQUIRE(file.find("heddle/") == std::string::npos);
  for (int rank = 0; rank < schedule.ranks(); ++rank) Reader(schedule, file, rank).check();
}

std::string refusal(const Schedule& schedule) {
  return message_of<contract_error>([&] { static_cast<void>(systems::emit_mpi(schedule)); });
}

/// One action of this kind on one rank.
Schedule single(Kind kind) {
  Builder builder("single", 1);
  const BufferId data = builder.add_buffer(
      {.label = builder.label("data"), .type = Scalar::f32, .transient = false, .bytes = 8});
  const BufferId other = builder.add_buffer(
      {.label = builder.label("other"), .type = Scalar::f16, .transient = false, .bytes = 4});
  builder.add({.kind = kind, .queue = builder.local(Rank{0})},
              {schedule::read(other), schedule::update(data)});
  return std::move(builder).build();
}

}  // namespace

TEST_CASE("emitted programs of pipelines post and await what their ranks' Programs say") {
  for (const auto& entry : schedule::catalogue()) {
    const Schedule list = schedule::expand(
        test::with_memory(weave(entry.orders({.ranks = 4, .microbatches = 8})), 16, Scalar::i64),
        schedule::CollectiveForm{.chunks = 2});
    check_text(list);
    check_text(schedule::fold(list));
  }
}

TEST_CASE("emitted programs of random schedules post and await what their ranks' Programs say") {
  for (std::uint64_t seed = 0; seed < 100; ++seed)
    check_text(test::emittable_random(seed, 1 + static_cast<int>(seed % 4),
                                      3 + static_cast<int>(seed % 50)));
}

TEST_CASE("what plain MPI calls do not express is refused by name") {
  CHECK(refusal(single(Kind::cast)) ==
        "heddle::systems::emit_mpi: a cast action has no form in plain MPI (action 0 of 'single': "
        "0CAST0); "
        "emit the schedule without cast_at_cut()");
  CHECK(refusal(single(Kind::group))
            .find("a group action is not expanded (action 0 of 'single': 0GROUP0); call expand() "
                  "with a "
                  "CollectiveForm before emit_mpi()") != std::string::npos);
  CHECK(refusal(single(Kind::user))
            .find("a user action has no function in the emitted program "
                  "(action 0 of 'single': 0USER0); give it the kind of one") != std::string::npos);
  CHECK(refusal(single(Kind::combine))
            .find("a combine action reads a message in the form of a Codec "
                  "(action 0 of 'single': 0COMBINE0)") != std::string::npos);

  const Schedule pipeline = schedule::one_f_one_b({.stages = 2, .microbatches = 2});
  CHECK(refusal(schedule::share_memory(pipeline, {0, 0}))
            .find("has domains of memory); emit the schedule "
                  "without share_memory()") != std::string::npos);
  const Schedule large = test::with_memory(pipeline, Bytes{1} << 31, Scalar::byte);
  CHECK(refusal(large).find("a message has more bytes than an MPI call counts (action") !=
        std::string::npos);
  CHECK(refusal(large).find("0SEND_F0 -> 1RECV_F0); divide it by schedule::split_moves()") !=
        std::string::npos);
  CHECK_NOTHROW(systems::emit_mpi(test::with_memory(pipeline, (Bytes{1} << 31) - 1, Scalar::byte)));

  for (const char* name : {"", "1f1b", "a b", "a::b", "_a", "a__b", "a-b"})
    CHECK(message_of<contract_error>([&] {
            static_cast<void>(systems::emit_mpi(pipeline, {.name = name}));
          }).find(text("the name of the namespace is not an identifier ('", name, "')")) !=
          std::string::npos);
}

TEST_CASE("names of buffers and of the schedule are made fit for C++") {
  Builder builder("bad \\\nname", 1);
  for (const char* label : {"a b", "a-b", "9", "", "q\"\\"})
    builder.add_buffer({.label = builder.label(label), .transient = false, .bytes = 8});
  std::vector<Use> uses;
  for (std::uint32_t b = 0; b < 5; ++b) uses.push_back(schedule::update(BufferId{b}));
  builder.add({.kind = Kind::forward, .queue = builder.local(Rank{0})}, uses);
  const std::string file = systems::emit_mpi(std::move(builder).build());
  CHECK(file.find("\n// bad   name on 1 rank, in C++17 with MPI alone.") != std::string::npos);
  for (const char* line : {"unsigned char* const a_b_0 = buffers_[0].data;",
                           "unsigned char* const a_b_0_n2 = buffers_[1]",
                           "unsigned char* const buffer_9_0 = ", "unsigned char* const buffer_0 = ",
                           "{\"q\\\"\\\\\", Access::update, Type::byte, q_0, 8, 0},"})
    CHECK(file.find(line) != std::string::npos);
}

}  // namespace test_emit_mpi
