// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/memory/any_resource.hpp>
#include <heddle/memory/fallback.hpp>
#include <heddle/memory/pool.hpp>
#include <heddle/memory/source/from_space.hpp>
#include <heddle/memory/space.hpp>
#include <heddle/memory/view.hpp>

#include "memory/counting.hpp"

namespace test_views {

namespace hm = heddle::memory;

/// A description of a View that is not initialised.
inline auto raw(const std::string& label) {
  return Kokkos::view_alloc(Kokkos::WithoutInitializing, label);
}

/// Memory that the host must not touch, of no device: it lies on the host all the same.
struct Far {
  using memory_space = Far;
  using execution_space = Kokkos::DefaultHostExecutionSpace;
  using device_type = Kokkos::Device<execution_space, Far>;
  using size_type = std::size_t;
  using index_type = std::ptrdiff_t;
  static constexpr const char* name() { return "Far"; }
};
class FarHeap : public Counting {
 public:
  using memory_space = Far;
  using Counting::Counting;
};

}  // namespace test_views

template <>
class Kokkos::Impl::SharedAllocationRecord<test_views::Far, void>
    : public Kokkos::Impl::SharedAllocationRecord<void, void> {
 protected:
  using Kokkos::Impl::SharedAllocationRecord<void, void>::SharedAllocationRecord;
};

