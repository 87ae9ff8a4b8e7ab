#include "launch/catalog/option_page.h"

#include <gmock/gmock.h>

#include "runtime/base/files/secure_file.h"

namespace npumesh {
namespace {

using testing::HasSubstr;

std::string Page(const std::string& name) {
  const Result<std::string> page = ReadFile(std::string(NPUMESH_DOCS) + "/" + name);
  EXPECT_TRUE(page.ok()) << page.status().message();
  return page.ok() ? *page : "";
}

// Mend with: npumesh config --markdown > docs/config.md
TEST(OptionPage, ConfigIsWhatTheCommandPrints) {
  EXPECT_EQ(Page("config.md"), ConfigAsMarkdown()) << "npumesh config --markdown > docs/config.md";
}

// Mend with: npumesh env --markdown > docs/env.md
TEST(OptionPage, EnvIsWhatTheCommandPrints) {
  EXPECT_EQ(Page("env.md"), EnvAsMarkdown()) << "npumesh env --markdown > docs/env.md";
}

TEST(OptionPage, SecurityHoldsThePermissionTable) {
  EXPECT_THAT(Page("security.md"), HasSubstr("\n\n" + PermissionsAsMarkdown() + "\n"));
}

TEST(OptionPage, BarsStayInsideTheirCell) {
  EXPECT_THAT(ConfigAsMarkdown(),
              HasSubstr("counts of cube and vector cores, as 24\\|48, or null"));
}

TEST(OptionPage, EnvShowsWhatIsSet) {
  const std::string text = EnvAsText([](const char* name) -> const char* {
    return std::string_view(name) == "TNG_LOG_LEVEL" ? "1" : nullptr;
  });
  EXPECT_THAT(text, HasSubstr("TNG_LOG_LEVEL                1\n"));
  EXPECT_THAT(text, HasSubstr("NPUMESH_TRACE                (unset: 0)\n"));
  EXPECT_THAT(text, HasSubstr("HCCL_IF_BASE_PORT"));
}

}  // namespace
}  // namespace npumesh
