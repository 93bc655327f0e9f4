// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// MpiEmitter: writes the file of emit_mpi(). It prints the Program of every rank.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/core/version.hpp>
#include <heddle/execute/internal/program_steps.hpp>
#include <heddle/execute/program.hpp>
#include <heddle/execute/slice.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/systems/mpirigen/impl/mpi_types.hpp>

namespace heddle::inline v0::systems::impl {

/// The state of one emit_mpi() call. The schedule has been checked.
class MpiEmitter {
 public:
  MpiEmitter(const Schedule& schedule, std::string name)
      : m_schedule(schedule), m_name(std::move(name)) {}

  std::string run() {
    head();
    m_out += emitted_types(m_schedule.ranks());
    m_out += emitted_work(m_schedule, m_name);
    program();
    add("}  // namespace ", m_name, "\n\n#endif\n");
    return std::move(m_out);
  }

 private:
  /// A port of a rank, and how many of its messages are known to be complete.
  struct Requests {
    std::string name;          ///< the name of the array of its requests
    std::size_t first = 0;     ///< its first request among those of the rank
    std::uint32_t posted = 0;  ///< messages of this step
    std::uint32_t done = 0;    ///< the number of them that are complete
    std::uint32_t before = 0;  ///< messages of the previous step that are complete
    bool used_before = false;  ///< whether any wait is for the previous step
  };

  template <class... Pieces>
  void add(const Pieces&... pieces) {
    m_out += text(pieces...);
  }

  [[nodiscard]] static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  }
  [[nodiscard]] static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  /// The name of a variable for a label, and `_`. It has no two of these in a row, which C++
  /// reserves.
  [[nodiscard]] static std::string variable(std::string_view label) {
    std::string name = label.empty() || !is_letter(label[0]) ? "buffer_" : "";
    for (const char c : text(label, '_'))
      if (is_letter(c) || is_digit(c))
        name += c;
      else if (name.back() != '_')
        name += '_';
    return name;
  }

  /// A text that a comment can hold.
  [[nodiscard]] static std::string in_comment(std::string_view raw) {
    std::string out;
    for (const char c : raw) out += static_cast<unsigned char>(c) < 0x20 || c == '\\' ? ' ' : c;
    return out;
  }

