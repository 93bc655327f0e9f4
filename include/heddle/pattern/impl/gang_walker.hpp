// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GangWalker: one rank's loop over the programs of an island, without a blocking call.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <heddle/comm/communicator.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/pattern/impl/gang_desk.hpp>
#include <heddle/pattern/impl/gang_record.hpp>
#include <heddle/pattern/impl/gang_transfer.hpp>
#include <heddle/pattern/impl/gang_value.hpp>

namespace heddle::inline v0::impl {

/// A client of an island, as all ranks know it.
struct GangClientInfo {
  std::string name;
  Rank rank;
  std::uint32_t weight = 1;
};

/// Chooses, among the clients of the programs that a rank could run, the position of the one that
/// it runs; nullopt: it waits.
using GangPick = std::function<std::optional<std::size_t>(std::span<const std::uint32_t>)>;

/// Runs programs in the order in which they arrive, call by call. When a program arrives, this rank
/// allocates its results, and posts those receives that need nothing of this rank.
class GangWalker {
 public:
  GangWalker(const Communicator& comm, MpiTransport& transport, std::vector<GangEntry>& entries,
             GangDesk& desk, std::vector<GangClientInfo> clients, GangRecord* record, GangPick pick)
      : m_comm(&comm),
        m_transport(&transport),
        m_entries(&entries),
        m_desk(&desk),
        m_clients(std::move(clients)),
        m_record(record),
        m_pick(std::move(pick)),
        m_posting(m_clients.size()) {}

  /// The lane of the first client's messages.
  static constexpr std::size_t first_lane = 4;

  /// Prepares a program that has arrived.
  void prepare(const GangFrame& frame) {
    Run run{frame, {}, 0};
    for (std::uint32_t n = 0; n < frame.nodes; ++n) run.calls.push_back(call(frame, n));
    m_runs.push_back(std::move(run));
    post_early();
  }

  /// Does what can be done without a wait. Returns true if a call or a transfer was completed.
  [[nodiscard]] bool progress() {
    std::erase_if(m_open, [](const auto& transfer) { return transfer->advance(); });
    if (!m_current) choose();
    if (!m_current) return false;
    Run& run = *m_current;
    bool moved = false;
    while (run.at < run.calls.size()) {
      if (!perform(run)) return moved;
      ++run.at;
      moved = true;
      if (m_on_call) m_on_call();
    }
    finish(run);
    m_current.reset();
    return true;
  }

  /// Calls `call` between two calls of a program, so that messages progress in long programs.
  void between_calls(std::function<void()> call) { m_on_call = std::move(call); }

  /// Returns the numbers of the programs that this rank has run since the last call.
  [[nodiscard]] std::vector<std::uint64_t> take_done() { return std::exchange(m_done, {}); }
  /// Returns true if there is no program, and no message in flight.
  [[nodiscard]] bool idle() const noexcept {
    return !m_current && m_runs.empty() && m_open.empty();
  }
  /// Returns true if this rank waits in the middle of a program.
  [[nodiscard]] bool waits() const noexcept { return m_current.has_value(); }
  /// Returns the clients of the programs that this rank has run, in order.
  [[nodiscard]] const std::vector<std::uint32_t>& order() const noexcept { return m_order; }
  /// Returns the number of transfers whose receives were posted ahead of the list.
  [[nodiscard]] std::uint64_t posted_early() const noexcept { return m_posted_early; }

