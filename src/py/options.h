// The keyword arguments of `_core.Options`: one table from name to field.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "http/host.h"
#include "py/border.h"

namespace tricorn {

struct Options {
  Limits limits;
  std::string root_path;
  bool server_header = true;
  bool date_header = true;
  std::vector<std::pair<std::string, std::string>> headers;
};

// Raises TypeError for an unknown name or a wrong type, OverflowError for a number that does not fit.
Options make_options(const py::kwargs& arguments);

}  // namespace tricorn
