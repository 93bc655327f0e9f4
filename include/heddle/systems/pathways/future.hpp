// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Future: a tensor that the ranks of an Island have or will have.

#include <memory>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/systems/pathways/impl/gang_draft.hpp>

namespace heddle::inline v0::systems {

class IslandClient;

/// Refers to a tensor of type `Tensor`, a Sharded, that the ranks of an island compute. A client
/// gets it before the function has run. Copies refer to the same tensor. When the last copy is
/// destroyed, the ranks release the tensor as soon as the calls that read it have run.
///
/// If the function of the tensor fails, the tensor has the error instead of elements. Functions
/// that read it do not run, and their results have the same error. IslandClient::get() throws it.
template <class Tensor>
class Future {
 public:
  /// Constructs a future that refers to nothing.
  Future() = default;

  /// Returns true if the future refers to a tensor.
  [[nodiscard]] bool valid() const noexcept { return m_state != nullptr; }
  /// Returns the layout of the tensor, which is known before the tensor exists. If sized() is
  /// false, the sizes are those with which the function was added.
  /// @throws contract_error if the future refers to nothing.
  [[nodiscard]] const Layout& layout() const {
    return state("heddle::systems::Future::layout").layout;
  }
  /// Returns false if the sizes of the tensor are known only while its function runs.
  /// @throws contract_error if the future refers to nothing.
  [[nodiscard]] bool sized() const { return state("heddle::systems::Future::sized").sized; }

 private:
  friend class IslandClient;

  explicit Future(std::shared_ptr<impl::GangFuture> state) : m_state(std::move(state)) {}

  [[nodiscard]] const impl::GangFuture& state(const char* where) const {
    expects(valid(), [&] {
      return ErrorInfo{where, "the future refers to nothing", "",
                       "use the result of call() or put()"};
    });
    return *m_state;
  }

  std::shared_ptr<impl::GangFuture> m_state;
};

}  // namespace heddle::inline v0::systems
