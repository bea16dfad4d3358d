#include "rpc/code.h"

#include <gtest/gtest.h>

namespace tricorn::rpc {
namespace {

TEST(RpcCode, HasConnectsNamesAndStatusesInOrderOfGrpcStatus) {
  struct Row {
    std::string_view name;
    int http;
  };
  const Row rows[] = {{"canceled", 499},
                      {"unknown", 500},
                      {"invalid_argument", 400},
                      {"deadline_exceeded", 504},
                      {"not_found", 404},
                      {"already_exists", 409},
                      {"permission_denied", 403},
                      {"resource_exhausted", 429},
                      {"failed_precondition", 400},
                      {"aborted", 409},
                      {"out_of_range", 400},
                      {"unimplemented", 501},
                      {"internal", 500},
                      {"unavailable", 503},
                      {"data_loss", 500},
                      {"unauthenticated", 401}};
  unsigned grpc = 0;
  for (const auto& [text, http] : rows) {
    const std::optional<Code> code = code_of_grpc(++grpc);
    ASSERT_TRUE(code) << text;
    EXPECT_EQ(static_cast<unsigned>(*code), grpc);
    EXPECT_EQ(name(*code), text);
    EXPECT_EQ(http_status(*code), http) << text;
    EXPECT_EQ(code_named(text), code);
  }
}

TEST(RpcCode, KnowsNoOthers) {
  for (unsigned bad : {0U, 17U, 256U, 257U, UINT32_MAX}) EXPECT_FALSE(code_of_grpc(bad)) << bad;
  for (std::string_view bad : {"", "ok", "Canceled", "cancelled", "canceled ", "16"})
    EXPECT_FALSE(code_named(bad)) << bad;
}

}  // namespace
}  // namespace tricorn::rpc
