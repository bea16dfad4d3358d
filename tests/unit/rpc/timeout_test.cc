#include "rpc/timeout.h"

#include <gtest/gtest.h>

namespace tricorn::rpc {
namespace {

using namespace std::chrono_literals;

RpcError refused(std::string text) { return {Code::invalid_argument, std::move(text)}; }

TEST(RpcTimeout, ReadsConnectsMilliseconds) {
  EXPECT_EQ(connect_timeout(std::nullopt).value(), Timeout{});
  EXPECT_EQ(connect_timeout("").value(), Timeout{});
  EXPECT_EQ(connect_timeout("0").value(), Timeout{0ns});
  EXPECT_EQ(connect_timeout("007").value(), Timeout{7ms});
  EXPECT_EQ(connect_timeout("9999999999").value(), Timeout{9'999'999'999ms});
}

TEST(RpcTimeout, RefusesOtherConnectTimeoutsAsConnectrpcDoes) {
  EXPECT_EQ(connect_timeout("00000000001").error(), refused("Invalid timeout header: '00000000001 has >10 digits"));
  EXPECT_EQ(connect_timeout("-1234567890").error(), refused("Invalid timeout header: '-1234567890 has >10 digits"));
  for (std::string_view bad : {"-1", "+1", "1e3", " 1", "1 ", "1_0", "1.5", "x", "\xd9\xa1"})
    EXPECT_EQ(connect_timeout(bad).error(), refused("Invalid timeout header: '" + std::string{bad} + "'"));
}

TEST(RpcTimeout, CountsCharactersNotOctets) {
  const std::string ten = "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9";
  EXPECT_EQ(connect_timeout(ten).error(), refused("Invalid timeout header: '" + ten + "'"));
  EXPECT_EQ(connect_timeout(ten + "1").error(), refused("Invalid timeout header: '" + ten + "1 has >10 digits"));
}

TEST(RpcTimeout, ReadsGrpcsUnits) {
  EXPECT_EQ(grpc_timeout(std::nullopt).value(), Timeout{});
  EXPECT_EQ(grpc_timeout("2H").value(), Timeout{2h});
  EXPECT_EQ(grpc_timeout("3M").value(), Timeout{3min});
  EXPECT_EQ(grpc_timeout("4S").value(), Timeout{4s});
  EXPECT_EQ(grpc_timeout("5m").value(), Timeout{5ms});
  EXPECT_EQ(grpc_timeout("6u").value(), Timeout{6us});
  EXPECT_EQ(grpc_timeout("0n").value(), Timeout{0ns});
  EXPECT_EQ(grpc_timeout("00000007n").value(), Timeout{7ns});
  EXPECT_EQ(grpc_timeout("99999999M").value(), Timeout{99'999'999min});
}

TEST(RpcTimeout, MakesWhatOverflowsTheLongestThereIs) {
  EXPECT_EQ(grpc_timeout("2562047H").value(), Timeout{2'562'047h});
  EXPECT_EQ(grpc_timeout("2562048H").value(), Timeout{std::chrono::nanoseconds::max()});
  EXPECT_EQ(grpc_timeout("99999999H").value(), Timeout{std::chrono::nanoseconds::max()});
}

TEST(RpcTimeout, RefusesOtherGrpcTimeoutsAsConnectrpcDoes) {
  for (std::string_view bad :
       {"", "1", "S", "\xc3\xa9", "+1S", " 1S", "1_0S", "-1n", "\xd9\xa1S", "1 S", "123456789xS"})
    EXPECT_EQ(grpc_timeout(bad).error(), refused("protocol error: invalid timeout '" + std::string{bad} + "'"));
  EXPECT_EQ(grpc_timeout("12").error(), refused("protocol error: timeout has invalid unit '2'"));
  EXPECT_EQ(grpc_timeout("x\xc3\xa9").error(), refused("protocol error: timeout has invalid unit '\xc3\xa9'"));
  EXPECT_EQ(grpc_timeout("123456789s").error(), refused("protocol error: timeout has invalid unit 's'"));
  EXPECT_EQ(grpc_timeout("000000001S").error(), refused("protocol error: timeout '000000001S' is too long"));
}

}  // namespace
}  // namespace tricorn::rpc
