// docs/onnx.md has the table that the command prints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "launch/catalog/onnx_table.h"

namespace npumesh {
namespace {

TEST(OnnxPage, EndsWithTheTableOfOperators) {
  std::ifstream file(NPUMESH_ONNX_PAGE);
  ASSERT_TRUE(file) << NPUMESH_ONNX_PAGE;
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_THAT(text.str(), ::testing::EndsWith(OnnxOpsAsMarkdown()))
      << "write it again: npumesh import --ops --markdown";
}

}  // namespace
}  // namespace npumesh
