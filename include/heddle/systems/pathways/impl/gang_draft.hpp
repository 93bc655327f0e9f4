// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GangDraft: the program that a client of an island is composing.

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/layout/layout.hpp>

namespace heddle::inline v0::systems::impl {

class GangDesk;
struct GangValue;

/// The program that a client is composing. Threads of the client share it.
class GangDraft {
 public:
  GangDraft(std::shared_ptr<GangDesk> desk, std::uint32_t client);
  GangDraft(const GangDraft&) = delete;
  GangDraft& operator=(const GangDraft&) = delete;
  ~GangDraft();

  /// Appends a call. Returns the number of its result.
  std::uint64_t add(std::uint32_t function, const std::vector<std::uint64_t>& arguments,
                    const std::shared_ptr<void>& put = {});
  /// Appends the get of a value, which is released then, and submits the calls so far. Waits for
  /// the value. @throws communication_error if the island fails or stops.
  [[nodiscard]] std::shared_ptr<GangValue> get(std::uint64_t value);
  /// Lets a value go, after all calls so far.
  void drop(std::uint64_t value);
  /// Submits the calls so far as a program.
  void start();
  /// Submits the rest and ends the client.
  void close();

 private:
  struct State;
  std::unique_ptr<State> m_state;
};

/// The state that all futures of a value share.
struct GangFuture {
  std::shared_ptr<GangDraft> draft;
  std::uint64_t id;
  Layout layout;
  bool sized;
  std::atomic<bool> taken{false};  ///< by get()

  GangFuture(std::shared_ptr<GangDraft> of, std::uint64_t number, const Layout& has, bool known);
  GangFuture(const GangFuture&) = delete;
  GangFuture& operator=(const GangFuture&) = delete;
  ~GangFuture();
};

}  // namespace heddle::inline v0::systems::impl

#if HEDDLE_DEFINES_FULL_SYSTEMS
#include <heddle/systems/pathways/impl/gang_draft.ipp>
#endif