namespace test_views {

namespace {

constexpr std::array<std::size_t, 7> sizes{0, 1, 2, 7, 97, 1009, 65537};

using Host = Kokkos::DefaultHostExecutionSpace;

/// i at i.
template <class View>
struct Count {
  View view;
  KOKKOS_FUNCTION void operator()(std::size_t i) const {
    view.data()[i] = static_cast<typename View::value_type>(i);
  }
};
/// The sum of all.
template <class View>
struct Add {
  View view;
  KOKKOS_FUNCTION void operator()(std::size_t i, double& sum) const {
    sum += static_cast<double>(view.data()[i]);
  }
};
template <class View>
void count(const View& view) {
  Kokkos::parallel_for("heddle::test::count", Kokkos::RangePolicy<Host>(0, view.span()),
                       Count<View>{view});
}
template <class View>
double sum(const View& view) {
  double all = 0;
  Kokkos::parallel_reduce("heddle::test::sum", Kokkos::RangePolicy<Host>(0, view.span()),
                          Add<View>{view}, all);
  return all;
}

double sum_of_plain(Kokkos::View<double*, Kokkos::HostSpace> view) { return sum(view); }
double sum_of_const(const Kokkos::View<const double*, Kokkos::HostSpace>& view) {
  return sum(view);
}

/// Of extents 2, 3, 4, ... as many as DataType has stars: as Kokkos makes it.
template <class DataType, class Layout>
void same_as_kokkos() {
  Books books;
  Counting heap(books);
  {
    using Theirs = Kokkos::View<DataType, Layout, Kokkos::HostSpace>;
    const auto both = [&]<std::size_t... Axes>(std::index_sequence<Axes...>) {
      return std::pair(Theirs("view", (Axes + 2)...),
                       hm::make_view<DataType, Layout>(heap, "view", (Axes + 2)...));
    };
    const auto [theirs, ours] = both(std::make_index_sequence<Theirs::rank_dynamic>());
    static_assert(std::is_same_v<decltype(ours), decltype(theirs)>);
    CHECK(books.blocks == 1);
    CHECK(ours.span() == theirs.span());
    CHECK(ours.size() == theirs.size());
    CHECK(ours.span_is_contiguous());
    CHECK(ours.label() == "view");
    CHECK(ours.is_allocated());
    CHECK(reinterpret_cast<std::uintptr_t>(ours.data()) % 64 == 0);
    for (std::size_t axis = 0; axis != Theirs::rank; ++axis) {
      CHECK(ours.extent(axis) == theirs.extent(axis));
      CHECK(ours.stride(axis) == theirs.stride(axis));
    }
    count(theirs);
    Kokkos::deep_copy(ours, theirs);
    CHECK(sum(ours) == sum(theirs));
  }
  CHECK(books.blocks == 0);
}

}  // namespace

TEMPLATE_TEST_CASE("make_view makes the View that Kokkos makes, of every rank", "",
                   Kokkos::LayoutRight, Kokkos::LayoutLeft) {
  same_as_kokkos<double, TestType>();
  same_as_kokkos<double*, TestType>();
  same_as_kokkos<float**, TestType>();
  same_as_kokkos<std::int8_t***, TestType>();
  same_as_kokkos<int****, TestType>();
  same_as_kokkos<double*****, TestType>();
  same_as_kokkos<double******, TestType>();
  same_as_kokkos<short*******, TestType>();
  same_as_kokkos<int********, TestType>();
  same_as_kokkos<double[5], TestType>();
  same_as_kokkos<double* [3], TestType>();
  same_as_kokkos<int** [3][7], TestType>();
}

TEST_CASE("without a layout it is the View of the memory space") {
  Books books;
  Counting heap(books);
  static_assert(std::is_same_v<decltype(hm::make_view<double**>(heap, "view", 1, 1)),
                               Kokkos::View<double**, Kokkos::HostSpace>>);
}

TEMPLATE_TEST_CASE("the block goes back with the last copy or subview", "", std::int8_t, float,
                   double, Kokkos::complex<double>) {
  Books books;
  Counting heap(books);
  for (const std::size_t size : sizes) {
    Kokkos::View<TestType*, Kokkos::HostSpace> copy;
    {
      const auto view = hm::make_view<TestType*>(heap, "view", size);
      CHECK(view.extent(0) == size);
      CHECK(view.use_count() == 1);
      CHECK(books.blocks == 1);
      CHECK(books.bytes >= size * sizeof(TestType));
      CHECK(books.bytes <= size * sizeof(TestType) + 256 + 7);
      copy = view;
      CHECK(view.use_count() == 2);
    }
    CHECK(copy.use_count() == 1);
    auto part = Kokkos::subview(copy, Kokkos::make_pair(size / 2, size));
    CHECK(copy.use_count() == 2);
    copy = {};
    CHECK(books.blocks == 1);
    CHECK(part.label() == "view");
    part = {};
    CHECK(books.blocks == 0);
    CHECK(books.bytes == 0);
  }
}

TEST_CASE("labels of all lengths are kept") {
  Books books;
  Counting heap(books);
  for (const std::size_t length : {0, 1, 15, 16, 118, 119, 120, 121, 255, 256, 1000}) {
    const std::string label(length, 'x');
    const auto view = hm::make_view<int*>(heap, label, 3);
    CHECK(view.label() == label);
    const Kokkos::View<int*, Kokkos::HostSpace> other = view;
    CHECK(other.label() == label);
    CHECK(Kokkos::create_mirror(view).label() == label + "_mirror");
  }
  CHECK(books.blocks == 0);
}

TEST_CASE("Views made by make_view go where plain Views go") {
  Books books;
  Counting heap(books);
  {
    const auto view = hm::make_view<double*>(heap, "view", 97);
    count(view);
    CHECK(sum_of_plain(view) == 96 * 97 / 2);
    CHECK(sum_of_const(view) == 96 * 97 / 2);
    const Kokkos::View<double*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>> free =
        view;
    CHECK(sum(free) == 96 * 97 / 2);
    CHECK(view.use_count() == 1);
    const Kokkos::View<double*, Kokkos::LayoutStride, Kokkos::HostSpace> strided = view;
    CHECK(strided(96) == 96);
    CHECK(view.use_count() == 2);

    const auto mirror = Kokkos::create_mirror_view(Kokkos::HostSpace(), view);
    CHECK(mirror.data() == view.data());
    const auto copy = Kokkos::create_mirror_view_and_copy(Kokkos::DefaultExecutionSpace(), view);
    const auto back = hm::make_view<double*>(heap, "back", 97);
    Kokkos::deep_copy(back, copy);
    CHECK(sum(back) == 96 * 97 / 2);

    // What Kokkos makes of it is Kokkos' own memory; the block goes back with the others.
    Kokkos::View<double*, Kokkos::HostSpace> other = view;
    const int taken = books.taken;
    Kokkos::resize(other, 101);
    CHECK(books.taken == taken);
    CHECK(other(96) == 96);
    CHECK(other.label() == "view");
    Kokkos::View<double*, Kokkos::HostSpace> again = back;
    Kokkos::realloc(again, 5);
    CHECK(again.extent(0) == 5);
    CHECK(books.blocks == 2);
  }
  CHECK(books.blocks == 0);
}

TEST_CASE("Views die on other threads") {
  Books books;
  Counting heap(books);
  for (int round = 0; round < 20; ++round) {
    const auto shared = hm::make_view<int*>(heap, "shared", 1009);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([mine = hm::make_view<int*>(heap, "mine", 17)]() mutable {
        const auto copy = mine;
        mine = {};
      });
#if defined(KOKKOS_ENABLE_OPENMP) || defined(KOKKOS_ENABLE_THREADS)  // elsewhere not Kokkos' own
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&shared] {
        for (int i = 0; i < 1000; ++i) {
          const auto copy = shared;
          const auto part = Kokkos::subview(copy, Kokkos::make_pair(3, 7));
        }
      });
#endif
    for (std::thread& thread : threads) thread.join();
    CHECK(shared.use_count() == 1);
    CHECK(books.blocks == 1);
  }
  CHECK(books.blocks == 0);
}

