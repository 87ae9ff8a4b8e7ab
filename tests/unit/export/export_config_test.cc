// `dynamo_export(config=...)`: what of a CompilerConfig reaches an export.
#include "graph/export/export_config.h"

#include <gmock/gmock.h>

#include "graph/config/config_reader.h"
#include "graph/config/option_tables.h"

namespace npumesh {
namespace {

using ::testing::HasSubstr;

TEST(ExportConfig, EachOptionReachesItsField) {
  CompilerConfig config;
  const Result<ExportOptions> plain = ExportOptionsFor(config);
  ASSERT_TRUE(plain.ok()) << plain.status().ToString();
  EXPECT_EQ(plain->export_path, "export_file");
  EXPECT_EQ(plain->export_name, "export");
  EXPECT_FALSE(plain->enable_record_nn_module_stack);
  EXPECT_FALSE(plain->auto_atc_config_generated);

  const OptionTable table = OptionsOf(config);
  for (const char* assignment : {"export.export_path_dir=mp", "export.export_name=m",
                                 "export.experimental.enable_record_nn_module_stack=true",
                                 "export.experimental.auto_atc_config_generated=true"}) {
    ASSERT_TRUE(ApplyAssignment(assignment, table).ok()) << assignment;
  }
  const Result<ExportOptions> set = ExportOptionsFor(config);
  ASSERT_TRUE(set.ok()) << set.status().ToString();
  EXPECT_EQ(set->export_path, "mp");
  EXPECT_EQ(set->export_name, "m");
  EXPECT_TRUE(set->enable_record_nn_module_stack);
  EXPECT_TRUE(set->auto_atc_config_generated);
}

TEST(ExportConfig, WhatDoesNotGoWithAnExportIsAnError) {
  const std::pair<const char*, const char*> cases[] = {
      {"mode=reduce-overhead", "does not go with mode \"reduce-overhead\""},
      {"experimental_config.frozen_parameter=true", "does not go with export.export_mode"}};
  for (const auto& [assignment, expected] : cases) {
    CompilerConfig config;
    ASSERT_TRUE(ApplyAssignment(assignment, OptionsOf(config)).ok());
    EXPECT_THAT(std::string(ExportOptionsFor(config).status().message()), HasSubstr(expected));
  }
}

}  // namespace
}  // namespace npumesh
