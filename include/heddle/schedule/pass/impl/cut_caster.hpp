// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// CutCaster: rewrites a Schedule for cast_at_cut().

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/codec.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/internal/cut_in_parts.hpp>
#include <heddle/schedule/message_sizes.hpp>

namespace heddle::inline v0::impl {

/// The state of one cast_at_cut() call.
class CutCaster {
 public:
  CutCaster(const Schedule& schedule, const Codec& codec)
      : m_schedule(schedule),
        m_codec(codec),
        m_builder(Builder::like(schedule, [](const Buffer& buffer) { return buffer; })),
        m_twin(schedule.buffers().size(), none),
        m_arrived(schedule.buffers().size()),
        m_sent(schedule.buffers().size()),
        m_residuals(schedule.buffers().size()) {
    check(codec);
    find_last_reads();
  }

  /// `crosses` says of each action whether it is a message over the cut.
  Schedule run(const std::vector<bool>& crosses) {
    for (std::size_t i = 0; i < m_schedule.size(); ++i) {
      const ActionId id{i};
      // Fused actions stay neighbours. The casts that any of them needs come before all of them.
      if (i == 0 || !together(i - 1))
        for (std::size_t each = i;; ++each) {
          widen_for(ActionId{each});
          if (!together(each)) break;
        }
      if (crosses[i])
        narrow_move(id);
      else if (takes_message(id))
        combine_message(id);
      else
        m_builder.add(m_schedule, id, m_schedule.uses(id));
    }
    for (std::size_t b = 0; b < m_arrived.size(); ++b)
      for (std::uint32_t part = 0; part < m_arrived[b].size(); ++part) widen(BufferId{b}, part);
    return without_unused(std::move(m_builder).build());
  }

 private:
  static constexpr std::uint32_t none = 0xffffffffu;

  [[nodiscard]] bool together(std::size_t action) const {
    return (m_schedule[ActionId{action}].flags & flag::with_next) != 0;
  }

  /// Returns the use that a combine adds, which is its first or its second use; see append().
  template <class T>
  [[nodiscard]] static T& added(std::span<T> uses) {
    return uses[0].writes() ? uses[1] : uses[0];
  }

  /// Finds the combine actions that are the last reader of the range that they add.
  void find_last_reads() {
    m_last_read.resize(m_schedule.size(), false);
    std::vector<std::vector<bool>> read_later;
    for (const Buffer& buffer : m_schedule.buffers()) read_later.emplace_back(buffer.parts, false);
    for (std::size_t i = m_schedule.size(); i-- > 0;) {
      const auto uses = m_schedule.uses(ActionId{i});
      if (m_schedule[ActionId{i}].kind == Kind::combine &&
          m_schedule[added(uses).buffer].transient) {
        const Use& from = added(uses);
        bool later = false;
        for (std::uint32_t part = 0; part < from.count; ++part)
          later = later || read_later[+from.buffer][from.first + part];
        m_last_read[i] = !later && uses[0].buffer != uses[1].buffer;
      }
      for (const Use& use : uses)
        for (std::uint32_t part = 0; part < use.count; ++part)
          read_later[+use.buffer][use.first + part] = use.reads();
    }
  }

  /// Returns the buffer for the messages from and to `wide`.
  BufferId twin(BufferId wide) {
    std::uint32_t& known = m_twin[+wide];
    if (known == none) {
      Buffer buffer = m_schedule[wide];
      const auto refuse = [&](const char* what) {
        return ErrorInfo{"heddle::schedule::cast_at_cut", what,
                         text("'", m_schedule[buffer.label], "' of stage ", buffer.stage,
                              " has elements of ", buffer.type, ", the cut of ", m_codec.type)};
      };
      expects(buffer.record == 0, [&] { return refuse("records cannot be cast"); });
      const bool bound = is_bound(buffer);
      expects(!bound || size_of(m_codec.type) < size_of(buffer.type),
              [&] { return refuse("a cast at a cut must make elements smaller"); });
      const bool plain = m_codec.type < Scalar::f16 && !m_codec.feedback && !m_codec.agree;
      expects(!bound || plain || buffer.type == Scalar::f32 || buffer.type == Scalar::f64,
              [&] { return refuse("a codec needs elements of f32 or f64"); });
      buffer.label = m_builder.label(role::narrow);
      buffer.type = m_codec.type;
      buffer.block = m_codec.block;
      buffer.transient = true;
      size_message(buffer, m_schedule[wide]);
      known = m_builder.add_buffer(buffer).value;
    }
    return BufferId{known};
  }

  /// Returns the residual of the message of `from`, for error feedback. A part that is sent several
  /// times in a step has one residual for each time.
  Use residual(const Use& from) {
    auto& sent = m_sent[+from.buffer];
    sent.resize(m_schedule[from.buffer].parts, 0);
    const auto begin = sent.begin() + from.first;
    const std::uint32_t nth = *std::max_element(begin, begin + from.count);
    std::fill(begin, begin + from.count, nth + 1);
    auto& places = m_residuals[+from.buffer];
    while (places.size() <= nth) {
      Buffer buffer = m_schedule[from.buffer];
      buffer.label = m_builder.label(role::residual);
      buffer.transient = false;
      places.push_back(m_builder.add_buffer(buffer));
    }
    return schedule::update(places[nth], from.first, from.count);
  }

