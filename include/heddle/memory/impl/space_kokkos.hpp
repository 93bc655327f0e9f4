// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The specialisations that Kokkos requires of a memory space, for Space. space.hpp includes this
/// file at its end.

#include <concepts>
#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include <Kokkos_Core.hpp>

#include <heddle/core/text.hpp>
#include <heddle/memory/impl/listed_view.hpp>
#include <heddle/memory/space.hpp>

/// The specialisations that Kokkos requires of a memory space.
namespace Kokkos::Impl {

/// The allocation record of a View of a Space. It derives from the record of the underlying memory
/// space, because a plain View treats it as such.
template <class R, class Hold>
class SharedAllocationRecord<heddle::memory::Space<R, Hold>, void>
    : public SharedAllocationRecord<typename heddle::memory::Space<R, Hold>::Beneath, void> {
 protected:
  using Root = SharedAllocationRecord<void, void>;
  using BeneathRecord =
      SharedAllocationRecord<typename heddle::memory::Space<R, Hold>::Beneath, void>;

  SharedAllocationRecord(SharedAllocationHeader* header, std::size_t bytes,
                         typename Root::function_type release, const std::string& label)
      : BeneathRecord(
#ifdef KOKKOS_ENABLE_DEBUG
            &BeneathRecord::s_root_record,
#endif
            header, bytes + sizeof(SharedAllocationHeader), release, label) {
  }
};

/// The allocation record of a View of a Space, with the functor that constructs and destroys the
/// elements. It ends by release(), never by its destructor, which would return the memory to the
/// underlying space.
template <class R, class Hold, class Destroy>
class SharedAllocationRecord<heddle::memory::Space<R, Hold>, Destroy> final
    : public SharedAllocationRecord<heddle::memory::Space<R, Hold>, void>,
      private heddle::memory::impl::ListedView {
  using Space = heddle::memory::Space<R, Hold>;
  using Base = SharedAllocationRecord<Space, void>;
  using Root = SharedAllocationRecord<void, void>;

 public:
  [[nodiscard]] static SharedAllocationRecord* allocate(const Space& space,
                                                        const std::string& label,
                                                        std::size_t bytes) {
    auto* const record = new SharedAllocationRecord(space, label, bytes);
    record->write_header(label);
    record->enter();
    return record;
  }
  template <class Exec>
  [[nodiscard]] static SharedAllocationRecord* allocate(const Exec&, const Space& space,
                                                        const std::string& label,
                                                        std::size_t bytes) {
    return allocate(space, label, bytes);
  }

  Destroy m_destroy;  ///< destroys the elements; written by Kokkos

 private:
  SharedAllocationRecord(const Space& space, const std::string& label, std::size_t bytes)
      : Base(checked_allocation_with_header(space, label, bytes), bytes, &release, label),
        m_destroy(),
        m_from(space) {}

  [[nodiscard]] const void* listed_data() const override { return this->data(); }
  [[nodiscard]] std::string listed_name() const override {
    return heddle::text("'", this->get_label(), "' of ", this->size(), " B");
  }

  void write_header(const std::string& label) {
    if constexpr (heddle::memory::impl::on_host<typename Space::Beneath>) {
      fill_host_accessible_header_info(this, *this->m_alloc_ptr, label);
    } else {
      SharedAllocationHeader header;
      fill_host_accessible_header_info(this, header, label);
      const typename Space::execution_space exec;
      DeepCopy<typename Space::Beneath, HostSpace>(exec, this->m_alloc_ptr, &header, sizeof header);
      exec.fence("heddle::memory::header");
    }
  }

  static void release(Root* root) {
    auto* const record = static_cast<SharedAllocationRecord*>(root);
    record->m_destroy.destroy_shared_allocation();
    const Space space(std::move(record->m_from));
    const std::string label(std::move(record->m_label));
    void* const block = record->m_alloc_ptr;
    const std::size_t bytes = record->m_alloc_size;
    record->leave();
    std::destroy_at(&record->m_destroy);
    std::destroy_at(&record->m_from);
    std::destroy_at(&record->m_label);
    ::operator delete(record);
    space.deallocate(label.c_str(), block, bytes, bytes - sizeof(SharedAllocationHeader));
  }

  Space m_from;
};

/// A View of a Space converts to a View wherever one of the underlying space does, but not the
/// reverse.
template <class R, class Hold, class S>
requires(!std::same_as<S, AnonymousSpace> &&
         !heddle::memory::impl::is_space<
             S>) struct MemorySpaceAccess<heddle::memory::Space<R, Hold>, S> {
  using Beneath = typename heddle::memory::Space<R, Hold>::Beneath;
  static constexpr bool deepcopy = true;  // required by Kokkos 5.0
  static constexpr bool assignable = false;
  static constexpr bool accessible = MemorySpaceAccess<Beneath, S>::accessible;
};
template <class S, class R, class Hold>
requires(!std::same_as<S, AnonymousSpace> &&
         !heddle::memory::impl::is_space<
             S>) struct MemorySpaceAccess<S, heddle::memory::Space<R, Hold>> {
  using Beneath = typename heddle::memory::Space<R, Hold>::Beneath;
  static constexpr bool deepcopy = true;  // required by Kokkos 5.0
  static constexpr bool assignable = MemorySpaceAccess<S, Beneath>::assignable;
  static constexpr bool accessible = MemorySpaceAccess<S, Beneath>::accessible;
};
template <class R, class Hold, class R2, class Hold2>
struct MemorySpaceAccess<heddle::memory::Space<R, Hold>, heddle::memory::Space<R2, Hold2>> {
  static constexpr bool deepcopy = true;  // required by Kokkos 5.0
  static constexpr bool assignable = std::same_as<R, R2> && std::same_as<Hold, Hold2>;
  static constexpr bool accessible =
      MemorySpaceAccess<typename heddle::memory::Space<R, Hold>::Beneath,
                        typename heddle::memory::Space<R2, Hold2>::Beneath>::accessible;
};

template <class To, class From, class Exec>
requires(heddle::memory::impl::is_space<To> ||
         heddle::memory::impl::is_space<From>) struct DeepCopy<To, From, Exec, void>
    : DeepCopy<typename heddle::memory::impl::Beneath<To>::type,
               typename heddle::memory::impl::Beneath<From>::type, Exec> {
  using Base = DeepCopy<typename heddle::memory::impl::Beneath<To>::type,
                        typename heddle::memory::impl::Beneath<From>::type, Exec>;
  using Base::Base;
};

}  // namespace Kokkos::Impl
