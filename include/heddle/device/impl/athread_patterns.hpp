// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// parallel_for, parallel_reduce and parallel_scan of Athread, on a `Loop` of athread_loops.hpp:
/// the items of a policy and the functor that is called for them.

#include <cstddef>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include <heddle/device/athread_space.hpp>
#include <heddle/device/core_group.hpp>
#include <heddle/device/impl/athread_shares.hpp>

namespace heddle::inline v0::impl {

template <class Loop>
struct ForKernel {
  Loop loop;
  void operator()(Core& core) const { loop.run(core, share_of_core(loop.items(), core.index())); }
};

template <class Loop>
inline constexpr std::string_view label_of =
    kernel_name<std::remove_cvref_t<decltype(std::declval<const Loop&>().functor())>>;

/// The partial results of a reduction or scan: one of each core, in main memory. They are copied by
/// the value's own constructor, and, like those of Kokkos' spaces, not destroyed.
template <class Loop>
class Partials {
 public:
  using Reducer =
      std::remove_cvref_t<decltype(std::declval<const Loop&>().functor().get_reducer())>;
  using Value = typename Reducer::value_type;

  explicit Partials(const Loop& loop)
      : m_bytes(loop.functor().get_reducer().value_size()), m_memory(m_bytes) {}

  [[nodiscard]] Value* of(int core) const { return static_cast<Value*>(m_memory.of(core)); }
  /// A core's sum while it runs, in its local memory.
  [[nodiscard]] Value* local(Core& core) const {
    return static_cast<Value*>(core.allocate(m_bytes, alignof(Value)));
  }
  void copy(int to, int from) const { copy(of(to), of(from)); }
  void load(Core& core, Value* local) const { copy(local, of(core.index())); }
  void store(Core& core, const Value* local) const { copy(of(core.index()), local); }

 private:
  void copy(Value* to, const Value* from) const {
    std::uninitialized_copy_n(from, m_bytes / sizeof(Value), to);
  }

  std::size_t m_bytes;
  PerCore m_memory;
};

template <class Loop>
struct ReduceKernel {
  Loop loop;
  Partials<Loop> partials;
  void operator()(Core& core) const {
    const CoreShare share = share_of_core(loop.items(), core.index());
    if (share.first == share.last) return;
    auto* const sum = partials.local(core);
    decltype(auto) update = loop.functor().get_reducer().init(sum);
    loop.run(core, share, update);
    partials.store(core, sum);
  }
};

/// The result of a reduction: the cores' sums joined from core 0 on. `to` may be null.
template <class Loop, class Value>
void reduce(const Athread& space, const Loop& loop, Value* to) {
  const auto& reducer = loop.functor().get_reducer();
  const Partials<Loop> partials(loop);
  const PerCore nowhere(to == nullptr ? reducer.value_size() : 0);
  Value* const result = to == nullptr ? static_cast<Value*>(nowhere.of(0)) : to;
  if (loop.items() > 0) space.impl_launch(label_of<Loop>, ReduceKernel<Loop>{loop, partials});
  reducer.init(result);
  for (int core = 0; core < working_cores(loop.items()); ++core)
    reducer.join(result, partials.of(core));
  reducer.final(result);
}

/// A scan goes over the range twice: for the sums of the cores, and, each from the sum of the cores
/// before it, for the values.
template <class Loop>
struct ScanKernel {
  Loop loop;
  Partials<Loop> before, sums;
  bool last_time;
  void operator()(Core& core) const {
    const CoreShare share = share_of_core(loop.items(), core.index());
    if (share.first == share.last) return;
    auto* const sum = sums.local(core);
    decltype(auto) update = loop.functor().get_reducer().init(sum);
    if (last_time) before.load(core, sum);
    loop.run(core, share, update, last_time);
    sums.store(core, sum);
  }
};

/// Runs a scan. Afterwards sum 0 of the result is the total.
template <class Loop>
[[nodiscard]] Partials<Loop> scan(const Athread& space, const Loop& loop) {
  const auto& reducer = loop.functor().get_reducer();
  const Partials<Loop> before(loop), sums(loop);
  reducer.init(sums.of(0));
  if (loop.items() == 0) return sums;
  space.impl_launch(label_of<Loop>, ScanKernel<Loop>{loop, before, sums, false});
  reducer.init(before.of(0));
  for (int core = 1; core < working_cores(loop.items()); ++core) {
    before.copy(core, core - 1);
    reducer.join(before.of(core), sums.of(core - 1));
  }
  space.impl_launch(label_of<Loop>, ScanKernel<Loop>{loop, before, sums, true});
  sums.copy(0, working_cores(loop.items()) - 1);
  return sums;
}

}  // namespace heddle::inline v0::impl
