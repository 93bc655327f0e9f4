// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What a Schedule is made of: actions that use parts of buffers, in queues. Plain data, no logic.

#include <array>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string_view>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

/// What an action does. Text writes the first four as F, I, W and B, the letters of
/// torch.distributed.pipelining. `backward` computes both gradients at once; `backward_input` and
/// `backward_weight` are its two halves. A move carries parts between two (rank, tier) places,
/// combine adds one range into another, cast converts one into another, group is a collective as
/// one action, update steps the optimiser.
enum class Kind : std::uint8_t {
  forward,
  backward_input,
  backward_weight,
  backward,
  move,
  combine,
  cast,
  group,
  update,
  user
};

/// Number of kinds.
inline constexpr std::size_t kind_count = 10;

/// The name in action text: `F`, `MOVE`, `UPDATE`, ...
[[nodiscard]] constexpr std::string_view to_string(Kind kind) noexcept {
  constexpr std::array<std::string_view, kind_count> names = {
      "F", "I", "W", "B", "MOVE", "COMBINE", "CAST", "GROUP", "UPDATE", "USER"};
  return names[static_cast<std::size_t>(kind)];
}
/// As action text.
inline std::ostream& operator<<(std::ostream& out, Kind kind) { return out << to_string(kind); }

/// True for the kinds that are the model's own work; a rank that does none of them is idle, which
/// is what the bubble ratio counts.
[[nodiscard]] constexpr bool is_work(Kind kind) noexcept {
  return kind <= Kind::backward || kind == Kind::update || kind == Kind::user;
}

/// How an action touches a part: `write` begins a new value, `update` continues the present one.
enum class Access : std::uint8_t { read = 1, write = 2, update = 3 };

/// Storage on one rank, cut into parts. A part is at once chunk, slot, version or microbatch: the
/// unit in which hazards are seen. `bytes` is the size of the whole and may be bound late.
struct Buffer {
  Rank rank = {};              ///< where it lies
  std::uint32_t parts = 1;     ///< number of parts it is cut in
  Stage stage = {};            ///< the stage it belongs to, where that makes sense
  LabelId label = {};          ///< its role, a name of the Schedule's label table
  Tier tier = {};              ///< memory level on its rank
  Scalar type = Scalar::byte;  ///< of its elements; parts hold whole ones
  bool transient = true;       ///< every value is written before it is read in the same step
  Bytes bytes = 0;             ///< of the whole; 0: not bound yet
  /// Where each part ends, in bytes from the begin, the last one at `bytes`; none: cut evenly.
  std::shared_ptr<const std::vector<Bytes>> ends = {};
  /// Elements that share a scale, whose bytes stand at the begin of every part; 0: there are none.
  /// See Codec.
  std::uint32_t block = 0;
};

/// Bytes of the parts [first, first + count). Where the buffer does not say where its parts end,
/// elements are dealt out evenly, and the first parts get one more where the division has a
/// remainder.
[[nodiscard]] inline Bytes part_bytes(const Buffer& buffer, std::uint32_t first,
                                      std::uint32_t count) noexcept {
  if (buffer.bytes == 0) return 0;
  if (buffer.ends != nullptr) {
    const auto end_of = [&](std::uint32_t parts) {
      return parts == 0 ? Bytes{0} : (*buffer.ends)[parts - 1];
    };
    return end_of(first + count) - end_of(first);
  }
  const Bytes element = size_of(buffer.type);
  const Bytes elements = buffer.bytes / element;
  const Bytes each = elements / buffer.parts;
  const Bytes extra = elements - each * buffer.parts;
  const auto extras_below = [extra](Bytes part) { return part < extra ? part : extra; };
  const Bytes end = Bytes{first} + count;
  return (each * count + extras_below(end) - extras_below(first)) * element;
}

/// First byte of part `part` (of `part == buffer.parts`: the end).
[[nodiscard]] inline Bytes part_offset(const Buffer& buffer, std::uint32_t part) noexcept {
  return part_bytes(buffer, 0, part);
}

/// True where all parts have the same size, so that they can take each other's place.
[[nodiscard]] inline bool is_cut_evenly(const Buffer& buffer) noexcept {
  return buffer.ends == nullptr && buffer.bytes % (buffer.parts * size_of(buffer.type)) == 0;
}

/// A buffer has fewer parts than this, because a Use counts them in 30 bits.
inline constexpr std::uint32_t parts_limit = (1u << 30) - 1;

