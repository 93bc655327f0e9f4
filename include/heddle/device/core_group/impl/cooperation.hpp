// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// A launch whose cores wait for each other: they take turns in the calling thread, each until it
/// has to wait, in the order of their numbers. So a cooperative launch does the same every time,
/// and where nobody can go on it is known who is missing.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include <heddle/core/text.hpp>
#include <heddle/device/core_group/impl/fibres.hpp>
#include <heddle/device/core_group/impl/local_memory.hpp>
#include <heddle/device/core_group/impl/transfers.hpp>
#include <heddle/device/core_group/options.hpp>
#include <heddle/device/core_group/reply.hpp>

namespace heddle::inline v0::emulated::impl {

/// Who takes part in a call that all cores of a group, row or column make together.
enum class Scope : std::uint8_t { group, row, column };

/// One call of a cooperative function. It is equal on all cores that take part, except for the
/// addresses.
struct Meeting {
  const char* name = "";
  Scope scope = Scope::group;
  std::size_t bytes = 0;  ///< bytes of a broadcast; 0: only meet
  int root = 0;           ///< the core that it comes from
  std::byte* to = nullptr;
  const std::byte* from = nullptr;

  [[nodiscard]] bool same(const Meeting& other) const noexcept {
    return scope == other.scope && bytes == other.bytes && root == other.root;
  }
};

class Cooperation {
 public:
  Cooperation() : m_fibres(CoreGrid::cores) {}

  /// Sets where the transfers of a core are stored.
  void set_transfers(int core, Transfers& transfers) { place(core).transfers = &transfers; }

  /// Runs entry(context, core) on all cores to their ends.
  void run(Fibres::Entry entry, void* context) {
    m_entry = entry;
    m_context = context;
    for (Place& place : m_places) place.state = State::ready;
    m_fibres.start(
        [](void* self, int core) noexcept {
          auto& cooperation = *static_cast<Cooperation*>(self);
          cooperation.m_entry(cooperation.m_context, core);
          cooperation.place(core).state = State::ended;
        },
        this);
    while (turn()) {
    }
  }

  /// Called by a core: returns when all others of the scope have made the same call. Otherwise it
  /// says why this cannot happen.
  [[nodiscard]] std::string meet(int core, const Meeting& meeting) {
    Place& self = place(core);
    self.state = State::meets;
    self.meeting = meeting;
    if (all_are_here(core))
      conclude(core);
    else
      m_fibres.suspend();
    return std::exchange(self.stuck, {});
  }

  /// Called by a core: returns when `reply` has counted to `value`. Otherwise it says why this
  /// cannot happen.
  [[nodiscard]] std::string await(int core, const Reply& reply, std::uint32_t value) {
    Place& self = place(core);
    self.state = State::awaits;
    self.reply = &reply;
    self.value = value;
    m_fibres.suspend();
    return std::exchange(self.stuck, {});
  }

 private:
  enum class State : std::uint8_t { ready, meets, awaits, ended };

  /// The current state of a core.
  struct Place {
    State state = State::ready;
    Meeting meeting;
    const Reply* reply = nullptr;
    std::uint32_t value = 0;
    std::string stuck;
    Transfers* transfers = nullptr;
  };

  [[nodiscard]] Place& place(int core) { return m_places[static_cast<std::size_t>(core)]; }

  /// Resumes every core that can go on once; false where all have ended.
  bool turn() {
    bool any = false, alive = false;
    for (int core = 0; core < CoreGrid::cores; ++core) {
      Place& self = place(core);
      if (self.state == State::awaits && arrived(self)) self.state = State::ready;
      if (self.state == State::ready) {
        m_fibres.resume(core);
        any = true;
      }
      alive |= self.state != State::ended;
    }
    if (!any && alive) give_up();
    return alive;
  }

  /// Completes what counts on the reply that a core waits for, of whichever core's transfers.
  bool arrived(const Place& self) {
    for (Place& other : m_places) other.transfers->complete(*self.reply, self.value);
    return self.reply->count >= self.value;
  }

  /// Calls body(core) for the cores that meet with this one.
  template <class Body>
  static void for_each_in(Scope scope, int core, const Body& body) {
    const int row = core / CoreGrid::columns, column = core % CoreGrid::columns;
    for (int other = 0; other < CoreGrid::cores; ++other)
      if (scope == Scope::group || (scope == Scope::row && other / CoreGrid::columns == row) ||
          (scope == Scope::column && other % CoreGrid::columns == column))
        body(other);
  }

  [[nodiscard]] bool is_here(int core, const Meeting& meeting) {
    const Place& other = place(core);
    return other.state == State::meets && other.meeting.same(meeting);
  }
  [[nodiscard]] bool all_are_here(int core) {
    const Meeting& meeting = place(core).meeting;
    bool all = true;
    for_each_in(meeting.scope, core, [&](int other) { all = all && is_here(other, meeting); });
    return all;
  }

  void conclude(int core) {
    const Meeting meeting = place(core).meeting;
    if (meeting.bytes > 0) {
      const std::byte* const from = place(meeting.root).meeting.from;
      for_each_in(meeting.scope, core,
                  [&](int other) { std::memmove(place(other).meeting.to, from, meeting.bytes); });
    }
    for_each_in(meeting.scope, core, [&](int other) { place(other).state = State::ready; });
  }

  /// Nobody can go on: tells each waiting core why, and lets it go on to complain.
  void give_up() {
    for (int core = 0; core < CoreGrid::cores; ++core) {
      Place& self = place(core);
      if (self.state == State::meets) self.stuck = missing(core);
      if (self.state == State::awaits)
        self.stuck = text("for a count of ", self.value, " where it is ", self.reply->count,
                          " and no transfer with this reply is left");
    }
    for (Place& self : m_places)
      if (self.state != State::ended) self.state = State::ready;
  }

  /// The cores that a meeting lacks, the first few of them with what they do instead.
  [[nodiscard]] std::string missing(int core) {
    const Meeting& meeting = place(core).meeting;
    std::string names;
    int count = 0;
    for_each_in(meeting.scope, core, [&](int other) {
      if (is_here(other, meeting) || ++count > 4) return;
      names += text(count > 1 ? ", " : "", core_text(other), " ", doing(place(other)));
    });
    return count > 4 ? text("missing: ", names, " and ", count - 4, " more")
                     : text("missing: ", names);
  }

  [[nodiscard]] static std::string doing(const Place& other) {
    if (other.state == State::ended) return "has ended";
    if (other.state == State::awaits) return "waits for a reply";
    return other.meeting.bytes == 0
               ? text("is in ", other.meeting.name)
               : text("is in ", other.meeting.name, " of ", other.meeting.bytes,
                      " bytes from core ", other.meeting.root);
  }

  Fibres m_fibres;
  std::array<Place, CoreGrid::cores> m_places;
  Fibres::Entry m_entry = nullptr;
  void* m_context = nullptr;
};

}  // namespace heddle::inline v0::emulated::impl
