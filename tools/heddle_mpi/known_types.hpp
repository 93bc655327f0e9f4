// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// KnownTypes: the strided datatypes that a program has committed and not freed. For the
/// interposer.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <link.h>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <mpi.h>

#include <heddle/comm/strided_datatype.hpp>
#include <heddle/layout/strided_block.hpp>

#include "call_mutex.hpp"
#include "choice.hpp"

namespace heddle_mpi {

namespace hd = heddle;

/// Which bytes a message is: shared by a datatype and its messages on their way, which may outlive
/// it.
struct Strided {
  Strided(hd::StridedBlock of, const Gains& gains)
      : block(std::move(of)),
        bytes(block.bytes()),
        few(bytes <= static_cast<hd::Bytes>(std::numeric_limits<int>::max())),
        gain_blocking(gains.blocking.gain(bytes, block.run())),
        gain_nonblocking(gains.nonblocking.gain(bytes, block.run())),
        packs_blocking(few && !block.contiguous() && hd::PackTable::packs(gain_blocking)),
        packs_nonblocking(few && !block.contiguous() && hd::PackTable::packs(gain_nonblocking)) {}

  hd::StridedBlock block;
  hd::Bytes bytes;
  bool few;                 ///< as many as an int counts, at most
  double gain_blocking;     ///< what packing gains by the table, of a call that blocks
  double gain_nonblocking;  ///< or of one that does not
  bool packs_blocking;      ///< whether a message of a call that blocks is to be: not of one run
  bool packs_nonblocking;   ///< or of one that does not
  mutable CallCount users = {};
};

/// One of those that share a Strided, of which the last one ends it.
class SharedStrided {
 public:
  SharedStrided() = default;
  explicit SharedStrided(const Strided* strided) noexcept : m_strided(strided) {
    if (m_strided != nullptr) m_strided->users.add();
  }
  SharedStrided(SharedStrided&& other) noexcept
      : m_strided(std::exchange(other.m_strided, nullptr)) {}
  SharedStrided& operator=(SharedStrided&& other) noexcept {
    SharedStrided mine(std::move(*this));
    m_strided = std::exchange(other.m_strided, nullptr);
    return *this;
  }
  ~SharedStrided() {
    if (m_strided != nullptr && m_strided->users.remove()) delete m_strided;
  }
  [[nodiscard]] const Strided* get() const noexcept { return m_strided; }
  const Strided* operator->() const noexcept { return m_strided; }

 private:
  const Strided* m_strided = nullptr;
};

/// What is known of a datatype. Its loops all lead upwards: Open MPI 4.1 packs some of those that
/// do not in another order than the standard's, and a message is packed by either.
struct KnownType {
  SharedStrided one;
  std::int64_t extent;

  /// The bytes of `count` items; `made` keeps them where they are not those of one. Null where
  /// there are none, or too many for one message.
  [[nodiscard]] const Strided* items(int count, const Gains& gains, SharedStrided& made) const {
    const Strided* strided = one.get();
    if (count != 1) {
      if (count <= 0) return nullptr;
      try {
        made = SharedStrided(
            new Strided(one->block.repeated(static_cast<std::uint64_t>(count), extent), gains));
      } catch (const hd::contract_error&) {  // they do not fit in memory
      }
      strided = made.get();
    }
    return strided != nullptr && strided->few ? strided : nullptr;
  }
};

/// What is known of a datatype hangs on it, as an attribute of it: a program may free one by other
/// ways than MPI_Type_free of C, and the one that is given its handle then has none. Where calls
/// follow one another, a callback of the attribute says when, so that a datatype that was found is
/// not asked again. (Where threads call at once there is no callback: MPICH 4.0 gives its lock away
/// for one, also amid the progress of messages.)
class KnownTypes {
 public:
  /// Whether no type is known.
  [[nodiscard]] static bool none() noexcept { return s_marks.load(std::memory_order_relaxed) == 0; }
  /// Whether this one may be: all that calls with other datatypes pay for.
  [[nodiscard]] static bool may_know(MPI_Datatype type) noexcept {
    return (s_marks.load(std::memory_order_acquire) >> place_of(type) & 1) != 0;
  }
  [[nodiscard]] std::size_t count() const {
    const std::lock_guard lock(m_mutex);
    return m_types.size();
  }
  /// Whether some were left to the library as a device's driver is loaded.
  [[nodiscard]] bool left_for_a_device() const noexcept { return m_left_for_a_device; }
  /// Whether requests may be completed past the interposer, by calls of Fortran 2008: those of
  /// MPICH start messages by MPI_Isend and MPI_Irecv of C, and wait by PMPI_Wait.
  [[nodiscard]] bool completed_elsewhere() const noexcept { return m_completed_elsewhere; }

  /// What is known of `type`, or nothing. A caller has it while its datatype lives.
  [[nodiscard]] const KnownType* find(MPI_Datatype type) {
    Last& last = m_last[place_of(type)];
    if (last.type == type) return last.known;
    if (!may_know(type) || type == MPI_DATATYPE_NULL) return nullptr;
    void* value = nullptr;
    int is_known = 0;
    PMPI_Type_get_attr(type, m_key, &value, &is_known);
    if (is_known == 0) return nullptr;
    const auto* const known = static_cast<const KnownType*>(value);
    if (!m_threads) last = {type, known};
    return known;
  }