  /// Names the call at which this rank waits.
  [[nodiscard]] std::string place() const {
    if (!m_current || m_current->at >= m_current->calls.size()) return "between programs";
    const Call& call = m_current->calls[m_current->at];
    return text(name_of(m_current->frame), ", call ", m_current->at, " '",
                call.entry ? call.entry->name : "get", "'");
  }
  /// Names the first programs that wait here behind the present one: "; behind it program 7 of client
  /// 'a'". Empty if there are none.
  [[nodiscard]] std::string behind() const {
    constexpr std::size_t most = 3;
    std::string names;
    for (std::size_t r = 0; r < m_runs.size() && r < most; ++r)
      names += text(r == 0 ? "; behind it " : ", ", name_of(m_runs[r].frame));
    return m_runs.size() > most ? text(names, ", ...") : names;
  }
  /// Ends all transfers after an error.
  void abort(const std::string& reason) noexcept {
    try {
      const std::string doing = place();
      for (auto& queue : m_posting)
        for (auto& transfer : queue) transfer->abort(doing, reason.c_str());
      for (auto& transfer : m_open) transfer->abort(doing, reason.c_str());
      const auto all_of = [&](Run& run) {
        for (Call& call : run.calls) {
          for (auto& transfer : call.transfers) transfer->abort(doing, reason.c_str());
          if (call.gate) call.gate->abort(doing, reason.c_str());
        }
      };
      if (m_current) all_of(*m_current);
      for (Run& run : m_runs) all_of(run);
    } catch (...) {  // the first error is the one to report
    }
  }

 private:
  using Transfer = std::shared_ptr<GangTransfer>;
  using Value = std::shared_ptr<GangValue>;

  /// A call of a program on this rank.
  struct Call {
    const GangEntry* entry = nullptr;  ///< null: the value goes to a client
    GangNode node = {};
    std::vector<Transfer> transfers = {};
    Transfer gate = {};
    std::vector<Value> arguments = {};
    Value result = {};
    std::size_t done = 0;  ///< transfers that are done or in flight
  };
  struct Run {
    GangFrame frame;
    std::vector<Call> calls;
    std::size_t at;
  };

  [[nodiscard]] std::string name_of(const GangFrame& frame) const {
    return text("program ", frame.number, " of client '", m_clients[frame.client].name, "'");
  }

  [[nodiscard]] Value value(const GangType& type, Layout layout, std::string role) {
    return std::make_shared<GangValue>(
        GangValue{&type, std::move(layout), m_next_key++, std::move(role)});
  }

