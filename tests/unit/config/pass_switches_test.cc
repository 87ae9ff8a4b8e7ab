#include "graph/config/pass_switches.h"

#include <gmock/gmock.h>

#include "runtime/base/files/secure_file.h"
#include "tests/unit/base/temporary_folder.h"

namespace npumesh {
namespace {

using testing::HasSubstr;

// GE's forms of the file.
TEST(PassSwitches, AFileNamesPassesOrAll) {
  const struct {
    const char* text;
    bool a;
    bool b;
  } cases[] = {
      {"{}", true, true},
      {R"({"Switch":{"GraphFusion":{"A":"off"}}})", false, true},
      {R"({"Switch":{"GraphFusion":{"ALL":"off"}}})", false, false},
      {R"({"Switch":{"GraphFusion":{"A":"on","ALL":"off"}}})", true, false},
      {R"({"Switch":{"UBFusion":{"ALL":"off"}}})", true, true},
      {R"({"Priority":{"GraphFusion":{"Top":{"A":"5"}}}})", true, true},
      {"A:off\n\nB:on\r\n", false, true},
      {"ALL:off\nA:on", true, false},
  };
  for (const auto& expected : cases) {
    const auto switches = PassSwitches::Parse(expected.text, "f");
    ASSERT_TRUE(switches.ok()) << switches.status().message();
    EXPECT_EQ(switches->On("A"), expected.a) << expected.text;
    EXPECT_EQ(switches->On("B"), expected.b) << expected.text;
  }
}

TEST(PassSwitches, WrongFilesAreOneError) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "f: the switch file is empty"},
      {" \n", "f: the switch file is empty"},
      {R"({"Switch":[]})", "f: Switch is no object"},
      {R"({"Switch":{"GraphFusion":{"A":"maybe"}}})", "f: pass \"A\" is \"maybe\", expected"},
      {R"({"Switch":{"GraphFusion":{"A":true}}})", "f: pass \"A\": expected \"on\" or \"off\""},
      {R"({"Switch":{"UBFusion":{"A":"x"}}})", "f: pass \"A\" is \"x\""},
      {R"({"ExceptionalPassOfO1Level":[1]})", "f: ExceptionalPassOfO1Level is no list of names"},
      {"A:on\nA:on", "f: pass \"A\" stands there twice"},
      {"A", "f: \"A\" is no PassName:on or PassName:off"},
      {"{\"Switch\":", "f: begins like JSON, but is not JSON"},
  };
  for (const auto& [text, answer] : cases) {
    const auto switches = PassSwitches::Parse(text, "f");
    ASSERT_FALSE(switches.ok()) << text;
    EXPECT_EQ(switches.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(std::string(switches.status().message()), HasSubstr(answer));
  }
}

TEST(PassSwitches, TheOptionBeatsO1WhichBeatsTheFile) {
  const TemporaryFolder folder;
  const std::string file = folder.Path("switch.json");
  ASSERT_TRUE(WriteFile(file,
                        R"({"Switch":{"GraphFusion":{"A":"off","C":"off"}},
                            "ExceptionalPassOfO1Level":["Kept"]})",
                        FileKind::kConfig)
                  .ok());
  CompilerConfig config;
  config.fusion_config.fusion_switch_file = file;
  config.ge_config.optimization_switch = "A:on;B:off";
  const auto o3 = PassSwitches::From(config);
  ASSERT_TRUE(o3.ok()) << o3.status().message();
  EXPECT_TRUE(o3->On("A"));
  EXPECT_FALSE(o3->On("B"));
  EXPECT_FALSE(o3->On("C"));
  EXPECT_TRUE(o3->On("Other"));
  config.ge_config.oo_level = "O1";
  const auto o1 = PassSwitches::From(config);
  ASSERT_TRUE(o1.ok());
  EXPECT_TRUE(o1->On("A"));
  EXPECT_TRUE(o1->On("Kept"));
  EXPECT_FALSE(o1->On("Other"));
}

TEST(PassSwitches, SurviveDamagedFiles) {
  const std::string whole =
      R"({"Switch":{"GraphFusion":{"A":"off"}},"ExceptionalPassOfO1Level":["B"]})";
  for (size_t at = 0; at < whole.size(); ++at) {
    (void)PassSwitches::Parse(whole.substr(0, at), "f");
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      const auto switches = PassSwitches::Parse(flipped, "f");
      EXPECT_EQ(switches.ok(), switches.status().message().empty());
    }
  }
}

}  // namespace
}  // namespace npumesh
