// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include "plan_files.hpp"

#if defined(HEDDLE_HAS_JSON)

#include <heddle/json/plan.hpp>

namespace examples {

heddle::Plan read_plan(const std::string& file) { return heddle::json::read_plan(file); }
void write_plan(const std::string& file, const heddle::Plan& plan) {
  heddle::json::write_plan(file, plan);
}

}  // namespace examples

#else

#include <heddle/core/contract.hpp>

namespace examples {

namespace {

[[noreturn]] void refuse(const std::string& file) {
  throw heddle::contract_error({"command line", "this program is built without files of plans",
                                file,
                                "install nlohmann_json and build it again, or use --plan auto "
                                "without --save-plan"});
}

}  // namespace

heddle::Plan read_plan(const std::string& file) { refuse(file); }
void write_plan(const std::string& file, const heddle::Plan&) { refuse(file); }

}  // namespace examples

#endif