namespace {

struct Three {
  std::int16_t a;
  double b;
  std::int8_t c;
};
struct alignas(256) Wide {
  double values[3];
};

}  // namespace

TEST_CASE("Views hold zeros, or what the resource gave where that is asked for") {
  Books books;
  Counting heap(books);
  for (const std::size_t size : sizes) {
    const auto bytes = hm::make_view<unsigned char*>(heap, raw("bytes"), size);
    CHECK(sum(bytes) == 255.0 * static_cast<double>(size));
    const auto zeros = hm::make_view<double**>(heap, "zeros", size, 3);
    CHECK(std::all_of(zeros.data(), zeros.data() + zeros.span(), [](double x) { return x == 0; }));
    const auto threes = hm::make_view<Three*>(heap, "threes", size);
    const auto* const raw = reinterpret_cast<const unsigned char*>(threes.data());
    CHECK(std::all_of(raw, raw + size * sizeof(Three), [](unsigned char x) { return x == 0; }));
  }
  CHECK(hm::make_view<float>(heap, "one")() == 0);
  CHECK(books.blocks == 0);
}

namespace {

/// An element whose constructor does not make zeros.
struct Seven {
  int value = 7;
  double zero = 0;
};
/// One that has none without arguments.
struct Given {
  explicit Given(int number) : value(number) {}
  int value;
};

}  // namespace

