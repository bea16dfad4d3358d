// How long the client will wait, from connect-timeout-ms or grpc-timeout. Nothing means for ever.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "rpc/code.h"

namespace tricorn::rpc {

using Timeout = std::optional<std::chrono::nanoseconds>;

// Each takes the header's value. Connect's may be empty and then says nothing; gRPC's may not.
Outcome<Timeout> connect_timeout(std::optional<std::string_view> header);
Outcome<Timeout> grpc_timeout(std::optional<std::string_view> header);  // what overflows becomes the longest there is

}  // namespace tricorn::rpc
