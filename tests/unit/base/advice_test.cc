#include "runtime/base/advice.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/base/log.h"

namespace npumesh {
namespace {

TEST(Advice, GoesToItsPrinterOnceWhateverTheLevelIs) {
  SetLogLevel(LogLevel::kError);
  std::vector<std::string> printed;
  SetAdvicePrinter([&](std::string_view text) {
    printed.emplace_back(text);
    return true;
  });
  Advise("layer a is not there");
  Advise("layer a is not there");
  Advise("option b has no effect");
  SetAdvicePrinter(nullptr);
  EXPECT_EQ(printed, (std::vector<std::string>{"layer a is not there", "option b has no effect"}));
}

TEST(Advice, IsAWarningOfTheLogOtherwise) {
  SetLogLevel(LogLevel::kWarning);
  testing::internal::CaptureStderr();
  SetAdvicePrinter([](std::string_view) { return false; });
  Advise("left to the log");
  SetAdvicePrinter(nullptr);
  Advise("nobody prints");
  const std::string log = testing::internal::GetCapturedStderr();
  SetLogLevel(LogLevel::kError);
  EXPECT_NE(log.find("left to the log"), std::string::npos);
  EXPECT_NE(log.find("nobody prints"), std::string::npos);
}

}  // namespace
}  // namespace npumesh