TEST_CASE("Views out of a pool hold what Kokkos' own hold, again and again") {
  hm::Pool<hm::Pages> pool;
  const Host exec;
  for (const std::size_t size : {0, 1, 3, 97, 16'384, 16'385, 100'000})  // around 128 KiB
    for (int again = 0; again < 3; ++again) {
      const auto view = pool.view<double*>("v", size);
      const auto named_by_alloc = pool.view<double*>(Kokkos::view_alloc("v"), size);
      const auto by_exec = pool.view<double*>(Kokkos::view_alloc(exec, std::string("v")), size);
      exec.fence();
      const auto without =
          pool.view<double*>(Kokkos::view_alloc(Kokkos::WithoutInitializing), size);
      CHECK(view.label() == "v");
      CHECK(by_exec.label() == "v");
      CHECK(without.label().empty());
      const auto sevens = pool.view<Seven*>("sevens", size);
      const auto given = pool.view<Given*>(raw("given"), size);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < size; ++i) {
        wrong += view(i) != 0 || named_by_alloc(i) != 0 || by_exec(i) != 0;
        wrong += sevens(i).value != 7 || sevens(i).zero != 0;
        // What the next ones are to be without.
        view(i) = named_by_alloc(i) = by_exec(i) = without(i) = sevens(i).zero = 5;
        given(i) = Given(9);
      }
      CHECK(wrong == 0);
    }
}

TEST_CASE("what the machine cannot back is no View") {
  hm::Pool<hm::Pages> pool;
  const std::size_t elements = std::size_t{1} << 43;  // 64 TiB
  CHECK_THROWS_AS((void)pool.view<double*>("v", elements), heddle::out_of_memory);
  CHECK_THROWS_AS((void)hm::make_view<double*>(hm::Pages(), "v", elements), heddle::out_of_memory);
  CHECK(pool.reserved() == 0);
}

TEST_CASE("what resize adds is zero, unless it is not to be initialised") {
  Books books;
  Counting heap(books);
  auto view = hm::make_view<int**>(heap, "v", 2, 3);
  Kokkos::deep_copy(view, 4);
  hm::resize(heap, view, 3, 3);
  CHECK(view(1, 2) == 4);
  CHECK((view(2, 0) == 0 && view(2, 2) == 0));
  hm::resize(heap, Kokkos::WithoutInitializing, view, 4, 3);
  CHECK(view(1, 2) == 4);
  CHECK(view(3, 0) == -1);  // as the heap gives it
  using Space = hm::Space<Counting>;
  Kokkos::View<int*, Space> of_space(Kokkos::view_alloc("s", Space(heap)), 3);
  hm::resize(heap, of_space, 5);
  CHECK(of_space(4) == 0);
}

TEST_CASE("elements are aligned as their type asks") {
  const auto test = []<class T>(std::type_identity<T>) {
    if constexpr (hm::impl::own_record<Kokkos::HostSpace> || alignof(T) <= 64) {
      Books books;
      Counting heap(books);
      for (const std::size_t size : sizes) {
        const auto view = hm::make_view<T*>(heap, "wide", size);
        CHECK(reinterpret_cast<std::uintptr_t>(view.data()) % alignof(T) == 0);
      }
      CHECK(books.blocks == 0);
    }
  };
  test(std::type_identity<Three>());
  test(std::type_identity<Wide>());
}

TEST_CASE("a resource that has nothing left loses nothing") {
  Books books;
  Counting heap(books, 2);
  {
    auto first = hm::make_view<double*>(heap, "first", 7);
    count(first);
    const auto second = hm::make_view<double*>(heap, std::string(300, 'x'), 7);
    CHECK_THROWS_AS((void)hm::make_view<double*>(heap, "third", 7), heddle::out_of_memory);
    CHECK_THROWS_AS((void)hm::make_view<double*>(heap, std::string(300, 'x'), 7), std::bad_alloc);
    CHECK_THROWS_AS((void)hm::make_view<double*>(heap, "third", 0), heddle::out_of_memory);
    CHECK_THROWS_AS(hm::resize(heap, first, 9), heddle::out_of_memory);
    CHECK(first.extent(0) == 7);
    CHECK(sum(first) == 21);
    CHECK(books.blocks == 2);
  }
  CHECK(books.blocks == 0);
}

TEST_CASE("make_view refuses what no address space holds, and extents below 0") {
  Books books;
  Counting heap(books);
  constexpr std::size_t half = std::size_t{1} << 40;
  CHECK_THROWS_AS((void)hm::make_view<double**>(heap, "large", half, half), heddle::out_of_memory);
  CHECK_THROWS_AS((void)hm::make_view<double*>(heap, "large", std::size_t{0} - 1),
                  heddle::out_of_memory);
  const auto complaint = [&](const auto&... extents) -> std::string {
    try {
      (void)hm::make_view<double***>(heap, "large", extents...);
    } catch (const heddle::error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(complaint(half, half, 3) ==
        "heddle::memory::make_view: the address space cannot hold so many elements "
        "(1099511627776 x 1099511627776 x 3 of 8 B)");
  CHECK(complaint(half, half, 0) ==
        "heddle::memory::make_view: the address space cannot hold so many elements "
        "(1099511627776 x 1099511627776 x 0 of 8 B)");
  CHECK(complaint(half, 7, 0) == "");
  CHECK_THROWS_WITH((void)hm::make_view<double*>(heap, "below", -3),
                    "heddle::memory::make_view: an extent is negative (-3)");
  CHECK_THROWS_AS((void)hm::make_view<double*>(heap, "below", -3), heddle::contract_error);
  CHECK(books.blocks == 0);
}

TEST_CASE("a resource given as a temporary lives as long as the View") {
  Books books;
  auto shared = std::make_shared<int>(7);
  struct Owning : Counting {
    Owning(Books& b, std::shared_ptr<int> o) : Counting(b), owned(std::move(o)) {}
    std::shared_ptr<int> owned;
  };
  {
    const auto view = hm::make_view<double*>(Owning(books, shared), "view", 5);
    CHECK(shared.use_count() == 2);
    const auto any = hm::make_view<double*>(hm::AnyResource(Owning(books, shared)), "any", 5);
    CHECK(shared.use_count() == 3);
    CHECK(books.blocks == 2);
  }
  CHECK(shared.use_count() == 1);
  CHECK(books.blocks == 0);
}

TEST_CASE("resize keeps what both have, and takes from the resource") {
  Books books;
  Counting heap(books);
  for (const std::size_t from : {0, 1, 3, 7})
    for (const std::size_t to : {0, 1, 4, 11}) {
      auto right = hm::make_view<double** [3]>(heap, "right", from, 5);
      Kokkos::View<double** [3], Kokkos::LayoutLeft, Kokkos::HostSpace> left("left", from, 5);
      for (std::size_t i = 0; i < from; ++i)
        for (std::size_t j = 0; j < 5; ++j)
          for (std::size_t k = 0; k < 3; ++k)
            right(i, j, k) = left(i, j, k) = static_cast<double>(100 * i + 10 * j + k);
      const auto old = right;
      const int taken = books.taken;
      hm::resize(heap, right, to, 4);
      hm::resize(heap, left, to, 6);
      CHECK(books.taken == taken + 2);
      CHECK(right.label() == "right");
      CHECK(left.label() == "left");
      CHECK(right.extent(0) == to);
      CHECK(right.extent(1) == 4);
      CHECK(left.extent(1) == 6);
      CHECK(old.extent(1) == 5);
      bool kept = true;
      for (std::size_t i = 0; i < std::min(from, to); ++i)
        for (std::size_t k = 0; k < 3; ++k) {
          for (std::size_t j = 0; j < 4; ++j)
            kept = kept && right(i, j, k) == static_cast<double>(100 * i + 10 * j + k);
          for (std::size_t j = 0; j < 5; ++j)
            kept = kept && left(i, j, k) == static_cast<double>(100 * i + 10 * j + k);
        }
      CHECK(kept);
      const void* const data = right.data();
      hm::resize(heap, right, to, 4);
      CHECK(right.data() == data);
    }
  Kokkos::View<int*, Kokkos::HostSpace> empty;
  hm::resize(heap, empty, 0);
  CHECK(empty.is_allocated());
  auto eight = hm::make_view<int********>(heap, "eight", 1, 2, 1, 2, 1, 2, 1, 2);
  eight(0, 1, 0, 1, 0, 1, 0, 1) = 7;
  hm::resize(heap, eight, 2, 2, 2, 2, 2, 2, 2, 2);
  CHECK(eight(0, 1, 0, 1, 0, 1, 0, 1) == 7);
  empty = {};
  eight = {};
  CHECK(books.blocks == 0);
}

TEST_CASE("in the order of an execution space, memory is taken and given back there") {
  Books books;
  Ordered heap(books);
  const Host exec;
  {
    const auto view = hm::make_view<double*>(exec, heap, "view", 97);
    CHECK(heap.in_order == 1);
    const auto zeros = hm::make_view<int*>(exec, heap, "zeros", 97);
    exec.fence();
    CHECK(sum(zeros) == 0);
    CHECK(heap.in_order == 2);
    const auto plain = hm::make_view<double*>(heap, "plain", 97);
    CHECK(heap.in_order == 2);
    CHECK(books.blocks == 3);
  }
  CHECK(heap.in_order == 0);
  CHECK(books.blocks == 0);
}

// nvcc's front end instantiates Kokkos' check of spaces, which a made-up space does not pass.
#ifndef KOKKOS_ENABLE_CUDA
namespace {

template <class Heap>
void not_written() {
  Books books;
  Heap heap(books);
  static_assert(!hm::impl::on_host<Far>);
  static_assert(std::is_same_v<hm::memory_space_of<hm::Fallback<Heap, hm::Ref<Heap>>>, Far>);
  for (const std::size_t size : sizes) {
    {
      const auto view = hm::make_view<unsigned char*>(heap, raw("far"), size);
      static_assert(std::is_same_v<decltype(view), const Kokkos::View<unsigned char*, Far>>);
      CHECK(view.label() == "far");
      CHECK(books.blocks == 1);
      CHECK(reinterpret_cast<std::uintptr_t>(view.data()) % 128 == 0);
      // All that was taken, in front of the data and behind them.
      const unsigned char* const begin = view.data() + size - books.bytes + (8 - size % 8) % 8;
      CHECK(std::all_of(begin, begin + books.bytes, [](unsigned char x) { return x == 0xff; }));
      const auto copy = view;
      CHECK(copy.use_count() == 2);
    }
    CHECK(books.blocks == 0);
  }
}

}  // namespace

TEST_CASE("what the host does not reach is not written by it") {
  // Where Kokkos makes the records it writes, and has no way into this memory.
  const auto test = []<class Heap>(std::type_identity<Heap>) {
    if constexpr (hm::impl::own_record<typename Heap::memory_space>) not_written<Heap>();
  };
  test(std::type_identity<FarHeap>());
}
#endif

TEST_CASE("the memory space of a resource is its own, its upstream's or the host's") {
  static_assert(std::is_same_v<hm::memory_space_of<Counting>, Kokkos::HostSpace>);
  static_assert(std::is_same_v<hm::memory_space_of<hm::Ref<Counting>>, Kokkos::HostSpace>);
  static_assert(std::is_same_v<hm::memory_space_of<hm::Ref<FarHeap>>, Far>);
  static_assert(std::is_same_v<hm::memory_space_of<hm::AnyResource>, Kokkos::HostSpace>);
  using Device = Kokkos::DefaultExecutionSpace::memory_space;
  static_assert(std::is_same_v<hm::memory_space_of<hm::FromSpace<Device>>, Device>);
}

namespace {

/// What tools were told, in order.
struct Told {
  std::string what, space, label;
  const void* address;
  std::uint64_t bytes;
};
std::vector<Told> told;

void begin_telling() {
  told.clear();
  Kokkos::Tools::Experimental::set_allocate_data_callback([](const Kokkos::Tools::SpaceHandle space,
                                                             const char* label, const void* address,
                                                             const std::uint64_t bytes) {
    told.push_back({"allocate", space.name, label, address, bytes});
  });
  Kokkos::Tools::Experimental::set_deallocate_data_callback(
      [](const Kokkos::Tools::SpaceHandle space, const char* label, const void* address,
         const std::uint64_t bytes) {
        told.push_back({"deallocate", space.name, label, address, bytes});
      });
  Kokkos::Tools::Experimental::set_begin_parallel_for_callback(
      [](const char* label, const std::uint32_t, std::uint64_t* id) {
        *id = 0;
        told.push_back({"for", "", label, nullptr, 0});
      });
  Kokkos::Tools::Experimental::set_begin_fence_callback(
      [](const char* label, const std::uint32_t, std::uint64_t* id) {
        *id = 0;
        if (std::string(label).starts_with("heddle"))
          told.push_back({"fence", "", label, nullptr, 0});
      });
}
std::vector<Told> end_telling() {
  Kokkos::Tools::Experimental::set_allocate_data_callback(nullptr);
  Kokkos::Tools::Experimental::set_deallocate_data_callback(nullptr);
  Kokkos::Tools::Experimental::set_begin_parallel_for_callback(nullptr);
  Kokkos::Tools::Experimental::set_begin_fence_callback(nullptr);
  return std::exchange(told, {});
}

void same_words(const std::vector<Told>& ours, const std::vector<Told>& theirs) {
  REQUIRE(ours.size() == theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    CHECK(ours[i].what == theirs[i].what);
    CHECK(ours[i].space == theirs[i].space);
    CHECK(ours[i].label == theirs[i].label);
    CHECK(ours[i].bytes == theirs[i].bytes);
  }
}

}  // namespace

TEST_CASE("tools are told of these Views what they are told of Kokkos'") {
  Books books;
  Counting heap(books);
  const auto telling = [](const auto& make) {
    begin_telling();
    { const auto view = make(); }
    return end_telling();
  };
  for (const std::string& label : {std::string("u"), std::string(), std::string(200, 'x')})
    for (const std::size_t size : {1, 7, 97}) {
      using Plain = Kokkos::View<char*, Kokkos::HostSpace>;
      const auto theirs = telling(
          [&] { return Plain(Kokkos::view_alloc(Kokkos::WithoutInitializing, label), size); });
      REQUIRE(theirs.size() == 2);
      const auto ours = telling([&] { return hm::make_view<char*>(heap, raw(label), size); });
      same_words(ours, theirs);
      CHECK(ours[0].address == ours[1].address);
      const auto spaces = telling([&] {
        return Kokkos::View<char*, hm::Space<Counting>>(
            Kokkos::view_alloc(Kokkos::WithoutInitializing, label, hm::Space(heap)), size);
      });
      same_words(spaces, theirs);
      CHECK(spaces[0].address == spaces[1].address);
    }
  const auto zeros = telling([&] { return hm::make_view<int*>(heap, "u", 97); });
  REQUIRE(zeros.size() == 4);
  CHECK(zeros[1].label == "heddle::memory::initialise");
  CHECK(zeros[1].what == "for");
  CHECK(zeros[2].label == "heddle::memory::initialise");
  CHECK(zeros[2].what == "fence");
  // A View that a tool did not see begin.
  auto view = hm::make_view<int*>(heap, "u", 97);
  begin_telling();
  view = {};
  CHECK(end_telling().size() == 1);
  CHECK(books.blocks == 0);
}

namespace {

std::atomic<int> alive;
/// An element with a constructor and a destructor.
struct Living {
  Living() : value(7) { ++alive; }
  Living(const Living& other) : value(other.value) { ++alive; }
  Living& operator=(const Living&) = default;
  ~Living() { --alive; }
  int value;
};

}  // namespace

TEST_CASE("a Space gives Kokkos' own Views the memory of a resource") {
  Books books;
  Counting heap(books);
  using Space = hm::Space<Counting>;
  static_assert(Kokkos::is_memory_space_v<Space>);
  static_assert(Kokkos::SpaceAccessibility<Host, Space>::accessible);
  static_assert(
      !std::is_convertible_v<Kokkos::View<int*, Kokkos::HostSpace>, Kokkos::View<int*, Space>>);
  for (const std::size_t size : sizes) {
    Kokkos::View<double*, Kokkos::HostSpace> plain;
    {
      const Kokkos::View<double*, Space> view(Kokkos::view_alloc("view", Space(heap)), size);
      CHECK(sum(view) == 0);
      CHECK(books.blocks == 1);
      CHECK(view.label() == "view");
      count(view);
      plain = view;
      CHECK(plain.use_count() == 2);
      CHECK(sum_of_plain(view) == sum(view));
      const Kokkos::View<double*, Space> with_exec(
          Kokkos::view_alloc(std::string("exec"), Host(), Space(heap)), size);
      Kokkos::deep_copy(with_exec, view);
      CHECK(sum(with_exec) == sum(plain));
      Kokkos::deep_copy(plain, with_exec);
      Kokkos::deep_copy(with_exec, plain);
      const auto mirror = Kokkos::create_mirror(view);
      Kokkos::deep_copy(mirror, view);
      CHECK(sum(mirror) == sum(plain));
      const auto device =
          Kokkos::create_mirror_view_and_copy(Kokkos::DefaultExecutionSpace::memory_space(), view);
      Kokkos::deep_copy(mirror, device);
      CHECK(sum(mirror) == sum(plain));
      CHECK(books.blocks == 2);
      const auto same = Kokkos::create_mirror_view(view);
      CHECK(same.data() == view.data());
    }
    CHECK(books.blocks == 1);
    const double total =
        size == 0 ? 0 : static_cast<double>(size) * static_cast<double>(size - 1) / 2;
    CHECK(sum_of_plain(plain) == total);
    CHECK(plain.label() == "view");
    plain = {};
    CHECK(books.blocks == 0);
  }
}

TEST_CASE("Views of a Space construct and destroy their elements, resize and refuse as usual") {
  Books books;
  Counting heap(books, 3);
  using Space = hm::Space<Counting>;
  {
    Kokkos::View<Living*, Kokkos::HostSpace> plain;
    {
      const Kokkos::View<Living*, Space> view(
          Kokkos::view_alloc("living", Kokkos::SequentialHostInit, Space(heap)), 97);
      CHECK(alive == 97);
      CHECK(view(96).value == 7);
      plain = view;
    }
    CHECK(alive == 97);
  }
  CHECK(alive == 0);
  CHECK(books.blocks == 0);
  {
    Kokkos::View<int**, Space> view(Kokkos::view_alloc("view", Space(heap)), 3, 5);
    view(2, 4) = 7;
    Kokkos::resize(view, 4, 5);  // without a Space: from the memory space beneath
    CHECK(view(2, 4) == 7);
    CHECK(books.blocks == 0);
    view = Kokkos::View<int**, Space>(Kokkos::view_alloc("view", Space(heap)), 4, 5);
    CHECK(books.blocks == 1);
    using View = Kokkos::View<int*, Space>;
    CHECK_THROWS_AS(View(Kokkos::view_alloc("more", Space(heap)), 3), heddle::out_of_memory);
    CHECK(books.blocks == 1);
    view(3, 4) = 9;
    Counting other(books);
    const auto old = view;
    hm::resize(other, view, 4, 7);
    CHECK(view(3, 4) == 9);
    CHECK(view.extent(1) == 7);
    CHECK(view.label() == "view");
    CHECK(old.extent(1) == 5);
    CHECK(books.blocks == 2);
  }
  CHECK(books.blocks == 0);
  {
    const hm::Space shared(std::make_shared<Counting>(books));
    const Kokkos::View<int*, std::remove_const_t<decltype(shared)>> view(
        Kokkos::view_alloc("shared", shared), 7);
    CHECK(books.blocks == 1);
  }
  CHECK(books.blocks == 0);
}

TEST_CASE("Views of the memory of the default execution space") {
  using Device = Kokkos::DefaultExecutionSpace;
  hm::FromSpace<Device::memory_space> memory;
  for (const std::size_t size : sizes) {
    auto view = hm::make_view<double*>(memory, "device", size);
    Kokkos::deep_copy(view, 3.0);
    hm::resize(memory, view, size + 1);
    double all = 0;
    Kokkos::parallel_reduce("heddle::test::sum", Kokkos::RangePolicy<Device>(0, size),
                            Add<decltype(view)>{view}, all);
    CHECK(all == 3.0 * static_cast<double>(size));
  }
}

}  // namespace test_views
