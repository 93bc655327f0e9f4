// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GangWalker: one rank's loop over the programs of an island, without a blocking call.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/comm/communicator.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/systems/pathways/impl/gang_desk.hpp>
#include <heddle/systems/pathways/impl/gang_program.hpp>
#include <heddle/systems/pathways/impl/gang_record.hpp>
#include <heddle/systems/pathways/impl/gang_transfer.hpp>
#include <heddle/systems/pathways/impl/gang_value.hpp>

namespace heddle::inline v0::systems::impl {

/// Chooses, among the clients of the programs that a rank could run, the position of the one that
/// it runs; nullopt: it waits.
using GangPick = std::function<std::optional<std::size_t>(std::span<const std::uint32_t>)>;

/// Runs programs in the order in which they arrive, call by call. When a program arrives, this rank
/// allocates its results, and posts those receives that need nothing of this rank.
class GangWalker {
 public:
  GangWalker(const Communicator& comm, MpiTransport& transport, std::vector<GangEntry>& entries,
             GangPlans& plans, GangDesk& desk, std::vector<GangClientInfo> clients,
             GangRecord* record, GangPick pick)
      : m_comm(&comm),
        m_desk(&desk),
        m_clients(std::move(clients)),
        m_preparer(comm, transport, entries, plans, desk, m_clients),
        m_record(record),
        m_pick(std::move(pick)) {}
  GangWalker(const GangWalker&) = delete;
  GangWalker& operator=(const GangWalker&) = delete;

  /// Prepares a program that has arrived.
  void prepare(const GangFrame& frame) { m_runs.push_back(m_preparer.prepare(frame)); }

  /// Does what can be done without a wait. Returns true if a call or a transfer was completed.
  [[nodiscard]] bool progress() {
    std::erase_if(m_open, [](const auto& transfer) { return transfer->advance(); });
    if (!m_current) choose();
    if (!m_current) return false;
    GangProgram& run = *m_current;
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
  [[nodiscard]] std::uint64_t posted_early() const noexcept { return m_preparer.posted_early(); }
  /// Returns the number of calls that waited for sizes when their program arrived.
  [[nodiscard]] std::uint64_t prepared_late() const noexcept { return m_preparer.prepared_late(); }

  /// Names the call at which this rank waits.
  [[nodiscard]] std::string place() const {
    if (!m_current || m_current->at >= m_current->calls.size()) return "between programs";
    const GangCall& call = m_current->calls[m_current->at];
    return text(name_of(m_current->frame), ", call ", m_current->at, " '",
                call.entry ? call.entry->name : "get", "'");
  }
  /// Returns the ranks whose messages the present call waits for, in order.
  [[nodiscard]] std::vector<Rank> silent() const {
    if (!m_current || m_current->at >= m_current->calls.size()) return {};
    const GangCall& call = m_current->calls[m_current->at];
    const Transfer& open = call.passed                         ? call.sizes
                           : call.done < call.transfers.size() ? call.transfers[call.done]
                                                               : call.gate;
    return open ? open->open_peers() : std::vector<Rank>{};
  }
  /// Names the first programs that wait here behind the present one: "; behind it program 7 of
  /// client 'a'". Empty if there are none.
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
      m_preparer.abort(doing, reason.c_str());
      for (auto& transfer : m_open) transfer->abort(doing, reason.c_str());
      const auto all_of = [&](GangProgram& run) {
        for (GangCall& call : run.calls) {
          for (auto& transfer : call.transfers) transfer->abort(doing, reason.c_str());
          if (call.gate) call.gate->abort(doing, reason.c_str());
        }
      };
      if (m_current) all_of(*m_current);
      for (GangProgram& run : m_runs) all_of(run);
    } catch (...) {  // the first error is the one to report
    }
  }

 private:
  using Transfer = std::shared_ptr<GangTransfer>;
  using Value = std::shared_ptr<GangValue>;

  [[nodiscard]] std::string name_of(const GangFrame& frame) const {
    return text("program ", frame.number, " of client '", m_clients[frame.client].name, "'");
  }