  /// A text as a string literal.
  [[nodiscard]] static std::string literal(std::string_view raw) {
    std::string out = "\"";
    for (const char c : raw) {
      if (c == '"' || c == '\\') out += '\\';
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return out + '"';
  }

  [[nodiscard]] std::vector<BufferId> buffers_of(Rank rank) const {
    std::vector<BufferId> of;
    for (std::size_t b = 0; b < m_schedule.buffers().size(); ++b)
      if (m_schedule.buffers()[b].rank == rank) of.push_back(BufferId{b});
    return of;
  }

  void head() {
    add("// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n"
        "// SPDX-FileCopyrightText: The Heddle contributors\n\n");
    add("// ", in_comment(m_schedule.name().empty() ? "A schedule" : m_schedule.name()), " on ",
        m_schedule.ranks(), m_schedule.ranks() == 1 ? " rank" : " ranks",
        ", in C++17 with MPI alone. Written by Heddle ", HEDDLE_VERSION_MAJOR, '.',
        HEDDLE_VERSION_MINOR, '.', HEDDLE_VERSION_PATCH, ".\n//\n");
    add("// Derive a class from ", m_name, "::Work and start ", m_schedule.ranks(),
        m_schedule.ranks() == 1 ? " process. It" : " processes. Each", " does:\n//\n//   ", m_name,
        "::Program program(MPI_COMM_WORLD);\n",
        "//   for (auto& buffer : program.buffers())\n"
        "//     if (buffer.persistent) fill(buffer);\n"
        "//   program.step(work);  // as often as you like\n"
        "//   program.finish();    // before you read or change a buffer\n\n");
    add("#ifndef HEDDLE_EMITTED_", m_name, "\n#define HEDDLE_EMITTED_", m_name, "\n\n");
    for (const char* header :
         {"cstddef", "cstdint", "cstring", "exception", "stdexcept", "string", "utility", "vector"})
      add("#include <", header, ">\n");
    add("\n// The C++ functions of old MPIs, which are not used, have warnings.\n");
    for (const char* macro : {"OMPI_SKIP_MPICXX", "MPICH_SKIP_MPICXX"})
      add("#ifndef ", macro, "\n#define ", macro, " 1\n#endif\n");
    add("#include <mpi.h>\n\n", "namespace ", m_name, " {\n\n");
  }

  void program() {
    add("/// The part of the schedule on this rank, and its memory. All ranks of a communicator "
        "construct it.\n"
        "class Program {\n public:\n"
        "  explicit Program(MPI_Comm comm) : exceptions_(std::uncaught_exceptions()) {\n"
        "    int size = 0;\n"
        "    MPI_Comm_size(comm, &size);\n"
        "    if (size != ranks)\n"
        "      throw std::runtime_error(\"",
        m_name,
        "::Program: start it on \" + "
        "std::to_string(ranks) +\n"
        "                               \" ranks, not on \" + std::to_string(size));\n"
        "    MPI_Comm_dup(comm, &comm_);\n"
        "    MPI_Comm_rank(comm, &rank_);\n"
        "    switch (rank_) {\n");
    for (int rank = 0; rank < m_schedule.ranks(); ++rank)
      add("      case ", rank, ": make_", rank, "(); break;\n");
    add("    }\n  }\n\n"
        "  Program(const Program&) = delete;\n"
        "  Program& operator=(const Program&) = delete;\n\n"
        "  /// Completes all messages. If an exception destroys the program, the job ends, because "
        "the\n"
        "  /// other ranks would wait for this one.\n"
        "  ~Program() {\n"
        "    if (std::uncaught_exceptions() > exceptions_) MPI_Abort(comm_, 1);\n"
        "    finish();\n"
        "    MPI_Comm_free(&comm_);\n"
        "  }\n\n"
        "  /// Returns the buffers of this rank.\n"
        "  std::vector<Buffer>& buffers() { return buffers_; }\n\n"
        "  /// Performs the schedule once. Messages may stay in flight.\n"
        "  void step(Work& work) {\n"
        "    std::swap(now_, before_);\n"
        "    switch (rank_) {\n");
    for (int rank = 0; rank < m_schedule.ranks(); ++rank)
      add("      case ", rank, ": rank_", rank, "(work); break;\n");
    add("    }\n  }\n\n"
        "  /// Completes the messages in flight.\n"
        "  void finish() {\n"
        "    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), "
        "MPI_STATUSES_IGNORE);\n"
        "  }\n\n"
        " private:\n"
        "  void add(const char* role, int stage, Type type, int parts, bool persistent, "
        "std::size_t bytes) {\n"
        "    memory_.emplace_back(bytes);\n"
        "    buffers_.push_back({role, stage, type, parts, persistent, bytes, "
        "memory_.back().data()});\n"
        "  }\n\n"
        "  /// The requests of two steps, because a message may be awaited in the next one.\n"
        "  void expect(std::size_t messages) {\n"
        "    requests_.assign(2 * messages, MPI_REQUEST_NULL);\n"
        "    now_ = requests_.data();\n"
        "    before_ = now_ + messages;\n"
        "  }\n\n"
        "  /// Lets MPI carry the messages in flight.\n"
        "  void progress() {\n"
        "    int done = 0;\n"
        "    MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, "
        "MPI_STATUSES_IGNORE);\n"
        "  }\n\n");
    for (int rank = 0; rank < m_schedule.ranks(); ++rank) part(Rank{rank});
    add("  MPI_Comm comm_ = MPI_COMM_NULL;\n"
        "  int rank_ = 0;\n"
        "  int exceptions_;\n"
        "  std::vector<std::vector<unsigned char>> memory_;\n"
        "  std::vector<Buffer> buffers_;\n"
        "  std::vector<MPI_Request> requests_;\n"
        "  MPI_Request* now_ = nullptr;     ///< the requests of this step\n"
        "  MPI_Request* before_ = nullptr;  ///< the requests of the step before\n"
        "};\n\n");
  }

  /// The memory and the actions of one rank.
  void part(Rank rank) {
    Program program = slice(m_schedule, rank, [](BufferId, const Buffer&) { return nullptr; });
    heddle::impl::leave_moves_to_handler(program);
    m_ports.clear();
    m_names.clear();
    m_used.assign(m_schedule.buffers().size(), false);
    std::size_t messages = 0;
    for (const Program::Port& port : program.ports) {
      m_ports.push_back({unique(text(port.sends ? "to_" : "from_", port.peer,
                                     +port.lane == 0 ? "" : text("_lane_", port.lane))),
                         messages});
      messages += port.messages;
    }
    make(rank, messages);
    find_done(program);
    std::string body;
    std::swap(m_out, body);
    for (std::size_t i = 0; i < program.size(); ++i) action(program, i, messages != 0);
    rest(program);
    std::swap(m_out, body);
    add("  void rank_", rank, "(Work&", has_work(program) ? " work" : "", ") {\n");
    for (const BufferId id : buffers_of(rank))
      if (m_used[+id])
        add("    unsigned char* const ", m_buffer_names[+id], " = buffers_[", m_places[+id],
            "].data;\n");
    for (std::size_t p = 0; p < m_ports.size(); ++p) {
      const Requests& port = m_ports[p];
      const std::string place = port.first == 0 ? "" : text(" + ", port.first);
      add("    MPI_Request* const ", port.name, " = now_", place, ";  // ",
          program.ports[p].messages, program.ports[p].messages == 1 ? " message\n" : " messages\n");
      if (port.used_before)
        add("    MPI_Request* const ", port.name, "_before = before_", place, ";\n");
    }
    m_out += body;
    add("  }\n\n");
  }

  void make(Rank rank, std::size_t messages) {
    m_buffer_names.resize(m_schedule.buffers().size());
    m_places.resize(m_schedule.buffers().size());
    Bytes bytes = 0;
    for (const BufferId id : buffers_of(rank)) bytes += m_schedule[id].bytes;
    add("  /// Rank ", rank, ": ", bytes, " bytes, ", messages, " messages a step.\n",
        "  void make_", rank, "() {\n");
    std::size_t place = 0;
    for (const BufferId id : buffers_of(rank)) {
      const Buffer& buffer = m_schedule[id];
      const std::string& label = m_schedule[buffer.label];
      m_places[+id] = place++;
      m_buffer_names[+id] = unique(text(variable(label), buffer.stage));
      add("    add(", literal(label), ", ", buffer.stage, ", Type::", buffer.type, ", ",
          buffer.parts, ", ", buffer.transient ? "false" : "true", ", ", buffer.bytes, ");\n");
    }
    add("    expect(", messages, ");\n  }\n\n");
  }

  /// Sets which messages of a step are awaited in this step itself.
  void find_done(const Program& program) {
    for (const Program::Wait& wait : program.waits)
      if (!wait.carried)
        m_ports[wait.port].before = std::max(m_ports[wait.port].before, wait.messages);
  }

  [[nodiscard]] static bool has_work(const Program& program) {
    for (std::size_t i = 0; i < program.size(); ++i)
      if (program.steps[i].does == Program::Step::Does::run &&
          program.schedule[program.steps[i].action].kind != Kind::move)
        return true;
    return false;
  }

  /// Prints the wait for the first `messages` messages of a port, if they may be in flight.
  void await(std::size_t port, std::uint32_t messages, bool carried) {
    Requests& requests = m_ports[port];
    std::uint32_t& done = carried ? requests.before : requests.done;
    if (messages <= done) return;
    requests.used_before = requests.used_before || carried;
    const std::string name = requests.name + (carried ? "_before" : "");
    if (messages - done == 1)
      add("    MPI_Wait(&", name, "[", done, "], MPI_STATUS_IGNORE);\n");
    else
      add("    MPI_Waitall(", messages - done, ", &", name, "[", done,
          "], MPI_STATUSES_IGNORE);\n");
    done = messages;
  }

  void action(const Program& program, std::size_t at, bool messages) {
    const Program::Step& step = program.steps[at];
    add("\n    // ");
    if (step.moves())
      add(in_comment(schedule::action_text(m_schedule, step.action,
                                           step.does == Program::Step::Does::send ? 0 : 1)),
          step.does == Program::Step::Does::send ? " to rank " : " from rank ",
          program.ports[step.port].peer, '\n');
    else
      add(in_comment(schedule::action_text(m_schedule, step.action)), '\n');
    for (const Program::Wait& wait : program.waits_of(at))
      await(wait.port, wait.messages, wait.carried);
    const auto uses = m_schedule.uses(step.action);
    if (step.moves()) {
      const bool sends = step.does == Program::Step::Does::send;
      const Use& use = uses[sends ? 0 : 1];
      Requests& port = m_ports[step.port];
      add("    ", sends ? "MPI_Isend(" : "MPI_Irecv(", memory(use), ", ", m_schedule.bytes(use),
          ", MPI_BYTE, ", program.ports[step.port].peer, ", ", program.ports[step.port].lane,
          ", comm_, &", port.name, "[", port.posted++, "]);\n");
    } else if (m_schedule[step.action].kind == Kind::move) {
      if (m_schedule.bytes(uses[0]) != 0)
        add("    std::memcpy(", memory(uses[1]), ", ", memory(uses[0]), ", ",
            m_schedule.bytes(uses[0]), ");\n");
    } else {
      call(step.action);
      if (messages) add("    progress();\n");
    }
  }

  /// Prints the call of a function of Work.
  void call(ActionId id) {
    const Action& action = m_schedule[id];
    const auto uses = m_schedule.uses(id);
    const char* name = "combine";
    for (const EmittedFunction& function : emitted_functions)
      if (function.kind == action.kind) name = function.name;
    const auto flagged = [&](std::uint8_t bit) {
      return (action.flags & bit) != 0 ? "true" : "false";
    };
    const std::string task = text("{", action.stage, ", ", action.item, ", ",
                                  flagged(flag::with_next), ", ", flagged(flag::again), ", ");
    if (uses.empty()) return add("    work.", name, "(", task, "nullptr, 0});\n");
    add("    {\n      const Span spans[] = {\n");
    for (const Use& use : uses) {
      const Buffer& buffer = m_schedule[use.buffer];
      constexpr const char* accesses[] = {"", "read", "write", "update"};
      add("          {", literal(m_schedule[buffer.label]),
          ", Access::", accesses[static_cast<std::size_t>(use.access())], ", Type::", buffer.type,
          ", ", memory(use), ", ", m_schedule.bytes(use), ", ", buffer.record, "},\n");
    }
    add("      };\n      work.", name, "(", task, "spans, ", uses.size(), "});\n    }\n");
  }

  /// Prints the waits for the messages of the previous step that no action awaits: their requests
  /// are needed again in the next step.
  void rest(const Program& program) {
    bool first = true;
    for (std::size_t p = 0; p < m_ports.size(); ++p) {
      if (m_ports[p].before >= program.ports[p].messages) continue;
      if (first) add("\n    // the rest of the step before, whose requests the next step uses\n");
      first = false;
      await(p, program.ports[p].messages, true);
    }
  }

  /// The expression for where the memory of a use begins.
  [[nodiscard]] std::string memory(const Use& use) {
    m_used[+use.buffer] = true;
    const Bytes offset = schedule::part_offset(m_schedule[use.buffer], use.first);
    return offset == 0 ? m_buffer_names[+use.buffer]
                       : text(m_buffer_names[+use.buffer], " + ", offset);
  }

  /// `name`, with a number behind it if another variable of the rank has this name.
  std::string unique(std::string name) {
    std::string tried = name;
    for (int n = 2; !m_names.insert(tried).second; ++n) tried = text(name, "_n", n);
    return tried;
  }

  const Schedule& m_schedule;
  std::string m_name;
  std::string m_out;
  std::vector<Requests> m_ports;
  std::set<std::string> m_names;
  std::vector<bool> m_used;  ///< buffers that the present rank names
  std::vector<std::string> m_buffer_names;
  std::vector<std::size_t> m_places;  ///< the number of a buffer on its rank
};

}  // namespace heddle::inline v0::systems::impl