  void add_cast(const Action& move, Rank rank, std::span<const Use> uses) {
    m_builder.add({Kind::cast, m_builder.local(rank), move.stage, move.item,
                   static_cast<std::uint8_t>(move.flags & flag::gradient)},
                  uses);
  }

  void narrow_move(ActionId id) {
    const Action& move = m_schedule[id];
    const Use from = m_schedule.uses(id)[0];
    const Use into = m_schedule.uses(id)[1];
    const BufferId sent = twin(from.buffer), received = twin(into.buffer);
    const Access access = m_codec.agree ? Access::update : Access::read;
    std::vector<Use> uses = {schedule::use(access, from.buffer, from.first, from.count),
                             schedule::write(sent, from.first, from.count)};
    if (m_codec.feedback) uses.push_back(residual(from));
    add_cast(move, m_schedule[move.queue].from, uses);
    const Use across[] = {schedule::read(sent, from.first, from.count),
                          schedule::write(received, into.first, into.count)};
    m_builder.add(m_schedule, id, across);
    m_arrived[+into.buffer].resize(m_schedule[into.buffer].parts, none);
    for (std::uint32_t part = into.first; part < into.first + into.count; ++part)
      m_arrived[+into.buffer][part] = id.value;
  }

  /// Returns `made` without the bytes of unused buffers, which keep their numbers. A buffer is
  /// unused if all messages to it are combined directly.
  [[nodiscard]] Schedule without_unused(const Schedule& made) const {
    std::vector<bool> used(m_twin.size(), false);
    for (const Use& use : made.all_uses())
      if (+use.buffer < used.size()) used[+use.buffer] = true;
    std::size_t next = 0;
    return made.with_sizes([&](Buffer& buffer) {
      const std::size_t b = next++;
      if (b >= used.size() || used[b] || m_twin[b] == none || !buffer.transient) return;
      buffer.bytes = 0;
      buffer.ends.reset();
    });
  }

  /// Returns whether action `id` adds a whole message that no other action reads. It then decodes
  /// the message itself.
  [[nodiscard]] bool takes_message(ActionId id) const {
    if (!m_last_read[+id]) return false;
    const Use& from = added(m_schedule.uses(id));
    const auto& arrived = m_arrived[+from.buffer];
    if (arrived.empty() || arrived[from.first] == none) return false;
    const bool decodes =
        m_codec.type >= Scalar::f16 ||
        (m_codec.type == Scalar::f32 && m_schedule[from.buffer].type == Scalar::f64);
    if (!decodes) return false;
    const Use& came = m_schedule.uses(ActionId{arrived[from.first]})[1];
    return came.first == from.first && came.count == from.count &&
           std::all_of(arrived.begin() + from.first, arrived.begin() + from.first + from.count,
                       [&](std::uint32_t move) { return move == arrived[from.first]; });
  }

  void combine_message(ActionId id) {
    std::vector<Use> uses(m_schedule.uses(id).begin(), m_schedule.uses(id).end());
    Use& from = added(std::span(uses));
    for (std::uint32_t part = from.first; part < from.first + from.count; ++part)
      m_arrived[+from.buffer][part] = none;
    from.buffer = twin(from.buffer);
    m_builder.add(m_schedule, id, uses);
  }

  /// Decodes the messages that action `id` needs. This is not done earlier, because the rank would
  /// wait for the message at the cast.
  void widen_for(ActionId id) {
    const std::span<const Use> uses = m_schedule.uses(id);
    const Use* const taken = takes_message(id) ? &added(uses) : nullptr;
    for (const Use& use : uses)
      if (&use != taken && !m_arrived[+use.buffer].empty())
        for (std::uint32_t part = use.first; part < use.first + use.count; ++part)
          widen(use.buffer, part);
  }

  /// Decodes the message of `part`, with all parts of this message.
  void widen(BufferId buffer, std::uint32_t part) {
    const std::uint32_t move = m_arrived[+buffer][part];
    if (move == none) return;
    const Use into = m_schedule.uses(ActionId{move})[1];
    for (std::uint32_t each = into.first; each < into.first + into.count; ++each)
      m_arrived[+buffer][each] = none;
    const Use uses[] = {schedule::read(twin(buffer), into.first, into.count),
                        schedule::write(buffer, into.first, into.count)};
    add_cast(m_schedule[ActionId{move}], m_schedule[buffer].rank, uses);
  }

  const Schedule& m_schedule;
  Codec m_codec;
  Builder m_builder;
  std::vector<std::uint32_t> m_twin;                  ///< per buffer: its buffer for messages
  std::vector<std::vector<std::uint32_t>> m_arrived;  ///< per part: the move of an encoded message
  std::vector<std::vector<std::uint32_t>> m_sent;     ///< per part: number of sends in this step
  std::vector<std::vector<BufferId>> m_residuals;     ///< per buffer and send in a step
  std::vector<bool> m_last_read;                      ///< per action: see find_last_reads()
};

}  // namespace heddle::inline v0::impl
