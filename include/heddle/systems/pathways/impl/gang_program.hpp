// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GangPreparer: allocates the values of a program of an island, and posts its receives.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/comm/communicator.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/systems/pathways/impl/gang_desk.hpp>
#include <heddle/systems/pathways/impl/gang_frame.hpp>
#include <heddle/systems/pathways/impl/gang_plan.hpp>
#include <heddle/systems/pathways/impl/gang_transfer.hpp>
#include <heddle/systems/pathways/impl/gang_value.hpp>
#include <heddle/tensor/sharded.hpp>

namespace heddle::inline v0::systems::impl {

/// The tensor that tells all ranks the sizes of a result.
using GangSizes = Sharded<std::int64_t*, Kokkos::DefaultHostExecutionSpace>;

/// A client of an island, as all ranks know it.
struct GangClientInfo {
  std::string name;
  Rank rank;
  std::uint32_t weight = 1;
};

/// A call of a program on this rank.
struct GangCall {
  const GangEntry* entry = nullptr;  ///< null: the value goes to a client
  GangNode node = {};
  std::vector<std::shared_ptr<GangTransfer>> transfers = {};
  std::shared_ptr<GangTransfer> gate = {};
  std::shared_ptr<GangTransfer> sizes = {};  ///< tells all ranks the sizes of the result
  std::vector<std::shared_ptr<GangValue>> arguments = {};
  std::shared_ptr<GangValue> result = {};
  std::string unfit = {};  ///< why the function cannot run with these arguments
  std::size_t done = 0;    ///< transfers that are done or in flight
  bool prepared = false;   ///< the values are allocated, and the transfers exist
  bool passed = false;     ///< all transfers and the gate are done
  bool measured = false;   ///< this rank has found the sizes of the result

  /// Returns why the function cannot run on this rank, or "".
  [[nodiscard]] std::string error() const {
    if (!unfit.empty()) return unfit;
    for (const auto& argument : arguments)
      if (!argument->error.empty()) return argument->error;
    return {};
  }
};

/// A program that has arrived.
struct GangProgram {
  GangFrame frame;
  std::vector<GangCall> calls;
  std::size_t at = 0;  ///< the present call
};

/// Prepares programs in the order in which they arrive, and knows all values of the island.
class GangPreparer {
 public:
  GangPreparer(const Communicator& comm, MpiTransport& transport, std::vector<GangEntry>& entries,
               GangPlans& plans, GangDesk& desk, const std::vector<GangClientInfo>& clients)
      : m_comm(&comm),
        m_transport(&transport),
        m_entries(&entries),
        m_plans(&plans),
        m_desk(&desk),
        m_clients(&clients),
        m_posting(clients.size()),
        m_waits(clients.size(), false) {}

  /// The lane of the first client's messages.
  static constexpr std::size_t first_lane = 4;

  /// Allocates the results of a program and makes its transfers. Behind a call whose result has
  /// sizes that are not known yet, the calls of the same client stay unprepared: see resume().
  [[nodiscard]] GangProgram prepare(const GangFrame& frame) {
    GangProgram program{frame, {}, 0};
    for (std::uint32_t n = 0; n < frame.nodes; ++n)
      program.calls.push_back({.node = frame.node[n]});
    static_cast<void>(resume(program));
    for (const GangCall& call : program.calls) m_prepared_late += call.prepared ? 0 : 1;
    post_early();
    return program;
  }

  /// Prepares the calls of a program that are unprepared, up to one that waits for sizes. Call it
  /// for the programs of a client in their order. Returns true if none is left.
  bool resume(GangProgram& program) {
    const std::uint32_t client = program.frame.client;
    for (std::uint32_t n = 0; n < program.frame.nodes; ++n) {
      if (program.calls[n].prepared) continue;
      if (m_waits[client]) return false;
      fill(program.frame, n, program.calls[n]);
    }
    return true;
  }

  /// Gives the result of a call the sizes that have come, and allocates it. The result has an error
  /// on all ranks instead if there are none. Calls of the client may be prepared again.
  void settle_sizes(const GangFrame& frame, GangCall& call) {
    call.sizes->settle();
    const GangValue& told = *call.sizes->target();
    GangValue& result = *call.result;
    m_waits[frame.client] = false;
    result.error = told.error;
    if (!result.error.empty()) return;
    std::vector<std::int64_t> sizes(result.layout.dims());
    std::memcpy(sizes.data(), told.data, sizes.size() * sizeof(std::int64_t));
    try {
      result.layout = with_sizes(result.layout, std::move(sizes));
    } catch (const contract_error& wrong) {  // on all ranks
      result.error = text("'", call.entry->name, "' has wrong sizes: ", wrong.what());
      return;
    }
    result.sized = true;
    result.allocate(*m_comm);
  }

  /// Posts receives in the order of the list, client by client, up to the first transfer in which
  /// this rank also sends.
  void post_early() {
    for (auto& queue : m_posting) {
      while (!queue.empty()) {
        GangTransfer& transfer = *queue.front();
        if (transfer.takes_part() && !transfer.posted()) {
          if (transfer.begun() || !transfer.early()) break;
          static_cast<void>(transfer.advance());
          ++m_posted_early;
          if (!transfer.posted()) break;
        }
        queue.pop_front();
      }
    }
  }

  /// Releases what a program says, after it has run.
  void release(const GangFrame& frame) {
    for (std::uint32_t d = 0; d < frame.drops; ++d) m_values.erase(frame.drop[d]);
    if (frame.forget != 0)
      std::erase_if(m_values, [&](const auto& entry) { return entry.first >> 40 == frame.client; });
  }

