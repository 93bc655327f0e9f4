// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The channel on which the ranks of an MpiTransport say that one of them failed.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <mpi.h>

#include <heddle/comm/communicator.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/schedule/list_place.hpp>

namespace heddle::inline v0 {
namespace impl {

/// An Abort as it travels: of one size, and so small that every MPI sends it without waiting for
/// the receiver. Longer texts end in "...". A rank that has heard of a hang sends one, too, with
/// its place instead of texts.
struct AbortRecord {
  std::uint64_t step = 0;  ///< the members of a ListPlace
  std::uint64_t list = 0;
  std::uint32_t started = 0;
  std::uint32_t finished = 0;
  std::int32_t rank = 0;
  bool has_place = false;
  bool answers = false;  ///< true if the rank only answers with its place
  char action[252] = {};
  char reason[768] = {};

  explicit AbortRecord(const Abort& abort);
  AbortRecord() = default;

  [[nodiscard]] Abort abort() const;
  [[nodiscard]] std::optional<ListPlace> place() const;

 private:
  static void fill(char* field, std::size_t size, std::string_view words);
};
static_assert(sizeof(AbortRecord) == 1056);

/// Two kinds of message, on a communicator of their own: ABORT, and RELEASE: "I have no receive
/// posted and will post none, so nobody's memory is read for my sake any more". The constructor
/// allocates what both need, so that a rank without memory can still tell that it failed.
class AbortChannel {
 public:
  explicit AbortChannel(MPI_Comm original);
  AbortChannel(const AbortChannel&) = delete;
  AbortChannel& operator=(const AbortChannel&) = delete;
  ~AbortChannel();

  /// True once this rank has told an abort or heard of one.
  [[nodiscard]] bool over() const noexcept { return m_told || m_heard; }

  /// Notes that a rank has died, as MPI says. heard() then says who. The communicator carries no
  /// more messages, and the other ranks find this out.
  void lose();

  /// True once this rank knows that a rank has died.
  [[nodiscard]] bool lost() const noexcept { return m_lost; }

  /// Starts to tell every other rank; only the first call does. Does not wait.
  void tell(const Abort& abort);

  /// Starts to tell every other rank a place, unless tell() or answer() has been called.
  void answer(const ListPlace& place);

  /// By rank, the places that this rank and others have told so far.
  [[nodiscard]] const std::vector<std::optional<ListPlace>>& places();

  /// The first abort that another rank has told, if any. Stays once it is there.
  [[nodiscard]] const std::optional<Abort>& heard();

  /// Who failed, at what and why: the rank that this one has heard of, else this one. Empty where
  /// nobody has.
  [[nodiscard]] std::string story() const;

  /// Tells every other rank RELEASE; only the first call does. Empty messages: no memory to keep.
  void release();

  /// Has `peer` told RELEASE? This rank counts as released once it has told the others.
  [[nodiscard]] bool released(Rank peer);

 private:
  static constexpr int abort_tag = 0;
  static constexpr int release_tag = 1;

  [[nodiscard]] bool arrived(int source, int tag);
  void send(const AbortRecord& record);
  void take();  ///< receives the record that has arrived

  Communicator m_comm;
  std::unique_ptr<AbortRecord> m_record;  ///< this rank's message, once m_told is true
  std::vector<MPI_Request> m_sends;
  std::optional<Abort> m_heard;
  bool m_lost = false;
  bool m_has_released = false;
  bool m_told = false;                             ///< whether this rank has sent its message
  std::vector<char> m_released;                    ///< per rank
  std::vector<std::optional<ListPlace>> m_places;  ///< per rank
};

}  // namespace impl
}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COMM
#include <heddle/comm/impl/abort_channel.ipp>
#endif
