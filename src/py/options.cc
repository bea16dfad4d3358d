#include "py/options.h"

#include <pybind11/stl.h>

#include <array>
#include <variant>

#include "base/text.h"

namespace tricorn {
namespace {

using Field64 = std::uint64_t Limits::*;
using Field32 = std::uint32_t Limits::*;
struct Row {
  std::string_view name;
  std::variant<Field64, Field32> field;
};

constexpr std::array k_rows{
    Row{"limit_concurrency", &Limits::concurrency},
    Row{"limit_connections", &Limits::connections},
    Row{"timeout_keep_alive", &Limits::timeout_keep_alive},
    Row{"timeout_request_header", &Limits::timeout_request_header},
    Row{"timeout_first_byte", &Limits::timeout_first_byte},
    Row{"timeout_request_body", &Limits::timeout_request_body},
    Row{"timeout_write", &Limits::timeout_write},
    Row{"timeout_tls_handshake", &Limits::timeout_tls_handshake},
    Row{"timeout_h2_idle", &Limits::timeout_h2_idle},
    Row{"timeout_h2_settings", &Limits::timeout_h2_settings},
    Row{"min_body_rate", &Limits::min_body_rate},
    Row{"limit_request_line", &Limits::request_line},
    Row{"limit_header_size", &Limits::header_size},
    Row{"limit_header_count", &Limits::header_count},
    Row{"limit_chunk_ext", &Limits::chunk_ext},
    Row{"limit_trailer_size", &Limits::trailer_size},
    Row{"limit_request_body", &Limits::request_body},
    Row{"read_buffer", &Limits::read_buffer},
    Row{"write_buffer", &Limits::write_buffer},
    Row{"h2_max_concurrent_streams", &Limits::h2_max_concurrent_streams},
    Row{"h2_initial_window", &Limits::h2_initial_window},
    Row{"h2_connection_window", &Limits::h2_connection_window},
    Row{"h2_max_frame_size", &Limits::h2_max_frame_size},
    Row{"h2_header_table_size", &Limits::h2_header_table_size},
    Row{"h2_max_continuations", &Limits::h2_max_continuations},
    Row{"h2_reset_burst", &Limits::h2_reset_burst},
    Row{"h2_reset_rate", &Limits::h2_reset_rate},
    Row{"h2_glitch_burst", &Limits::h2_glitch_burst},
    Row{"h2_glitch_rate", &Limits::h2_glitch_rate},
    Row{"h2_max_queued_acks", &Limits::h2_max_queued_acks},
};

bool set_limit(Limits& limits, std::string_view name, py::handle value) {
  for (const Row& row : k_rows) {
    if (row.name != name) continue;
    try {
      if (const auto* wide = std::get_if<Field64>(&row.field)) limits.*(*wide) = value.cast<std::uint64_t>();
      else limits.*std::get<Field32>(row.field) = value.cast<std::uint32_t>();
    } catch (const py::cast_error&) {
      throw py::value_error(std::string{name} + " is out of range");
    }
    return true;
  }
  return false;
}

std::vector<std::pair<std::string, std::string>> fields(py::handle value) {
  std::vector<std::pair<std::string, std::string>> result;
  for (auto& [name, content] : value.cast<std::vector<std::pair<std::string, std::string>>>()) {
    if (!is_token(name) || !is_field_value(content)) throw py::value_error("not a header field: " + name);
    result.emplace_back(lower(name), content);
  }
  return result;
}

}  // namespace

Options make_options(const py::kwargs& arguments) {
  Options options;
  for (const auto& [key, value] : arguments) {
    const auto name = key.cast<std::string>();
    if (name == "root_path") options.root_path = value.cast<std::string>();
    else if (name == "server_header") options.server_header = value.cast<bool>();
    else if (name == "date_header") options.date_header = value.cast<bool>();
    else if (name == "headers") options.headers = fields(value);
    else if (!set_limit(options.limits, name, value)) throw py::type_error("Options has no argument '" + name + "'");
  }
  return options;
}

}  // namespace tricorn
