// SPDX-License-Identifier: Apache-2.0
// Options of the command line: each with what its help calls its value, such as FILE or N.
#pragma once

#include <string>

#include "CLI/CLI.hpp"

namespace horus::cli {

template <typename Value>
CLI::Option* AddOption(CLI::App& app, const std::string& name, Value& value, const std::string& what,
                       const std::string& called) {
  return app.add_option(name, value, what)->type_name(called);
}

// One that is given once for each of its values.
template <typename Value>
CLI::Option* AddRepeated(CLI::App& app, const std::string& name, Value& values, const std::string& what,
                         const std::string& called) {
  return AddOption(app, name, values, what, called)->allow_extra_args(false);
}

}  // namespace horus::cli
