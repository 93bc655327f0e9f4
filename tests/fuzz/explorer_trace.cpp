// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// links: heddle::json
// with: tools/explorer/answer.cpp tools/explorer/plan_files.cpp tools/explorer/search.cpp
// with: tools/explorer/trace.cpp tools/common/pricing.cpp tools/common/search_orders.cpp

// Traces in the explorer's page: the lines that the page makes of a file, drawn and analysed.

#include <heddle/core/error.hpp>

#include "../../tools/explorer/answer.hpp"
#include "support.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tool::Explorer explorer;
  if (fuzz::accepts(
          [&] { static_cast<void>(explorer.answer("do=trace", fuzz::text_of(data, size))); }))
    fuzz::accepts<heddle::error>([&] { static_cast<void>(explorer.answer("do=analyse")); });
  return 0;
}
