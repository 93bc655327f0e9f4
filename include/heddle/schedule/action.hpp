// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Defines the entries of a Schedule: actions that use parts of buffers and run in queues. They are
/// plain data without logic.

#include <array>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string_view>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

/// The kind of an action. In text the first four kinds are F, I, W and B, which are the letters of
/// torch.distributed.pipelining.
enum class Kind : std::uint8_t {
  forward,          ///< the forward pass of a stage
  backward_input,   ///< the first half of `backward`: the gradients of the stage's inputs
  backward_weight,  ///< the second half of `backward`: the gradients of the stage's weights
  backward,         ///< the backward pass, which computes both gradients at once
  move,             ///< copies parts from one (rank, tier) place to another
  combine,          ///< adds one range of parts to another
  cast,             ///< converts the elements of one range of parts into another range
  group,            ///< a collective as one action
  update,           ///< a step of the optimiser
  user              ///< work that the caller defines
};

/// The number of kinds.
inline constexpr std::size_t kind_count = 10;

/// Returns the name of the kind in action text: `F`, `MOVE`, `UPDATE`, ...
[[nodiscard]] constexpr std::string_view to_string(Kind kind) noexcept {
  constexpr std::array<std::string_view, kind_count> names = {
      "F", "I", "W", "B", "MOVE", "COMBINE", "CAST", "GROUP", "UPDATE", "USER"};
  return static_cast<std::size_t>(kind) < kind_count ? names[static_cast<std::size_t>(kind)]
                                                     : "unknown kind";
}
/// Prints the name of the kind in action text.
std::ostream& operator<<(std::ostream& out, Kind kind);

namespace schedule {

/// Returns true for the kinds that are the model's own work. A rank is idle while it does none of
/// them. The bubble ratio counts this idle time.
[[nodiscard]] constexpr bool is_work(Kind kind) noexcept {
  return kind <= Kind::backward || kind == Kind::update || kind == Kind::user;
}

}  // namespace schedule

/// The access of an action to a part: `write` begins a new value, `update` modifies the present
/// value.
enum class Access : std::uint8_t { read = 1, write = 2, update = 3 };

/// Storage on one rank, cut into parts. Depending on the schedule, a part holds a chunk, a slot, a
/// version or a microbatch. Dependencies between actions are found part by part.
struct Buffer {
  Rank rank = {};              ///< the rank that holds the buffer
  std::uint32_t parts = 1;     ///< the number of parts
  Stage stage = {};            ///< the stage that the buffer belongs to, if it belongs to one
  LabelId label = {};          ///< its role: a name in the Schedule's label table
  Tier tier = {};              ///< the memory level on its rank
  Scalar type = Scalar::byte;  ///< the type of its elements; a part holds whole elements
  bool transient = true;       ///< every value is written before it is read in the same step
  Bytes bytes = 0;             ///< the size of all parts together; 0: not bound yet
  /// The end of each part in bytes from the begin of the buffer; the last entry equals `bytes`. If
  /// null, the elements are divided evenly.
  std::shared_ptr<const std::vector<Bytes>> ends = {};
  /// The number of elements that share a scale. The bytes of the scales stand at the begin of every
  /// part. 0: there are no scales. See Codec.
  std::uint32_t block = 0;
  /// The number of elements that a combine action joins as one value, a record. Parts hold whole
  /// records. 0: every element is a value. See combine_records().
  std::uint32_t record = 0;
  /// The samples in each part of a microbatch, if ranks divide the samples (see StageShares). Part
  /// p has (*granules)[p mod size] samples. fold() keeps the parts of a microbatch together. Null:
  /// a part is a whole microbatch, or something else.
  std::shared_ptr<const std::vector<std::int64_t>> granules = {};
};

namespace impl {

/// Returns the bytes of one value of a buffer: an element, or a record.
[[nodiscard]] inline Bytes value_bytes(const Buffer& buffer) noexcept {
  return size_of(buffer.type) * (buffer.record == 0 ? 1 : buffer.record);
}

}  // namespace impl

