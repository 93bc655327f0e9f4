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

#include <heddle/collective/impl/call_base.hpp>
#include <heddle/collective/impl/call_view.hpp>
#include <heddle/collective/impl/decide.hpp>
#include <heddle/collective/impl/library_work.hpp>
#include <heddle/collective/impl/meet.hpp>
#include <heddle/collective/impl/performer.hpp>
#include <heddle/collective/impl/scheduled_work.hpp>
#include <heddle/collective/request.hpp>
#include <heddle/comm/agreement.hpp>
#include <heddle/comm/check.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/device/done_at_once.hpp>

namespace heddle::inline v0 {
namespace impl {

/// Calls `check()`, which checks the arguments of a call, and returns its key. Throws if another
/// argument is invalid on this rank, and at the contract level "communication" if the calls of the
/// ranks differ.
template <class Call, class Check>
[[nodiscard]] PerformerKey completed(Call& call, Check&& check, bool blocking = true,
                                     bool keeps = false) {
  PerformerKey key;
  const auto check_all = [&] {
    check();
    key = call.key();
    using enum schedule::Collective;
    check_codec(
        Call::where, call.options, call.ranks(),
        key.collective == all_to_all || key.collective == gather || key.collective == scatter,
        keeps);
    decide(call, key, blocking);
  };
  agree(call, check_all, [&] {
    return CollectiveCall{
        Call::where,
        {{"bytes", text(key.bytes)},
         {"bytes of blocks", listed(key.blocks)},
         {"type", key.element == 0 ? text(key.type) : text(key.element, " bytes")},
         {"reduction", typeid(call.reduction).name()},
         {"order of elements", orders_of_views(call)},
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
/// Returns the key of a call whose arguments are not checked yet.
template <class Call>
[[nodiscard]] PerformerKey checked(Call& call, bool blocking = true, bool keeps = false) {
  call.comm->expect_not_empty(Call::where);
  call.exchange();
  return completed(
      call, [&] { call.check(); }, blocking, keeps);
}

/// Has MPI make a call that was checked, in a function of its that blocks.
template <class Call>
void perform_by_library(Call& call) {
  fetch_views(call);
  wait_for_work(call.exec, Call::where);
  check(call.library(nullptr), Call::where);
  give_views(call);
}

/// Makes a call that was checked, and waits for it.
template <class Call>
void perform(Call& call, const PerformerKey& key) {
  if (!key.choice.library)
    ScheduledWork<Call&>(call, key).wait();
  else if (polled(call))
    LibraryWork<Call>(call).wait();
  else
    perform_by_library(call);
}

/// Makes the call that `make` returns of Lent or of Kept, and waits for it.
template <class Make>
void perform(const Make& make) {
  auto call = make(Lent{});
  call.comm->expect_not_empty(decltype(call)::where);
  call.exchange();
  constexpr bool at_once = contract_level == ContractLevel::local;
  if constexpr (at_once) {
    call.check();
    if (library_at_once(call)) return perform_by_library(call);
  }
  const PerformerKey key = completed(call, [&] {
    if constexpr (!at_once) call.check();
  });
  if (!key.choice.library) return ScheduledWork<decltype(call)&>(call, key).wait();
  if (!polled(call)) return perform_by_library(call);
  auto kept = make(Kept{});  // MPI's, should it never be over
  kept.exchange();
  kept.check();
  LibraryWork<decltype(kept)>(std::move(kept)).wait();
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
