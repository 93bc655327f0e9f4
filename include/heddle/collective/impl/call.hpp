// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// How a collective call is made: it is checked, and then made by the MPI library or by a Schedule;
/// at once or as a Request.

#include <memory>
#include <string>
#include <typeinfo>
#include <utility>

#include <heddle/collective/impl/decide.hpp>
#include <heddle/collective/impl/library_work.hpp>
#include <heddle/collective/impl/meet.hpp>
#include <heddle/collective/impl/performer.hpp>
#include <heddle/collective/impl/scheduled_work.hpp>
#include <heddle/collective/request.hpp>
#include <heddle/comm/agreement.hpp>
#include <heddle/comm/check.hpp>
#include <heddle/core/text.hpp>

namespace heddle::inline v0 {
namespace impl {

/// The key of a call that is checked: for what is wrong on this rank, and at the contract level
/// "communication" for what differs between ranks.
template <class Call>
[[nodiscard]] PerformerKey checked(Call& call, bool blocking = true) {
  call.check();
  PerformerKey key = call.key();
  using enum schedule::Collective;
  check_codec(
      Call::where, call.options, call.ranks(),
      key.collective == all_to_all || key.collective == gather || key.collective == scatter);
  decide(call, key, blocking);
  agree(call, [&] {
    const auto listed = [](const auto& numbers) {
      std::string list;
      for (const auto number : numbers) list += text(list.empty() ? "" : " ", number);
      return list;
    };
    return CollectiveCall{
        Call::where,
        {{"bytes", text(key.bytes)},
         {"bytes of blocks", listed(key.blocks)},
         {"type", key.element == 0 ? text(key.type) : text(key.element, " bytes")},
         {"reduction", typeid(call.reduction).name()},
         {"root", text(call.key().root)},
         {"algorithm", text(key.choice)},
         {"chunks", text(key.chunks)},
         {"codec", key.codec ? text(*key.codec) : std::string("none")},
         {"domains of the codec", listed(key.codec_domains)},
         {"shared memory", text(call.options.shared_memory)},
         {"in SharedView", key.in_place ? text(place_in_view(call)) : std::string("none")},
         {"shared bytes", text(call.options.shared_bytes)},
         {"progress thread", text(call.options.progress_thread)},
         {"watched", text(call.options.watch_library)}}};
  });
  return key;
}

/// Makes a call that was checked, and waits for it.
template <class Call>
void perform(Call& call, const PerformerKey& key) {
  if (!key.choice.library) {
    ScheduledWork<Call&>(call, key).wait();
  } else if (call.options.watch_library || call.comm->template attached<CallLines>().requested()) {
    // Polled, so that it ends by the watchdog, and requests are furthered meanwhile; on all ranks,
    // for MPI does not match calls that block with others.
    LibraryWork<Call>(call).wait();
  } else {
    call.fetch();
    call.exec.fence(Call::where);
    check(call.library(nullptr), Call::where);
    call.give();
  }
}
/// Makes the call and waits for it.
template <class Call>
void perform(Call call) {
  const PerformerKey key = checked(call);
  perform(call, key);
}

/// Begins a call that was checked.
template <class Call>
[[nodiscard]] Request begin(Call call, const PerformerKey& key) {
  if (key.choice.library) return Request(std::make_unique<LibraryWork<Call>>(std::move(call)));
  call.comm->template attached<CallLines>().requested(true);
  return Request(std::make_unique<ScheduledWork<Call>>(std::move(call), key));
}

/// Begins the call.
template <class Call>
[[nodiscard]] Request start(Call call) {
  const PerformerKey key = checked(call, false);
  return begin(std::move(call), key);
}

}  // namespace impl
}  // namespace heddle::inline v0
