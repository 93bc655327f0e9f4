// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Island: ranks that run the programs of several clients in one order. A program is composed of
/// calls of functions on distributed tensors, see IslandClient.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/comm/device_mesh.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/systems/pathways/impl/gang_island.hpp>
#include <heddle/systems/pathways/impl/gang_value.hpp>
#include <heddle/systems/pathways/island_client.hpp>
#include <heddle/systems/pathways/island_options.hpp>

namespace heddle::inline v0::systems {

/// A client for Island::serve(): its function runs in a thread of its own.
struct IslandClientSpec {
  std::string name = "client";             ///< its name in errors
  std::uint32_t weight = 1;                ///< its share, with GangPolicy::share
  std::function<void(IslandClient&)> run;  ///< calls functions, and returns when it is done
};

/// How a function of an Island behaves.
struct GangFunctionOptions {
  /// True if the function itself sends messages, by collectives or a transport of the caller. If a
  /// rank then has no arguments because of an error, no rank runs the function.
  bool communicates = false;
};

/// Ranks that run programs of several clients, in the manner of Pathways (Barham et al., 2022). A
/// program is a graph of functions on distributed tensors. Clients get futures of results before
/// anything has run, and rank 0 gives all ranks the programs in one order, see GangOrder.
///
///     hd::systems::Island island(mesh);                         // on every rank
///     const auto layer = island.add<Tensor(Tensor)>("layer", {rows}, rows, multiply);
///     const auto input = island.input<Tensor>("x", rows);
///     island.serve([&](hd::systems::IslandClient& client) {     // on ranks with a client; else
///     serve()
///       const auto x = client.put(input, elements);
///       const auto y = client.call(layer, x), z = client.call(layer, y);
///       use(client.get(z));
///     });
///
/// When a program arrives, a rank allocates the results at once, because their shapes are known. It
/// also posts the receives of arguments that other ranks have yet to compute. If the shape of a
/// result is known only while it runs, see add_unsized(), what follows is prepared later. Then the
/// rank runs its part call by call. Because all ranks run the programs in one order, which is the
/// order of a list, programs that communicate cannot wait for one another in a circle.
///
/// The thread that calls serve() makes all MPI calls and runs all functions. Clients are threads of
/// any ranks, and make no MPI calls. Tensors lie in memory that the host can access.
class Island {
 public:
  /// Constructs the island on all ranks of `mesh`, which must outlive it. Collective.
  /// @throws contract_error on every rank if IslandOptions::ahead of a rank is 0, or if its policy,
  ///         `wait` is invalid; also if MPI does not provide the thread level
  ///         MPI_THREAD_FUNNELED.
  explicit Island(const DeviceMesh& mesh, IslandOptions options = {});

  /// Adds a function. All ranks add the same functions in the same order, before serve().
  ///
  /// `function(const Argument&..., Result&)` computes this rank's part of the result from this
  /// rank's parts of the arguments. It runs on the ranks of all these layouts. `inputs` has the
  /// layout of each argument, and `output` that of the result. If it throws on a rank, the result
  /// has the error. communication_error is different: it ends the island.
  /// A function has 1 to 4 arguments.
  /// @throws contract_error if there are not as many layouts as arguments, or if a layout does not
  ///         fit the type of its tensor or the ranks of the mesh.
  template <class Signature, class Function>
  [[nodiscard]] GangFunction<Signature> add(std::string name, std::vector<Layout> inputs,
                                            Layout output, Function function,
                                            GangFunctionOptions options = {}) {
    return add_typed(static_cast<GangFunction<Signature>*>(nullptr), std::move(name),
                     std::move(inputs), std::move(output), std::move(function), options, nullptr);
  }

  /// Adds a function whose result has sizes that are known only when its arguments exist, such as
  /// the elements that pass a filter.
  ///
  /// `measure(const Argument&...)` returns the sizes, one for each dimension. It runs on all ranks
  /// of the function, and may communicate if the function does. The sizes on the first rank of the
  /// result count, and that rank tells them to all ranks. Then `function` runs as with add(), with
  /// a result of these sizes. The sizes of `inputs` and `output` are ignored: the arguments may
  /// have any sizes, also such as are found while running.
  ///
  /// Until the sizes are known, the ranks cannot prepare what reads the result. They therefore
  /// prepare the later calls of the client only then. Other clients are not affected.
  /// @throws contract_error as add() does.
  template <class Signature, class Measure, class Function>
  [[nodiscard]] GangFunction<Signature> add_unsized(std::string name, std::vector<Layout> inputs,
                                                    Layout output, Measure measure,
                                                    Function function,
                                                    GangFunctionOptions options = {}) {
    return add_typed(static_cast<GangFunction<Signature>*>(nullptr), std::move(name),
                     std::move(inputs), std::move(output), std::move(function), options,
                     std::move(measure));
  }

