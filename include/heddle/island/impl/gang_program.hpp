// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GangPreparer: allocates the values of a program of an island, and posts its receives.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <heddle/comm/communicator.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/index.hpp>
#include <heddle/island/impl/gang_desk.hpp>
#include <heddle/island/impl/gang_frame.hpp>
#include <heddle/island/impl/gang_plan.hpp>
#include <heddle/island/impl/gang_transfer.hpp>
#include <heddle/island/impl/gang_value.hpp>

namespace heddle::inline v0::impl {

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
  std::vector<std::shared_ptr<GangValue>> arguments = {};
  std::shared_ptr<GangValue> result = {};
  std::size_t done = 0;  ///< transfers that are done or in flight

  /// Returns the first error of an argument on this rank, or "".
  [[nodiscard]] std::string error() const {
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
        m_posting(clients.size()) {}

  /// The lane of the first client's messages.
  static constexpr std::size_t first_lane = 4;

  /// Allocates the results of a program and makes its transfers.
  [[nodiscard]] GangProgram prepare(const GangFrame& frame) {
    GangProgram program{frame, {}, 0};
    for (std::uint32_t n = 0; n < frame.nodes; ++n) program.calls.push_back(call(frame, n));
    post_early();
    return program;
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

  [[nodiscard]] GangCall call(const GangFrame& frame, std::uint32_t n) {
    GangCall call{.node = frame.node[n]};
    const GangNode& node = call.node;
    const Rank client = (*m_clients)[frame.client].rank;
    if (node.function == GangNode::get) {
      const Value source = m_values.at(node.argument[0]);
      call.result = value(*source->type, on_one_rank(source->layout.sizes(), client), "got");
      call.result->allocate(*m_comm);
      call.arguments = {source};
      add_transfer(call, source, call.result, true, frame.client);
      return call;
    }
    call.entry = &(*m_entries)[node.function];
    const GangEntry& entry = *call.entry;
    call.result = value(*entry.output_type, entry.output, entry.name);
    call.result->allocate(*m_comm);
    if (!entry.run) {
      const Value put = value(*entry.output_type, on_one_rank(entry.output.sizes(), client), "put");
      if (m_comm->rank() == client) put->hold(m_desk->collect(node.result));
      add_transfer(call, put, call.result, false, frame.client);
    }
    for (std::uint32_t a = 0; a < node.arguments; ++a) {
      Value argument = m_values.at(node.argument[a]);
      if (!(argument->layout == entry.inputs[a])) {
        const Value there = value(*argument->type, entry.inputs[a], "argument");
        there->allocate(*m_comm);
        add_transfer(call, argument, there, false, frame.client);
        argument = there;
      }
      call.arguments.push_back(std::move(argument));
    }
    if (entry.communicates) {
      call.gate = std::make_shared<GangTransfer>(
          m_plans->gate(entry), value(*entry.output_type, entry.output, "gate"),
          value(*entry.output_type, entry.output, "gate"), *m_transport, lane(frame.client));
      m_posting[frame.client].push_back(call.gate);
    }
    m_values[node.result] = call.result;
    return call;
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
  std::uint64_t m_next_key = 0;
  std::uint64_t m_posted_early = 0;
};

}  // namespace heddle::inline v0::impl