namespace schedule {

/// Returns the bytes of the parts [first, first + count). If the buffer does not say where its
/// parts end, its elements or records are divided evenly. If the division has a remainder, each of
/// the first parts has one more.
[[nodiscard]] inline Bytes part_bytes(const Buffer& buffer, std::uint32_t first,
                                      std::uint32_t count) noexcept {
  if (buffer.bytes == 0) return 0;
  if (buffer.ends != nullptr) {
    const auto end_of = [&](std::uint32_t parts) {
      return parts == 0 ? Bytes{0} : (*buffer.ends)[parts - 1];
    };
    return end_of(first + count) - end_of(first);
  }
  const Bytes element = heddle::impl::value_bytes(buffer);
  const Bytes elements = buffer.bytes / element;
  const Bytes each = elements / buffer.parts;
  const Bytes extra = elements - each * buffer.parts;
  const auto extras_below = [extra](Bytes part) { return part < extra ? part : extra; };
  const Bytes end = Bytes{first} + count;
  return (each * count + extras_below(end) - extras_below(first)) * element;
}

/// Returns the offset of part `part` in bytes, or the end of the buffer if `part == buffer.parts`.
[[nodiscard]] inline Bytes part_offset(const Buffer& buffer, std::uint32_t part) noexcept {
  return part_bytes(buffer, 0, part);
}

}  // namespace schedule

namespace impl {

/// Returns true if all parts have the same size, so that one part can replace another.
[[nodiscard]] inline bool is_cut_evenly(const Buffer& buffer) noexcept {
  return buffer.ends == nullptr && buffer.bytes % (buffer.parts * value_bytes(buffer)) == 0;
}

/// Checks the type, the size and the parts of a buffer on behalf of the function `where`. `label`
/// is the name of its role.
/// @throws contract_error if one of them is invalid.
void expect_sizes(const Buffer& buffer, std::string_view label, const char* where);

/// Returns the number of consecutive parts that fold() keeps together: the granules of a
/// microbatch, or one part.
[[nodiscard]] inline std::uint32_t parts_per_item(const Buffer& buffer) noexcept {
  return buffer.granules == nullptr ? 1 : static_cast<std::uint32_t>(buffer.granules->size());
}

/// Returns true if the parts of every microbatch have the same sizes, so that the parts of one can
/// replace those of another.
[[nodiscard]] inline bool is_cut_alike(const Buffer& buffer) noexcept {
  if (is_cut_evenly(buffer)) return true;
  const std::uint32_t each = parts_per_item(buffer);
  if (each == 1 || buffer.parts % each != 0) return false;
  for (std::uint32_t part = each; part < buffer.parts; ++part)
    if (schedule::part_bytes(buffer, part, 1) != schedule::part_bytes(buffer, part - each, 1))
      return false;
  return true;
}

}  // namespace impl

/// The limit of parts: a buffer has fewer parts than this, because a Use counts them in 30 bits.
inline constexpr std::uint32_t parts_limit = (1u << 30) - 1;

/// The access of an action to the parts [first, first + count) of a buffer. It has 12 bytes.
struct Use {
  BufferId buffer;                                                    ///< the buffer
  std::uint32_t first = 0;                                            ///< the first part
  std::uint32_t count : 30 = 1;                                       ///< the number of parts
  std::uint32_t mode : 2 = static_cast<std::uint32_t>(Access::read);  ///< an Access

  /// Returns the access.
  [[nodiscard]] constexpr Access access() const noexcept { return static_cast<Access>(mode); }
  /// Returns true if the action needs the present values of the parts.
  [[nodiscard]] constexpr bool reads() const noexcept { return access() != Access::write; }
  /// Returns true if the action changes the values of the parts.
  [[nodiscard]] constexpr bool writes() const noexcept { return access() != Access::read; }
};