  /// Looks at a datatype that is committed, and keeps it if it is strided.
  void learn(MPI_Datatype type, const Gains& gains) {
    if (find(type) != nullptr) return;
    forget(type);
    look_at_libraries();
    if (m_left_for_a_device) return;
    std::unique_ptr<const KnownType> known = look_at(type, gains);
    if (known == nullptr) return;
    std::call_once(m_key_made, [&] {
      PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, m_threads ? MPI_TYPE_NULL_DELETE_FN : deleted,
                              &m_key, this);
    });
    // MPI has locks of its own: none of it is called under this one.
    if (PMPI_Type_set_attr(type, m_key, const_cast<KnownType*>(known.get())) != MPI_SUCCESS) return;
    const std::lock_guard lock(m_mutex);
    m_types[type] = std::move(known);
    if (m_at[place_of(type)]++ == 0) s_marks |= std::uint64_t{1} << place_of(type);
  }

  /// The program is going to free the datatype, which may live on: MPI_Type_get_contents of MPICH
  /// gives the same handle once more. It has no attribute then, and is a datatype like any other.
  void release(MPI_Datatype type) {
    if (find(type) == nullptr) return;
    PMPI_Type_delete_attr(type, m_key);
    forget(type);
  }

 private:
  /// As MPI calls it with the datatype whose attribute is deleted, and what create_keyval was told.
  static int deleted(MPI_Datatype type, int, void*, void* types) {
    static_cast<KnownTypes*>(types)->forget(type);
    return MPI_SUCCESS;
  }
  /// What has this handle now is another datatype, or none.
  void forget(MPI_Datatype type) {
    if (Last& last = m_last[place_of(type)]; last.type == type) last = {};
    const std::lock_guard lock(m_mutex);
    if (m_types.erase(type) == 0) return;
    if (--m_at[place_of(type)] == 0) s_marks &= ~(std::uint64_t{1} << place_of(type));
  }

  static std::unique_ptr<const KnownType> look_at(MPI_Datatype type, const Gains& gains) {
    std::optional<hd::StridedBlock> block;
    try {
      block = hd::strided_block_of(type);
    } catch (const hd::contract_error&) {  // what is too far apart for loops
    }
    if (!block || block->run() == 0) return nullptr;
    const std::int64_t extent = hd::extent_of(type);
    const auto upwards = [](const hd::StridedBlock::Loop& loop) { return loop.stride > 0; };
    if (extent <= 0 || !std::ranges::all_of(block->loops(), upwards)) return nullptr;
    if (block->contiguous() && block->run() == static_cast<hd::Bytes>(extent)) return nullptr;
    try {
      return std::make_unique<const KnownType>(
          KnownType{SharedStrided(new Strided(*std::move(block), gains)), extent});
    } catch (const hd::contract_error&) {  // nor do so many bytes fit in memory
      return nullptr;
    }
  }

  /// Whether the driver of a device is loaded: addresses may then be those of its memory, which
  /// this does not read. Or MPICH's Fortran. Looks again where libraries were loaded since.
  void look_at_libraries() {
    const std::lock_guard lock(m_mutex);
    dl_iterate_phdr(
        [](dl_phdr_info* library, std::size_t, void* types) {
          auto& self = *static_cast<KnownTypes*>(types);
          if (library->dlpi_adds == self.m_loaded) return 1;  // the same of each of them
          const std::string_view name = library->dlpi_name;
          const auto is = [&](std::string_view file) {
            return name.find(file) != std::string_view::npos;
          };
          if (is("/libcuda.so") || is("/libamdhip64.so") || is("/libze_loader.so"))
            self.m_left_for_a_device = true;
          if (is("/libmpichfort.so") || is("/libmpifort.so")) self.m_completed_elsewhere = true;
          self.m_looked_at = library->dlpi_adds;
          return 0;
        },
        this);
    m_loaded = m_looked_at;
  }

  /// Which of 64 marks is that of a handle.
  static unsigned place_of(MPI_Datatype type) noexcept {
    const std::uint64_t mixed = std::hash<MPI_Datatype>()(type) * std::uint64_t{0x9e3779b97f4a7c15};
    return static_cast<unsigned>(mixed >> 58);
  }

  /// A datatype that is known; of none nothing is.
  struct Last {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    const KnownType* known = nullptr;
  };

  const bool m_threads = threads_call_at_once();
  std::array<Last, 64> m_last{};  ///< the last of each mark; none where threads call at once
  mutable CallMutex m_mutex;
  std::unordered_map<MPI_Datatype, std::unique_ptr<const KnownType>> m_types;  ///< owned, by handle
  std::array<std::size_t, 64> m_at{};  ///< how many of them have each mark
  /// Those of m_types: spares calls with other datatypes the look at their attributes.
  static inline constinit std::atomic<std::uint64_t> s_marks = 0;
  std::atomic<bool> m_left_for_a_device = false, m_completed_elsewhere = false;
  unsigned long long m_loaded = 0,
                     m_looked_at = 0;  ///< libraries, until the last look; in this one
  std::once_flag m_key_made;
  int m_key = MPI_KEYVAL_INVALID;
};

}  // namespace heddle_mpi
