// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of emit_mpi.hpp.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/systems/mpirigen/emit_mpi.hpp>
#include <heddle/systems/mpirigen/impl/mpi_emitter.hpp>

namespace heddle::inline v0::systems {

namespace impl {

// Whether `name` is an identifier that every C++ program may define.
inline bool is_emitted_name(std::string_view name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && is_letter(name[0]) && name.find("__") == std::string_view::npos &&
         std::ranges::all_of(name, [&](char c) { return is_letter(c) || is_digit(c) || c == '_'; });
}

inline void refuse_emission(const Schedule& schedule, ActionId id, const char* what,
                            const char* fix) {
  throw contract_error(
      {"heddle::systems::emit_mpi", what,
       text("action ", +id, " of '", schedule.name(), "': ", schedule::action_text(schedule, id)),
       fix});
}

inline void check_emission(const Schedule& schedule, ActionId id) {
  const auto refuse = [&](const char* what, const char* fix) {
    refuse_emission(schedule, id, what, fix);
  };
  const auto uses = schedule.uses(id);
  switch (schedule[id].kind) {
    case Kind::cast:
      return refuse("a cast action has no form in plain MPI",
                    "emit the schedule without cast_at_cut()");
    case Kind::group:
      return refuse("a group action is not expanded",
                    "call expand() with a CollectiveForm before emit_mpi()");
    case Kind::user:
      return refuse("a user action has no function in the emitted program",
                    "give it the kind of one of F, I, W, B or update, or run it by an Executor");
    case Kind::combine:
      if (schedule[uses[0].buffer].type != schedule[uses[1].buffer].type)
        refuse("a combine action reads a message in the form of a Codec",
               "emit the schedule without cast_at_cut()");
      return;
    case Kind::move:
      if (!schedule[schedule[id].queue].local() &&
          schedule.bytes(uses[0]) > static_cast<Bytes>(std::numeric_limits<int>::max()))
        refuse("a message has more bytes than an MPI call counts",
               "divide it by schedule::split_moves()");
      return;
    default: return;
  }
}

}  // namespace impl

HEDDLE_INLINE std::string emit_mpi(const Schedule& schedule, const EmitOptions& options) {
  expects(impl::is_emitted_name(options.name), [&] {
    return ErrorInfo{"heddle::systems::emit_mpi", "the name of the namespace is not an identifier",
                     text("'", options.name, "'"),
                     "begin with a letter; use letters, digits and _"};
  });
  expects(schedule.domains().empty(), [&] {
    return ErrorInfo{"heddle::systems::emit_mpi",
                     "ranks that share memory do not send all messages",
                     text("'", schedule.name(), "' has domains of memory"),
                     "emit the schedule without share_memory()"};
  });
  for (std::size_t i = 0; i < schedule.size(); ++i) impl::check_emission(schedule, ActionId{i});
  return impl::MpiEmitter(schedule, options.name).run();
}

}  // namespace heddle::inline v0::systems