  /// Adds an input: the layout in which ranks hold a tensor that a client gives with put().
  template <class Tensor>
  [[nodiscard]] GangFunction<Tensor()> input(std::string name, Layout layout) {
    check<Tensor>(name, layout);
    return {m_island.get(),
            m_island->add(
                {std::move(name), {}, {}, std::move(layout), &impl::gang_type<Tensor>(), {}})};
  }

  /// Serves until all clients of all ranks have returned and all their programs have run.
  /// Collective; each rank gives its own clients, or none.
  /// Throws the exception of the first of this rank's clients that threw, after all of them have
  ///         ended. The other clients are not disturbed.
  /// @throws contract_error on every rank if the ranks added different functions, if a weight is
  ///         out of range, or if a client has no function.
  /// @throws communication_error if another rank fails, or if this rank waits for another one for
  ///         longer than the watchdog's time. The error names the call. The island ends, and all
  ///         clients get the error.
  /// @throws std::system_error, before any client of this rank begins, if the system does not start
  ///         their threads. The other ranks get a communication_error.
  void serve(std::vector<IslandClientSpec> clients = {});
  /// Serves with one client on this rank.
  void serve(std::function<void(IslandClient&)> client);

  /// Returns what the last serve() did.
  [[nodiscard]] const IslandCounts& counts() const noexcept { return m_island->counts(); }
  /// Returns the Schedule of the programs that this rank ran in the last serve(), with the parts of
  /// all ranks. It needs IslandOptions::record.
  ///
  /// A call is an action of Kind::user on each of its ranks. Its stage is the number of the
  /// function, counted as add() and input() were called, and its item is the number of the program.
  /// It reads the arguments and writes the result; each is a buffer with the name of its function.
  /// Changes of layout have the actions of schedule::to_schedule(), behind the moves of a status.
  /// Buffers "put" and "got" are the tensors of clients.
  [[nodiscard]] Schedule record() const { return m_island->record(); }

 private:
  template <class Result, class... Arguments, class Function, class Measure>
  [[nodiscard]] GangFunction<Result(Arguments...)> add_typed(
      GangFunction<Result(Arguments...)>*, std::string name, std::vector<Layout> inputs,
      Layout output, Function function, GangFunctionOptions options, Measure measure) {
    static_assert(std::is_invocable_v<Function&, const Arguments&..., Result&>,
                  "heddle::systems::Island: a function takes (const Argument&..., Result&)");
    static_assert(sizeof...(Arguments) >= 1 && sizeof...(Arguments) <= 4,
                  "heddle::systems::Island: a function has 1 to 4 arguments; use input() for none");
    check_layouts(name, sizeof...(Arguments), inputs.size());
    std::size_t number = 0;
    (check<Arguments>(name, inputs[number++]), ...);
    check<Result>(name, output);
    impl::GangEntry entry{
        std::move(name),     std::move(inputs),          {&impl::gang_type<Arguments>()...},
        std::move(output),   &impl::gang_type<Result>(), {},
        options.communicates};
    entry.run = [function = std::move(function)](std::span<const void* const> from,
                                                 void* to) mutable {
      [&]<std::size_t... at>(std::index_sequence<at...>) {
        function(*static_cast<const Arguments*>(from[at])..., *static_cast<Result*>(to));
      }
      (std::index_sequence_for<Arguments...>());
    };
    if constexpr (!std::is_same_v<Measure, std::nullptr_t>) {
      static_assert(
          std::is_invocable_r_v<std::vector<std::int64_t>, Measure&, const Arguments&...>,
          "heddle::systems::Island: sizes are a std::vector<std::int64_t> of (const Argument&...)");
      entry.measure = [measure = std::move(measure)](std::span<const void* const> from) mutable {
        return [&]<std::size_t... at>(std::index_sequence<at...>) {
          return std::vector<std::int64_t>(measure(*static_cast<const Arguments*>(from[at])...));
        }
        (std::index_sequence_for<Arguments...>());
      };
    }
    return {m_island.get(), m_island->add(std::move(entry))};
  }
  /// Checks that tensors of a type can have a layout on this island.
  template <class Tensor>
  void check(const std::string& name, const Layout& layout) const {
    check_dims(name, layout, Tensor::dims);
    static_cast<void>(Tensor(m_island->comm(), layout));  // it checks the rest
  }

  static void check_layouts(const std::string& name, std::size_t arguments, std::size_t layouts);
  static void check_dims(const std::string& name, const Layout& layout, std::size_t dims);

  std::unique_ptr<impl::GangIsland> m_island;
};

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_FULL_SYSTEMS
#include <heddle/systems/pathways/island.ipp>
#endif
