// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of perform.hpp.

#include <memory>
#include <string>
#include <utility>

#include <heddle/collective/impl/decide.hpp>
#include <heddle/collective/impl/library_work.hpp>
#include <heddle/collective/impl/perform.hpp>
#include <heddle/collective/impl/performer.hpp>
#include <heddle/collective/impl/scheduled_work.hpp>
#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/internal/instance.hpp>
#include <heddle/collective/internal/meet.hpp>
#include <heddle/collective/request.hpp>
#include <heddle/comm/agreement.hpp>
#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/device_path.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/execute_options.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE PerformerKey completed(Call& call, const CheckOptions& how) {
  PerformerKey key;
  const CallOptions& options = call.options();
  const auto check_all = [&] {
    if (!how.is_checked) call.check();
    expect_valid(options.wait, call.where());
    expect_enumerator(call.where(), "CallOptions::path", options.path, DevicePath::owned);
    key = call.key();
    using enum schedule::Collective;
    const bool reads_only =
        key.collective == all_to_all || key.collective == gather || key.collective == scatter;
    check_codec(call.where(), options, call.ranks(), reads_only, how.keeps_errors);
    decide(call, key, how.blocking);
  };
  if (call.level() == ContractLevel::local) {
    check_all();
    return key;
  }
  const auto describe = [&] {
    return CollectiveCall{
        call.where(),
        {{"bytes", text(key.bytes)},
         {"bytes of blocks", listed(key.blocks)},
         {"type", key.element == 0 ? text(key.type) : text(key.element, " bytes")},
         {"reduction", call.by().reduction()},
         {"order of elements", orders_of_views(call)},
         {"root", text(call.key().root)},
         {"algorithm", text(key.choice)},
         {"chunks", text(key.chunks)},
         {"codec", key.codec ? text(*key.codec) : std::string("none")},
         {"domains of the codec", listed(key.codec_domains)},
         {"shared memory", text(options.shared_memory)},
         {"in SharedView", key.in_place ? text(place_in_view(call)) : std::string("none")},
         {"shared bytes", text(options.shared_bytes)},
         {"progress thread", text(options.progress_thread)},
         {"watched", text(options.watch_library)}}};
  };
  agree(call.comm(), call.where(), options.wait.watchdog, check_all, describe, call.level());
  return key;
}

HEDDLE_FULL_INLINE PerformerKey checked(Call& call, const CheckOptions& options) {
  call.comm().expect_not_empty(call.where());
  call.exchange();
  return completed(call, options);
}

HEDDLE_FULL_INLINE void perform_by_library(Call& call) {
  fetch_views(call);
  call.by().wait(call.where());
  check(call.library(nullptr), call.where());
  give_views(call);
}

HEDDLE_FULL_INLINE void perform(Call& call, const PerformerKey& key) {
  if (!key.choice.library)
    ScheduledWork(call, key).wait();
  else if (polled(call))
    LibraryWork(call).wait();
  else
    perform_by_library(call);
}

HEDDLE_FULL_INLINE Request begin(std::shared_ptr<Call> call, const PerformerKey& key) {
  Call& begun = *call;
  if (key.choice.library) return Request(std::make_unique<LibraryWork>(begun, std::move(call)));
  begun.comm().attached<CallLines>().requested(true);
  return Request(std::make_unique<ScheduledWork>(begun, key, std::move(call)));
}

}  // namespace heddle::inline v0::impl