  void choose() {
    if (m_runs.empty()) return;
    std::size_t chosen = 0;
    if (m_pick) {
      std::vector<std::uint32_t> clients;
      for (const GangProgram& run : m_runs) clients.push_back(run.frame.client);
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
    m_preparer.post_early();
    if (!done && !transfer->only_sends()) return false;
    if (!done) m_open.push_back(transfer);
    return true;
  }

  /// Performs as much of the present call as possible. Returns true once it is complete.
  [[nodiscard]] bool perform(GangProgram& run) {
    GangCall& call = run.calls[run.at];
    if (!call.passed && !pass_all(call)) return false;
    call.passed = true;
    if (call.sizes) {
      if (!std::exchange(call.measured, true)) measure(call);
      if (!pass(call.sizes)) return false;
      m_preparer.settle_sizes(run.frame, call);
      resume(run);
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

  /// Returns true once the arguments of a call are here, and its ranks have told their status.
  [[nodiscard]] bool pass_all(GangCall& call) {
    for (; call.done < call.transfers.size(); ++call.done) {
      const Transfer& transfer = call.transfers[call.done];
      if (!pass(transfer)) return false;
      transfer->settle();
    }
    if (call.gate) {
      if (call.gate->source()->error.empty()) call.gate->source()->error = call.error();
      if (!pass(call.gate)) return false;
      call.gate->settle();
    }
    return true;
  }

  /// Finds the sizes of the result of a call. The first rank of the result tells them to all.
  void measure(GangCall& call) {
    const GangEntry& entry = *call.entry;
    if (!entry.runs_on(m_comm->rank())) return;
    std::vector<std::int64_t> found;
    std::string error = error_before(call);
    if (error.empty()) error = attempt(entry, [&] { found = entry.measure(arguments_of(call)); });
    if (error.empty() && found.size() != entry.output.dims())
      error = text("'", entry.name, "' returned ", found.size(), " sizes, expected ",
                   entry.output.dims());
    if (m_comm->rank() != entry.output.ranks()[0]) {
      call.unfit = std::move(error);
    } else if (!error.empty()) {
      call.sizes->source()->error = std::move(error);
    } else {
      std::memcpy(call.sizes->source()->data, found.data(), found.size() * sizeof found[0]);
    }
  }

  /// Prepares the calls that waited for the sizes of a result.
  void resume(GangProgram& run) {
    bool all = m_preparer.resume(run);
    for (std::size_t r = 0; all && r < m_runs.size(); ++r)
      if (m_runs[r].frame.client == run.frame.client) all = m_preparer.resume(m_runs[r]);
    m_preparer.post_early();
  }

  void compute(const GangProgram& run, GangCall& call) {
    const GangEntry& entry = *call.entry;
    if (m_record) {
      if (call.gate) m_record->add(*call.gate, run.frame.number);
      if (call.sizes) m_record->add(*call.sizes, run.frame.number);
      m_record->add(entry, call.node.function, call.arguments, *call.result, run.frame.number);
    }
    if (!entry.runs_on(m_comm->rank())) return;
    std::string error = call.result->error;  // of its sizes
    if (error.empty()) error = error_before(call);
    if (error.empty())
      error = attempt(entry, [&] {
        entry.run(arguments_of(call), const_cast<void*>(tensor_of(*call.result)));
      });
    call.result->error = std::move(error);
  }

  /// Returns why a call cannot run on this rank, or "".
  [[nodiscard]] static std::string error_before(const GangCall& call) {
    std::string error = call.error();
    if (error.empty() && call.gate) error = call.gate->target()->error;
    return error;
  }
  [[nodiscard]] std::vector<const void*> arguments_of(const GangCall& call) {
    std::vector<const void*> arguments;
    for (const Value& argument : call.arguments) arguments.push_back(tensor_of(*argument));
    return arguments;
  }
  /// Calls a part of a function. Returns the error that it throws, or "".
  template <class Call>
  [[nodiscard]] std::string attempt(const GangEntry& entry, Call&& call) {
    try {
      call();
      return {};
    } catch (const communication_error&) {
      throw;  // this rank can no longer talk to the others
    } catch (const std::exception& thrown) {
      return text("'", entry.name, "' failed on rank ", m_comm->rank(), ": ", thrown.what());
    } catch (...) {
      return text("'", entry.name, "' failed on rank ", m_comm->rank());
    }
  }

  /// Returns the tensor of a value. A rank without elements gets an empty one.
  [[nodiscard]] const void* tensor_of(GangValue& value) {
    if (value.tensor == nullptr) value.tensor = value.type->allocate(*m_comm, value.layout);
    return value.tensor.get();
  }

  void finish(GangProgram& run) {
    m_preparer.release(run.frame);
    if (run.frame.nodes > 0) m_order.push_back(run.frame.client);
    m_done.push_back(run.frame.number);
  }

  const Communicator* m_comm;
  GangDesk* m_desk;
  std::vector<GangClientInfo> m_clients;
  GangPreparer m_preparer;  // refers to those above
  GangRecord* m_record;
  GangPick m_pick;
  std::function<void()> m_on_call;
  std::deque<GangProgram> m_runs;
  std::optional<GangProgram> m_current;
  std::vector<Transfer> m_open;  ///< sends whose receivers are not there yet
  std::vector<std::uint64_t> m_done;
  std::vector<std::uint32_t> m_order;
};

}  // namespace heddle::inline v0::systems::impl
