// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// throw_together(): an error of one rank as an error of all ranks.

#include <exception>
#include <string>

#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/transport_ref.hpp>

namespace heddle::inline v0::impl {

/// Calls `check`. If it throws on a rank, all ranks throw: this one its own error, the others one
/// that names the first rank with an error. All ranks must call it.
void throw_together(const TransportRef& transport, const ExecuteOptions& options, const char* where,
                    FunctionRef<void()> check);

/// Throws the `error` of this rank, or a format_error that names the first rank with an error, by
/// what it could not do (`what`) with the file `path`, which all ranks use. All ranks must call it.
void throw_together(const TransportRef& transport, const ExecuteOptions& options,
                    const std::exception_ptr& error, const char* where, const char* what,
                    const std::string& path);

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_PIPELINE
#include <heddle/pipeline/impl/throw_together.ipp>
#endif
