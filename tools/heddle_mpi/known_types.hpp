// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// KnownTypes: the strided datatypes that a program has committed and not freed. For the
/// interposer.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <link.h>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <mpi.h>

#include <heddle/comm/strided_datatype.hpp>
#include <heddle/layout/pack_table.hpp>
#include <heddle/layout/strided_block.hpp>

namespace heddle_mpi {

namespace hd = heddle;

/// Which bytes a message is: shared by a datatype and its messages on their way, which may outlive
/// it.
struct Strided : std::enable_shared_from_this<Strided> {
  Strided(hd::StridedBlock of, const hd::PackTable& table)
      : block(std::move(of)), bytes(block.bytes()), packs(table.packs(bytes, block.run())) {}

  hd::StridedBlock block;
  hd::Bytes bytes;
  bool packs;  ///< whether a message is to be
};

/// What is known of a datatype. Its loops all lead upwards: Open MPI 4.1 packs some of those that
/// do not in another order than the standard's, and a message is packed by either.
struct KnownType {
  std::shared_ptr<const Strided> one;
  std::int64_t extent;

  /// The bytes of `count` items; `made` keeps them where they are not those of one.
  [[nodiscard]] const Strided* items(int count, const hd::PackTable& table,
                                     std::shared_ptr<const Strided>& made) const {
    if (count == 1) return one.get();
    made = std::make_shared<const Strided>(
        one->block.repeated(static_cast<std::uint64_t>(count), extent), table);
    return made.get();
  }
};

/// By handle. That the datatype of a handle is still the one that was looked at is asked of MPI by
/// an attribute, which a datatype that is given the handle later does not have: a program may free
/// one by other ways than MPI_Type_free of C. (The attribute has no callback: MPICH 4.0 gives its
/// lock away for one, also amid the progress of messages.)
class KnownTypes {
 public:
  /// Whether no type is known: all that a program without strided datatypes pays for.
  [[nodiscard]] static bool none() noexcept { return s_count.load(std::memory_order_relaxed) == 0; }
  [[nodiscard]] static std::size_t count() noexcept { return s_count; }

  /// What is known of `type`, or nothing. A caller has it while its datatype lives.
  [[nodiscard]] const KnownType* find(MPI_Datatype type) const {
    const KnownType* known = nullptr;
    {
      const std::shared_lock lock(m_mutex);
      const auto found = m_types.find(type);
      if (found == m_types.end()) return nullptr;
      known = found->second.get();
    }
    void* mark = nullptr;
    int marked = 0;
    PMPI_Type_get_attr(type, m_key, &mark, &marked);
    return marked != 0 && mark == known ? known : nullptr;
  }

  /// Looks at a datatype that is committed, and keeps it if it is strided.
  void learn(MPI_Datatype type, const hd::PackTable& table) {
    if (find(type) != nullptr) return;
    forget(type);
    std::unique_ptr<const KnownType> known = look_at(type, table);
    if (known == nullptr) return;
    std::call_once(m_key_made, [&] {
      PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &m_key, nullptr);
    });
    // MPI has locks of its own: none of it is called under this one.
    if (PMPI_Type_set_attr(type, m_key, const_cast<KnownType*>(known.get())) != MPI_SUCCESS) return;
    const std::unique_lock lock(m_mutex);
    m_types[type] = std::move(known);
    s_count = m_types.size();
  }

  /// The datatype is going to be freed.
  void forget(MPI_Datatype type) {
    const std::unique_lock lock(m_mutex);
    m_types.erase(type);
    s_count = m_types.size();
  }

 private:
  static std::unique_ptr<const KnownType> look_at(MPI_Datatype type, const hd::PackTable& table) {
    if (has_device()) return nullptr;
    std::optional<hd::StridedBlock> block;
    try {
      block = hd::strided_block_of(type);
    } catch (const hd::contract_error&) {  // what is too far apart for loops
    }
    if (!block || block->run() == 0) return nullptr;
    const std::int64_t extent = hd::extent_of(type);
    const auto upwards = [](const hd::StridedLoop& loop) { return loop.stride > 0; };
    if (extent <= 0 || !std::ranges::all_of(block->loops(), upwards)) return nullptr;
    if (block->contiguous() && block->run() == static_cast<hd::Bytes>(extent)) return nullptr;
    try {
      return std::make_unique<const KnownType>(
          KnownType{std::make_shared<const Strided>(*std::move(block), table), extent});
    } catch (const hd::contract_error&) {  // nor do so many bytes fit in memory
      return nullptr;
    }
  }

  /// Whether the driver of a device is loaded: addresses may then be those of its memory, which
  /// this does not read.
  static bool has_device() {
    return dl_iterate_phdr(
               [](dl_phdr_info* library, std::size_t, void*) {
                 const std::string_view name = library->dlpi_name;
                 for (const std::string_view driver : {"/libcuda.so", "/libamdhip64.so"})
                   if (name.find(driver) != std::string_view::npos) return 1;
                 return 0;
               },
               nullptr) != 0;
  }

  mutable std::shared_mutex m_mutex;
  std::unordered_map<MPI_Datatype, std::unique_ptr<const KnownType>> m_types;
  static inline constinit std::atomic<std::size_t> s_count = 0;
  std::once_flag m_key_made;
  int m_key = MPI_KEYVAL_INVALID;
};

}  // namespace heddle_mpi
