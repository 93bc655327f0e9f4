// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of checkpoint.hpp.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/checkpoint.hpp>
#include <heddle/core/checksum.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/small_float.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/pipeline/checkpoint.hpp>
#include <heddle/pipeline/impl/held_state.hpp>
#include <heddle/pipeline/impl/move_state.hpp>
#include <heddle/pipeline/impl/throw_together.hpp>
#include <heddle/plan/migration.hpp>

namespace heddle::inline v0::impl {

/// Calls `visit` with a null pointer to the type of elements.
template <class Visit>
void with_type(Scalar type, Visit&& visit) {
  switch (type) {
    case Scalar::f32: return visit(static_cast<float*>(nullptr));
    case Scalar::f64: return visit(static_cast<double*>(nullptr));
    case Scalar::f16: return visit(static_cast<f16*>(nullptr));
    case Scalar::bf16: return visit(static_cast<bf16*>(nullptr));
    case Scalar::f8e4m3: return visit(static_cast<f8e4m3*>(nullptr));
    case Scalar::f8e5m2: return visit(static_cast<f8e5m2*>(nullptr));
    case Scalar::i8: return visit(static_cast<std::int8_t*>(nullptr));
    case Scalar::i32: return visit(static_cast<std::int32_t*>(nullptr));
    case Scalar::i64: return visit(static_cast<std::int64_t*>(nullptr));
    default: break;
  }
}

/// The field of the number of arrays.
inline constexpr const char* state_field = "state";

/// Returns the field of an array.
[[nodiscard]] inline std::string field_of(const ArrayInfo& info) {
  return info.layer == whole_model ? text(state_field, "/model/", info.name)
                                   : text(state_field, "/", info.layer, "/", info.name);
}

HEDDLE_FULL_INLINE Checkpoint gather_arrays(const std::vector<HeldArray>& held, Checkpoint own,
                                            const TransportRef& transport,
                                            const ExecuteOptions& options,
                                            std::exception_ptr& error) {
  ArrayNumbers numbers("heddle::save");
  const auto had = numbers.add(all_gather(transport, packed(held), options));
  const std::vector<Bytes> bytes = numbers.element_bytes();
  std::vector<std::vector<plan::HeldElements>> needed(had.size());
  for (std::size_t a = 0; a < bytes.size(); ++a)
    needed[0].push_back({a, IndexSet(numbers.arrays()[a].whole)});
  const auto pieces = plan::migration_pieces(had, needed, bytes);
  std::vector<HostElements> whole;
  HostCopies copies(held, numbers);
  const bool writes = transport.rank() == Rank{0};
  for (std::size_t a = 0; writes && a < bytes.size(); ++a) {
    const IndexSet all(numbers.arrays()[a].whole);
    whole.emplace_back(static_cast<Bytes>(all.size()) * bytes[a]);
    if (const IndexSet* const here = copies.find(a))
      copy_elements(*here, *here, copies.data(a), all, whole.back().data(), bytes[a]);
  }
  move_state(transport, options, pieces, bytes, copies,
             [&](const plan::StatePiece& piece, const std::byte* data) {
               copy_elements(piece.elements, piece.elements, data,
                             IndexSet(numbers.arrays()[piece.array].whole),
                             whole[piece.array].data(), bytes[piece.array]);
             });
  if (writes) {
    try {
      own.set(state_field, std::vector<std::int64_t>{static_cast<std::int64_t>(bytes.size())});
      for (std::size_t a = 0; a < bytes.size(); ++a) {
        const ArrayInfo& info = numbers.arrays()[a];
        with_type(info.type, [&]<class T>(T*) {
          own.set(field_of(info), std::span<const T>(reinterpret_cast<const T*>(whole[a].data()),
                                                     static_cast<std::size_t>(info.whole)));
        });
      }
    } catch (...) {
      error = std::current_exception();
    }
  }
  return own;
}

HEDDLE_FULL_INLINE void save_arrays(const std::string& path, const std::vector<HeldArray>& held,
                                    Checkpoint own, const TransportRef& transport,
                                    const ExecuteOptions& options) {
  std::exception_ptr error;
  const Checkpoint whole = gather_arrays(held, std::move(own), transport, options, error);
  if (transport.rank() == Rank{0} && !error) {
    try {
      whole.save(path);
    } catch (...) {
      error = std::current_exception();
    }
  }
  throw_together(transport, options, error, "heddle::save", "save the checkpoint", path);
}

HEDDLE_FULL_INLINE Checkpoint restore_arrays(const std::string& path,
                                             const std::vector<HeldArray>& held,
                                             const std::function<void(const Checkpoint&)>& check,
                                             const TransportRef& transport,
                                             const ExecuteOptions& options) {
  constexpr const char* where = "heddle::restore";
  ArrayNumbers numbers(where);
  (void)numbers.add(all_gather(transport, packed(held), options));
  Checkpoint checkpoint;
  std::vector<HostElements> values;
  std::exception_ptr error;
  try {
    checkpoint = Checkpoint::load(path);
    if (check) check(checkpoint);
    const std::int64_t arrays = checkpoint.get<std::int64_t>(state_field, 1)[0];
    if (arrays != static_cast<std::int64_t>(numbers.arrays().size()))
      throw format_error({where, "the checkpoint is of a model with other arrays",
                          text("it has ", arrays, ", the model has ", numbers.arrays().size())});
    for (const HeldArray& each : held) {
      const ArrayInfo& info = each.info;
      values.emplace_back(info.bytes());
      with_type(info.type, [&]<class T>(T*) {
        const std::vector<T> whole =
            checkpoint.get<T>(field_of(info), static_cast<std::size_t>(info.whole));
        copy_elements(info.elements, IndexSet(info.whole),
                      reinterpret_cast<const std::byte*>(whole.data()), info.elements,
                      values.back().data(), sizeof(T));
      });
    }
  } catch (...) {
    error = std::current_exception();
  }
  throw_together(transport, options, error, where, "load the checkpoint", path);
  const std::string content = checkpoint.content();
  const std::uint32_t sum = crc32c(std::as_bytes(std::span(content)));
  const auto sums = all_gather<std::uint32_t>(transport, std::span(&sum, 1), options);
  for (std::size_t r = 0; r < sums.size(); ++r)
    if (sums[r][0] != sums[0][0])
      throw format_error({where, "ranks have read different checkpoints",
                          text("rank ", r, " has read another one than rank 0 from ", path),
                          "put the same file where every rank can read it"});
  for (std::size_t i = 0; i < held.size(); ++i) held[i].write(values[i].data());
  return checkpoint;
}

}  // namespace heddle::inline v0::impl
