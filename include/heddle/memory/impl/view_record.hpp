// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ViewRecord: the allocation record of a View whose memory comes from a resource.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <Kokkos_Core.hpp>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/impl/listed_view.hpp>
#include <heddle/memory/internal/own_record.hpp>
#include <heddle/memory/resource.hpp>
#include <heddle/memory/space.hpp>

namespace heddle::inline v0::memory::impl {

/// Returns the bytes of a View of type `View` with these run-time extents. @throws out_of_memory if
/// they exceed the address space.
template <class View, std::size_t Rank>
[[nodiscard]] std::size_t bytes_of(const std::array<std::size_t, Rank>& extents,
                                   const char* where) {
  // Leave some bytes for what lies in front of the data.
  constexpr std::size_t most = std::numeric_limits<std::ptrdiff_t>::max() - 4096;
  std::size_t bytes = sizeof(typename View::value_type);
  bool fits = true, any = true;
  for (std::size_t axis = 0; axis != View::rank; ++axis) {
    const std::size_t extent = std::cmp_less(axis, std::size_t{View::rank_dynamic})
                                   ? extents[axis]
                                   : View::static_extent(axis);
    if (extent == 0) {
      // The other extents must fit all the same, because Kokkos' strides are their products.
      any = false;
      continue;
    }
    fits = fits && bytes <= most / extent;
    bytes *= extent;
  }
  if (!fits) [[unlikely]] {
    std::string shape;
    for (std::size_t axis = 0; axis != View::rank_dynamic; ++axis)
      shape += text(axis == 0 ? "" : " x ", extents[axis]);
    throw out_of_memory({where, "the address space cannot hold so many elements",
                         text(shape, " of ", sizeof(typename View::value_type), " B")});
  }
  return any ? bytes : 0;
}

/// The allocation record of a View, which holds its reference count. For host memory it lies in
/// front of the data, in the same block. For device memory it lies on the host's heap. It ends by
/// release(), never by its destructor, which would free memory that Kokkos does not own.
template <class MemorySpace, class R>
class ViewRecord final : public Kokkos::Impl::SharedAllocationRecord<MemorySpace, void>,
                         private ListedView {
 public:
  using Root = Kokkos::Impl::SharedAllocationRecord<void, void>;

  /// Allocates the memory of a View. Throws the resource's exceptions. Nothing is lost then.
  [[nodiscard]] static Root* make(R&& resource, std::string_view label, std::size_t bytes,
                                  std::size_t alignment) {
    const bool fits = in_block && label.size() < Root::maximum_label_length;
    std::string kept(fits ? std::string_view() : label);
    const Place place(alignment);
    const std::size_t size = (bytes + 7) / 8 * 8;  // the same rounding as in Kokkos
    ViewRecord* record = nullptr;
    if constexpr (in_block) {
      auto* const block =
          static_cast<std::byte*>(resource.allocate(place.data + size, place.alignment));
      record = new (block)
          ViewRecord(new (block + place.data - sizeof(Header)) Header, size, std::move(resource));
      write_header(*record, fits ? label : std::string_view());
    } else {
      std::unique_ptr<std::byte[]> memory(new std::byte[sizeof(ViewRecord)]);
      auto* const block =
          static_cast<std::byte*>(resource.allocate(place.data + size, place.alignment));
      record = new (memory.release())
          ViewRecord(reinterpret_cast<Header*>(block + place.data - sizeof(Header)), size,
                     std::move(resource));
    }
    record->m_alignment = alignment;
    record->m_label.swap(kept);
    record->enter();
    if (Kokkos::Tools::profileLibraryLoaded()) [[unlikely]]
      try {
        Kokkos::Tools::allocateData(handle(), std::string(label), record->m_alloc_ptr, size);
      } catch (...) {
        release(record);
        throw;
      }
    return record;
  }

  [[nodiscard]] std::string get_label() const override {
    if constexpr (in_block)
      if (this->m_label.empty()) return this->m_alloc_ptr->label();
    return this->m_label;
  }

 private:
  using Header = Kokkos::Impl::SharedAllocationHeader;

  static constexpr bool in_block = on_host<MemorySpace>;

  ViewRecord(Header* header, std::size_t size, R&& resource)
      : Kokkos::Impl::SharedAllocationRecord<MemorySpace, void>(header, sizeof(Header) + size,
                                                                &release, std::string()),
        m_resource(std::move(resource)) {}

  [[nodiscard]] const void* listed_data() const override { return this->data(); }
  [[nodiscard]] std::string listed_name() const override {
    return text("'", get_label(), "' of ", this->size(), " B");
  }

  /// The layout of a block. The record lies at its begin, and Kokkos' header ends where the data
  /// begin.
  struct Place {
    explicit Place(std::size_t of_elements)
        : alignment(std::max<std::size_t>(
              {of_elements, in_block ? 64 : 128, in_block ? alignof(ViewRecord) : 1})),
          data(((in_block ? sizeof(ViewRecord) : 0) + sizeof(Header) + alignment - 1) / alignment *
               alignment) {}
    std::size_t alignment;
    std::size_t data;
  };

  /// Writes what Kokkos writes in front of host data: the record's address and the label.
  static void write_header(ViewRecord& record, std::string_view label) {
    auto* const header = reinterpret_cast<char*>(record.m_alloc_ptr);
    const Root* const root = &record;
    std::memcpy(header, &root, sizeof root);
    label.copy(header + sizeof root, label.size());
    header[sizeof root + label.size()] = '\0';
  }

  [[nodiscard]] static Kokkos::Tools::SpaceHandle handle() {
    return Kokkos::Tools::make_space_handle(MemorySpace::name());
  }

  /// Frees the record and its block. Kokkos calls it when the last copy of a View is destroyed.
  static void release(Root* root) {
    auto* const record = static_cast<ViewRecord*>(root);
    wait_before_return<R>();
    if (Kokkos::Tools::profileLibraryLoaded()) [[unlikely]]
      Kokkos::Tools::deallocateData(handle(), record->get_label(), record->m_alloc_ptr,
                                    record->size());
    const Place place(record->m_alignment);
    const std::size_t size = place.data + record->size();
    void* const block = static_cast<std::byte*>(record->data()) - place.data;
    R resource(std::move(record->m_resource));
    record->leave();
    // Destroy only the members that may own memory. The record's own memory is released below.
    std::destroy_at(&record->m_resource);
    std::destroy_at(&record->m_label);
    if constexpr (!in_block) delete[] reinterpret_cast<std::byte*>(record);
    resource.deallocate(block, size, place.alignment);
  }

  std::size_t m_alignment = 0;
  R m_resource;
};

/// Returns the View that view_of() returns, but constructed by Kokkos.
template <class DataType, class View, class R, std::size_t... Axes>
[[nodiscard]] View by_space(R&& resource, std::string_view label,
                            const std::array<std::size_t, View::rank_dynamic>& extents,
                            std::index_sequence<Axes...>) {
  using S = Space<R, std::shared_ptr<R>>;
  return Kokkos::View<DataType, typename View::array_layout, S>(
      Kokkos::view_alloc(Kokkos::WithoutInitializing, std::string(label),
                         S(std::make_shared<R>(std::move(resource)))),
      extents[Axes]...);
}

}  // namespace heddle::inline v0::memory::impl
