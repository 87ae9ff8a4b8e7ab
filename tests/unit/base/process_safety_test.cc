#include "runtime/base/process/process_safety.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(ProcessSafety, ReadsTheUmaskWithoutChangingIt) {
  const mode_t before = umask(0026);
  EXPECT_EQ(LookAtProcess().umask, 0026u);
  EXPECT_EQ(umask(before), 0026u);
}

TEST(ProcessSafety, KnowsRootAndAslr) {
  const ProcessFacts facts = LookAtProcess();
  EXPECT_EQ(facts.root, geteuid() == 0);
  if (facts.aslr) {
    EXPECT_GE(*facts.aslr, 0);
    EXPECT_LE(*facts.aslr, 2);
  }
}

TEST(ProcessSafety, WarnsAboutALooseUmaskAndRoot) {
  EXPECT_THAT(WarningsAbout({0027, false, 2}), IsEmpty());
  EXPECT_THAT(WarningsAbout({0077, false, 0}), IsEmpty());
  EXPECT_THAT(WarningsAbout({std::nullopt, false, std::nullopt}), IsEmpty());
  EXPECT_THAT(WarningsAbout({0022, false, 2}),
              ElementsAre(HasSubstr("the umask is 0022, looser than 0027")));
  EXPECT_THAT(WarningsAbout({0007, true, 2}),
              ElementsAre(HasSubstr("the umask is 0007"), HasSubstr("running as root")));
}

}  // namespace
}  // namespace npumesh