/// Parts [first, first + count) of a buffer, and how they are touched. 12 bytes.
struct Use {
  BufferId buffer;                                                    ///< whose parts
  std::uint32_t first = 0;                                            ///< the first part
  std::uint32_t count : 30 = 1;                                       ///< number of parts
  std::uint32_t mode : 2 = static_cast<std::uint32_t>(Access::read);  ///< an Access

  /// How the parts are touched.
  [[nodiscard]] constexpr Access access() const noexcept { return static_cast<Access>(mode); }
  /// Whether it needs the present value.
  [[nodiscard]] constexpr bool reads() const noexcept { return access() != Access::write; }
  /// Whether it leaves another value.
  [[nodiscard]] constexpr bool writes() const noexcept { return access() != Access::read; }
};

/// Short forms of Use, for generators: `schedule::read(input, m)`.
namespace schedule {

/// `count` parts from `first` on, touched as `access` says. A count above parts_limit becomes
/// parts_limit, which no buffer has.
[[nodiscard]] constexpr Use use(Access access, BufferId buffer, std::uint32_t first = 0,
                                std::uint32_t count = 1) noexcept {
  const std::uint32_t counted = count < parts_limit ? count : parts_limit;
  return {buffer, first, counted & parts_limit, static_cast<std::uint32_t>(access) & 3u};
}
/// Reads these parts.
[[nodiscard]] constexpr Use read(BufferId buffer, std::uint32_t first = 0,
                                 std::uint32_t count = 1) noexcept {
  return use(Access::read, buffer, first, count);
}
/// Begins new values in these parts.
[[nodiscard]] constexpr Use write(BufferId buffer, std::uint32_t first = 0,
                                  std::uint32_t count = 1) noexcept {
  return use(Access::write, buffer, first, count);
}
/// Continues the present values of these parts.
[[nodiscard]] constexpr Use update(BufferId buffer, std::uint32_t first = 0,
                                   std::uint32_t count = 1) noexcept {
  return use(Access::update, buffer, first, count);
}

}  // namespace schedule

/// An in-order queue. `from == to`: local work of that rank. Otherwise the channel from -> to, on
/// which messages are matched by order.
struct Queue {
  Rank from;  ///< the rank that works or sends
  Rank to;    ///< the rank that receives; `from` for local work
  Lane lane;  ///< one of several queues between the two

  /// Whether it is local work, not a channel.
  [[nodiscard]] constexpr bool local() const noexcept { return from == to; }
  friend constexpr bool operator==(const Queue&, const Queue&) = default;
};

/// Flags of an action.
namespace flag {
inline constexpr std::uint8_t gradient =
    1;  ///< a move whose payload is a gradient (SEND_B, RECV_B)
inline constexpr std::uint8_t with_next =
    2;  ///< done together with the next action, its neighbour in list and queue
inline constexpr std::uint8_t again = 4;  ///< an action that was done before, see recompute()
inline constexpr std::uint8_t unnamed =
    8;  ///< an update that ends the step because the orders name none, see weave()
}  // namespace flag

/// One entry of the list. It takes place on every rank its operands live on. 20 bytes; its uses are
/// [first_use, first_use of the next action).
struct Action {
  Kind kind = Kind::user;       ///< what is done
  std::uint8_t flags = 0;       ///< bits of namespace flag
  std::uint16_t units = 1;      ///< shares of the device it occupies, where a machine counts them
  QueueId queue = {};           ///< where it takes its turn
  Stage stage = {};             ///< which stage does it
  Item item = {};               ///< to which microbatch
  std::uint32_t first_use = 0;  ///< where its uses begin
};

/// A derived dependency on an earlier action. For a move the two ends differ: `mine` tells which
/// end of the waiting action waits (0 source, 1 destination), `end` which end of the predecessor it
/// waits for. Other actions have one end, 0. 4 bytes.
struct After {
  std::uint32_t action : 30;  ///< the earlier one
  std::uint32_t mine : 1;     ///< the end that waits
  std::uint32_t end : 1;      ///< the end that is waited for

  /// The dependency with these fields, each of which fits: a schedule has fewer than 2^30 actions.
  [[nodiscard]] static constexpr After of(std::uint32_t action, std::uint32_t mine,
                                          std::uint32_t end) noexcept {
    return {action & ((1u << 30) - 1), mine & 1u, end & 1u};
  }
};

static_assert(sizeof(Use) == 12 && sizeof(Action) == 20 && sizeof(After) == 4,
              "a million actions are meant to fit in 200 MB");

}  // namespace heddle::inline v0