/// Short forms of Use, for generators: `schedule::read(input, m)`.
namespace schedule {

/// Returns a Use of `count` parts from `first` on. A count above parts_limit becomes parts_limit,
/// which the Builder rejects because no buffer has so many parts.
[[nodiscard]] constexpr Use use(Access access, BufferId buffer, std::uint32_t first = 0,
                                std::uint32_t count = 1) noexcept {
  const std::uint32_t counted = count < parts_limit ? count : parts_limit;
  return {buffer, first, counted & parts_limit, static_cast<std::uint32_t>(access) & 3u};
}
/// Returns a Use that reads these parts.
[[nodiscard]] constexpr Use read(BufferId buffer, std::uint32_t first = 0,
                                 std::uint32_t count = 1) noexcept {
  return use(Access::read, buffer, first, count);
}
/// Returns a Use that writes new values to these parts.
[[nodiscard]] constexpr Use write(BufferId buffer, std::uint32_t first = 0,
                                  std::uint32_t count = 1) noexcept {
  return use(Access::write, buffer, first, count);
}
/// Returns a Use that modifies the present values of these parts.
[[nodiscard]] constexpr Use update(BufferId buffer, std::uint32_t first = 0,
                                   std::uint32_t count = 1) noexcept {
  return use(Access::update, buffer, first, count);
}

}  // namespace schedule

/// An in-order queue. If `from == to`, it holds local work of that rank. Otherwise it is the
/// channel from -> to, which matches messages by order.
struct Queue {
  Rank from;  ///< the rank that works or sends
  Rank to;    ///< the rank that receives; equals `from` for local work
  Lane lane;  ///< the number of the queue among those with the same ends

  /// Returns true if the queue holds local work and is not a channel.
  [[nodiscard]] constexpr bool local() const noexcept { return from == to; }
  friend constexpr bool operator==(const Queue&, const Queue&) = default;
};

/// The flags of an action, which are bits.
namespace flag {
/// Marks a move that carries a gradient (SEND_B, RECV_B).
inline constexpr std::uint8_t gradient = 1;
/// Marks an action that is fused with the next one, its neighbour in the list and in the queue.
inline constexpr std::uint8_t with_next = 2;
/// Marks an action that repeats an earlier one, see recompute().
inline constexpr std::uint8_t again = 4;
/// Marks an update that weave() appends at the end of the step because the orders contain none.
inline constexpr std::uint8_t unnamed = 8;
}  // namespace flag

/// One entry of the list of a Schedule. It runs on every rank that holds one of its operands. It
/// has 20 bytes. Its uses are [first_use, first_use of the next action).
struct Action {
  Kind kind = Kind::user;       ///< the kind
  std::uint8_t flags = 0;       ///< bits of namespace flag
  std::uint16_t units = 1;      ///< shares of the device it occupies, if the machine counts them
  QueueId queue = {};           ///< the queue in which it runs
  Stage stage = {};             ///< the stage that it belongs to
  Item item = {};               ///< the microbatch that it processes
  std::uint32_t first_use = 0;  ///< the index of its first use
};

/// A derived dependency on an earlier action. A move has two ends: the source (0) and the
/// destination (1). Every other action has only the end 0. `mine` is the end of the waiting action
/// that waits; `end` is the end of the earlier action that it waits for. An After has 4 bytes.
struct After {
  std::uint32_t action : 30;  ///< the earlier action
  std::uint32_t mine : 1;     ///< the end of the waiting action
  std::uint32_t end : 1;      ///< the end of the earlier action

  /// Returns the dependency with these fields. Each of them fits, because a schedule has fewer than
  /// 2^30 actions.
  [[nodiscard]] static constexpr After of(std::uint32_t action, std::uint32_t mine,
                                          std::uint32_t end) noexcept {
    return {action & ((1u << 30) - 1), mine & 1u, end & 1u};
  }
};

static_assert(sizeof(Use) == 12 && sizeof(Action) == 20 && sizeof(After) == 4,
              "a million actions are meant to fit in 200 MB");

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/action.ipp>
#endif