  [[nodiscard]] Call call(const GangFrame& frame, std::uint32_t n) {
    Call call{.node = frame.node[n]};
    const GangNode& node = call.node;
    const Rank client = m_clients[frame.client].rank;
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
      const Value put =
          value(*entry.output_type, on_one_rank(entry.output.sizes(), client), "put");
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
          gate(node.function), value(*entry.output_type, entry.output, "gate"),
          value(*entry.output_type, entry.output, "gate"), *m_transport, lane(frame.client));
      m_posting[frame.client].push_back(call.gate);
    }
    m_values[node.result] = call.result;
    return call;
  }

  [[nodiscard]] static std::size_t lane(std::uint32_t client) { return first_lane + client; }

  void add_transfer(Call& call, const Value& from, const Value& to, bool to_client,
                    std::uint32_t client) {
    call.transfers.push_back(std::make_shared<GangTransfer>(
        plan(from->layout, to->layout, *from->type, to_client), from, to, *m_transport,
        lane(client)));
    m_posting[client].push_back(call.transfers.back());
  }

  [[nodiscard]] std::shared_ptr<const GangPlan> plan(const Layout& from, const Layout& to,
                                                     const GangType& type, bool to_client) {
    for (const auto& known : m_plans)
      if (known->type == &type && known->to_client == to_client && known->source == from &&
          known->target == to)
        return known;
    m_plans.push_back(std::make_shared<GangPlan>(from, to, type, m_comm->size(), to_client));
    return m_plans.back();
  }
  [[nodiscard]] std::shared_ptr<const GangPlan> gate(std::uint32_t function) {
    auto& known = m_gates[function];
    if (known == nullptr)
      known = std::make_shared<GangPlan>((*m_entries)[function], m_comm->size());
    return known;
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

  void choose() {
    if (m_runs.empty()) return;
    std::size_t chosen = 0;
    if (m_pick) {
      std::vector<std::uint32_t> clients;
      for (const Run& run : m_runs) clients.push_back(run.frame.client);
      const std::optional<std::size_t> picked = m_pick(clients);
      if (!picked || *picked >= m_runs.size()) return;
      chosen = *picked;
    }
    const auto at = m_runs.begin() + static_cast<std::ptrdiff_t>(chosen);
    m_current.emplace(std::move(*at));
    m_runs.erase(at);
  }

  /// Returns true once a transfer is done, or waits for nothing but its receivers.
  [[nodiscard]] bool pass(const Transfer& transfer) {
    const bool done = transfer->advance();
    post_early();
    if (!done && !transfer->only_sends()) return false;
    if (!done) m_open.push_back(transfer);
    return true;
  }

  /// Performs as much of the present call as possible. Returns true once it is complete.
  [[nodiscard]] bool perform(Run& run) {
    Call& call = run.calls[run.at];
    for (; call.done < call.transfers.size(); ++call.done) {
      const Transfer& transfer = call.transfers[call.done];
      if (!pass(transfer)) return false;
      transfer->settle();
    }
    if (call.gate) {
      if (call.gate->source()->error.empty()) call.gate->source()->error = first_error(call);
      if (!pass(call.gate)) return false;
      call.gate->settle();
    }
    for (const Transfer& transfer : call.transfers)
      if (m_record) m_record->add(*transfer, run.frame.number);
    if (!call.entry) {
      if (m_comm->rank() == m_clients[run.frame.client].rank)
        m_desk->answer(call.node.result, call.result);
    } else if (call.entry->run) {
      compute(run, call);
    }
    return true;
  }

  [[nodiscard]] static std::string first_error(const Call& call) {
    for (const Value& argument : call.arguments)
      if (!argument->error.empty()) return argument->error;
    return {};
  }

  void compute(const Run& run, Call& call) {
    const GangEntry& entry = *call.entry;
    if (m_record) {
      if (call.gate) m_record->add(*call.gate, run.frame.number);
      m_record->add(entry, call.node.function, call.arguments, *call.result, run.frame.number);
    }
    if (!entry.runs_on(m_comm->rank())) return;
    std::string error = first_error(call);
    if (error.empty() && call.gate) error = call.gate->target()->error;
    if (error.empty()) {
      std::vector<const void*> arguments;
      for (const Value& argument : call.arguments)
        arguments.push_back(tensor_of(*argument));
      try {
        entry.run(arguments, const_cast<void*>(tensor_of(*call.result)));
      } catch (const communication_error&) {
        throw;  // this rank can no longer talk to the others
      } catch (const std::exception& thrown) {
        error = text("'", entry.name, "' failed on rank ", m_comm->rank(), ": ", thrown.what());
      } catch (...) {
        error = text("'", entry.name, "' failed on rank ", m_comm->rank());
      }
    }
    call.result->error = std::move(error);
  }

  /// Returns the tensor of a value. A rank without elements gets an empty one.
  [[nodiscard]] const void* tensor_of(GangValue& value) {
    if (value.tensor == nullptr) value.tensor = value.type->allocate(*m_comm, value.layout);
    return value.tensor.get();
  }

  void finish(Run& run) {
    for (std::uint32_t d = 0; d < run.frame.drops; ++d) m_values.erase(run.frame.drop[d]);
    if (run.frame.forget != 0)
      std::erase_if(m_values, [&](const auto& entry) {
        return entry.first >> 40 == run.frame.client;
      });
    if (run.frame.nodes > 0) m_order.push_back(run.frame.client);
    m_done.push_back(run.frame.number);
  }

  const Communicator* m_comm;
  MpiTransport* m_transport;
  std::vector<GangEntry>* m_entries;
  GangDesk* m_desk;
  std::vector<GangClientInfo> m_clients;
  GangRecord* m_record;
  GangPick m_pick;
  std::function<void()> m_on_call;
  std::map<std::uint64_t, Value> m_values;
  std::vector<std::shared_ptr<const GangPlan>> m_plans;
  std::map<std::uint32_t, std::shared_ptr<const GangPlan>> m_gates;
  std::deque<Run> m_runs;
  std::optional<Run> m_current;
  std::vector<Transfer> m_open;              ///< sends whose receivers are not there yet
  std::vector<std::deque<Transfer>> m_posting;  ///< by client, those that are not posted yet
  std::vector<std::uint64_t> m_done;
  std::vector<std::uint32_t> m_order;
  std::uint64_t m_next_key = 0;
  std::uint64_t m_posted_early = 0;
};

}  // namespace heddle::inline v0::impl
