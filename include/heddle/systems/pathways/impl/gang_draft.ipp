// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of gang_draft.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/systems/pathways/impl/gang_desk.hpp>
#include <heddle/systems/pathways/impl/gang_draft.hpp>
#include <heddle/systems/pathways/impl/gang_frame.hpp>

namespace heddle::inline v0::systems::impl {

struct GangDraft::State {
  State(std::shared_ptr<GangDesk> to, std::uint32_t number) : desk(std::move(to)), client(number) {
    frame.client = client;
  }

  void flush() {
    std::deque<GangFrame> frames{std::exchange(frame, {})};
    frame.client = client;
    for (std::size_t d = 0; d < drops.size(); ++d) {
      if (frames.back().drops == GangFrame::most_drops) frames.push_back(frame);
      frames.back().drop[frames.back().drops++] = drops[d];
    }
    drops.clear();
    desk->submit(frames);
  }

  std::shared_ptr<GangDesk> desk;
  std::uint32_t client;
  std::mutex mutex;
  std::uint64_t next = 0;
  GangFrame frame;
  std::vector<std::uint64_t> drops;
  bool closed = false;
};

HEDDLE_FULL_INLINE GangDraft::GangDraft(std::shared_ptr<GangDesk> desk, std::uint32_t client)
    : m_state(std::make_unique<State>(std::move(desk), client)) {}

HEDDLE_FULL_INLINE GangDraft::~GangDraft() = default;

HEDDLE_FULL_INLINE std::uint64_t GangDraft::add(std::uint32_t function,
                                                const std::vector<std::uint64_t>& arguments,
                                                const std::shared_ptr<void>& put) {
  State& state = *m_state;
  const std::lock_guard lock(state.mutex);
  expects(!state.closed, [] {
    return ErrorInfo{"heddle::systems::IslandClient", "the client has ended", "",
                     "call it only within its own function"};
  });
  state.desk->expect_open("heddle::systems::IslandClient");
  if (state.frame.nodes == GangFrame::most_nodes) state.flush();
  const std::uint64_t result = (std::uint64_t{state.client} << 40) | state.next++;
  GangNode& node = state.frame.node[state.frame.nodes++];
  node = {function, static_cast<std::uint32_t>(arguments.size()), result, {}};
  std::copy(arguments.begin(), arguments.end(), node.argument.begin());
  if (put != nullptr) state.desk->put(result, put);
  return result;
}

HEDDLE_FULL_INLINE std::shared_ptr<GangValue> GangDraft::get(std::uint64_t value) {
  const std::uint64_t id = add(GangNode::get, {value});
  drop(value);
  start();
  return m_state->desk->await(id);
}

HEDDLE_FULL_INLINE void GangDraft::drop(std::uint64_t value) {
  const std::lock_guard lock(m_state->mutex);
  if (!m_state->closed) m_state->drops.push_back(value);
}

HEDDLE_FULL_INLINE void GangDraft::start() {
  const std::lock_guard lock(m_state->mutex);
  if (!m_state->closed && m_state->frame.nodes > 0) m_state->flush();
}

HEDDLE_FULL_INLINE void GangDraft::close() {
  const std::lock_guard lock(m_state->mutex);
  if (std::exchange(m_state->closed, true)) return;
  if (m_state->frame.nodes > 0) m_state->flush();
  m_state->frame.forget = 1;
  m_state->desk->submit({m_state->frame});
}

HEDDLE_FULL_INLINE GangFuture::GangFuture(std::shared_ptr<GangDraft> of, std::uint64_t number,
                                          const Layout& has, bool known)
    : draft(std::move(of)), id(number), layout(has), sized(known) {}

HEDDLE_FULL_INLINE GangFuture::~GangFuture() {
  try {
    draft->drop(id);
  } catch (...) {  // no memory for the note: the value goes with its client
  }
}

}  // namespace heddle::inline v0::systems::impl