  /// Returns the number of transfers whose receives were posted ahead of the list.
  [[nodiscard]] std::uint64_t posted_early() const noexcept { return m_posted_early; }
  /// Returns the number of calls that waited for sizes when their program arrived.
  [[nodiscard]] std::uint64_t prepared_late() const noexcept { return m_prepared_late; }
  /// Ends the transfers that are not posted yet after an error.
  void abort(const std::string& doing, const char* reason) noexcept {
    for (auto& queue : m_posting)
      for (auto& transfer : queue) transfer->abort(doing, reason);
  }

 private:
  using Value = std::shared_ptr<GangValue>;

  [[nodiscard]] Value value(const GangType& type, Layout layout, std::string role) {
    return std::make_shared<GangValue>(
        GangValue{&type, std::move(layout), m_next_key++, std::move(role)});
  }

  void fill(const GangFrame& frame, std::uint32_t n, GangCall& call) {
    call.prepared = true;
    m_next_key = frame.number << 16 | n << 8;  // the same on all ranks
    const GangNode& node = call.node;
    const Rank client = (*m_clients)[frame.client].rank;
    if (node.function == GangNode::get) {
      const Value source = m_values.at(node.argument[0]);
      call.result = value(*source->type, on_one_rank(source->layout.sizes(), client), "got");
      call.result->allocate(*m_comm);
      call.arguments = {source};
      if (source->sized)
        add_transfer(call, source, call.result, true, frame.client);
      else
        call.result->error = source->error;
      return;
    }
    call.entry = &(*m_entries)[node.function];
    const GangEntry& entry = *call.entry;
    call.result = value(*entry.output_type, entry.output, entry.name);
    call.result->sized = !entry.measure;
    if (call.result->sized) call.result->allocate(*m_comm);
    if (!entry.run) {
      const Value put = value(*entry.output_type, on_one_rank(entry.output.sizes(), client), "put");
      if (m_comm->rank() == client) put->hold(m_desk->collect(node.result));
      add_transfer(call, put, call.result, false, frame.client);
    }
    for (std::uint32_t a = 0; a < node.arguments; ++a)
      call.arguments.push_back(argument(frame, call, m_values.at(node.argument[a]), a));
    if (entry.communicates) {
      call.gate = std::make_shared<GangTransfer>(
          m_plans->gate(entry), value(*entry.output_type, entry.output, "gate"),
          value(*entry.output_type, entry.output, "gate"), *m_transport, lane(frame.client));
      m_posting[frame.client].push_back(call.gate);
    }
    if (entry.measure) add_sizes(call, frame.client);
    m_values[node.result] = call.result;
  }

  /// Returns a value in the layout that a function expects.
  [[nodiscard]] Value argument(const GangFrame& frame, GangCall& call, Value has,
                               std::uint32_t number) {
    if (!has->sized) return has;  // it has an error, and no rank has elements
    const Layout& input = call.entry->inputs[number];
    const std::vector<std::int64_t>& sizes = has->layout.sizes();
    if (!call.entry->measure && input.sizes() != sizes) {
      call.unfit = text("argument ", number, " of '", call.entry->name, "' does not fit: it is ",
                        has->layout, ", expected ", input);
      return has;
    }
    try {
      const Layout wanted = call.entry->measure ? with_sizes(input, sizes) : input;
      if (has->layout == wanted) return has;
      const Value there = value(*has->type, wanted, "argument");
      there->allocate(*m_comm);
      add_transfer(call, has, there, false, frame.client);
      return there;
    } catch (const contract_error& wrong) {  // on all ranks: the layout cannot have these sizes
      call.unfit =
          text("argument ", number, " of '", call.entry->name, "' does not fit: ", wrong.what());
      return has;
    }
  }

  /// Adds the transfer of the sizes from the first rank of the result to all ranks.
  void add_sizes(GangCall& call, std::uint32_t client) {
    const GangType& type = gang_type<GangSizes>();
    const std::vector<std::int64_t> numbers{static_cast<std::int64_t>(call.entry->output.dims())};
    const Value from = value(type, on_one_rank(numbers, call.entry->output.ranks()[0]), "sizes");
    const Value to =
        value(type, Layout(MeshShape({{"all", m_comm->size()}}), numbers, {Replicate{}}), "sizes");
    from->allocate(*m_comm);
    to->allocate(*m_comm);
    call.sizes = std::make_shared<GangTransfer>(
        m_plans->find(from->layout, to->layout, type, false), from, to, *m_transport, lane(client));
    m_posting[client].push_back(call.sizes);
    m_waits[client] = true;
  }

  [[nodiscard]] static std::size_t lane(std::uint32_t client) { return first_lane + client; }

  void add_transfer(GangCall& call, const Value& from, const Value& to, bool to_client,
                    std::uint32_t client) {
    call.transfers.push_back(std::make_shared<GangTransfer>(
        m_plans->find(from->layout, to->layout, *from->type, to_client), from, to, *m_transport,
        lane(client)));
    m_posting[client].push_back(call.transfers.back());
  }

  const Communicator* m_comm;
  MpiTransport* m_transport;
  std::vector<GangEntry>* m_entries;
  GangPlans* m_plans;
  GangDesk* m_desk;
  const std::vector<GangClientInfo>* m_clients;
  std::map<std::uint64_t, Value> m_values;
  /// By client, the transfers that are not posted yet.
  std::vector<std::deque<std::shared_ptr<GangTransfer>>> m_posting;
  std::vector<bool> m_waits;  ///< by client: a call waits for its sizes
  std::uint64_t m_next_key = 0;
  std::uint64_t m_posted_early = 0, m_prepared_late = 0;
};

}  // namespace heddle::inline v0::systems::impl
