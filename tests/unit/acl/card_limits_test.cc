// What a process holds against what the card of NPUMESH_CARD has, without a process around it.
#include "runtime/acl/limits/card_limits.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "runtime/acl/process/errors.h"

namespace npumesh {
namespace {

using ::testing::HasSubstr;

class CardLimitsTest : public testing::Test {
 protected:
  ~CardLimitsTest() override {
    unsetenv("NPUMESH_CARD");
    unsetenv("NPUMESH_CARD_CHECK");
    TakeRecentErrors();
  }
  static void Name(const char* card, const char* check = "fail") {
    setenv("NPUMESH_CARD", card, 1);
    setenv("NPUMESH_CARD_CHECK", check, 1);
  }
  // One more beside `live` streams.
  aclError Stream(size_t live) {
    return limits_.Permit("aclrtCreateStream", "streams", ACL_ERROR_RT_NO_STREAM_RESOURCE, [&] {
      ++asked_;
      return live;
    });
  }

  CardLimits limits_;
  int asked_ = 0;
};

TEST_F(CardLimitsTest, WithoutACardNothingIsCounted) {
  EXPECT_EQ(Stream(1'000'000), ACL_SUCCESS);
  EXPECT_EQ(asked_, 0);
}

TEST_F(CardLimitsTest, AsManyAsTheCardHasArePermittedAndNoMore) {
  Name("ascend310b1");
  EXPECT_EQ(Stream(511), ACL_SUCCESS);
  EXPECT_EQ(Stream(512), ACL_ERROR_RT_NO_STREAM_RESOURCE);
  const char* const said = TakeRecentErrors();
  ASSERT_NE(said, nullptr);
  EXPECT_THAT(said, HasSubstr("aclrtCreateStream"));
  EXPECT_THAT(said, HasSubstr("holds 512 streams already"));
  EXPECT_THAT(said, HasSubstr("the card has 512"));
  EXPECT_EQ(Stream(513), ACL_ERROR_RT_NO_STREAM_RESOURCE) << "each time";
  EXPECT_EQ(Stream(3), ACL_SUCCESS) << "some were destroyed";
}

TEST_F(CardLimitsTest, EachKindHasItsNumberAndItsCode) {
  Name("ascend310p3");
  const auto permit = [this](const char* fact, aclError code, size_t live) {
    return limits_.Permit("aclrtCreate", fact, code, [live] { return live; });
  };
  EXPECT_EQ(permit("events", ACL_ERROR_RT_NO_EVENT_RESOURCE, 1022), ACL_SUCCESS);
  EXPECT_EQ(permit("events", ACL_ERROR_RT_NO_EVENT_RESOURCE, 1023), ACL_ERROR_RT_NO_EVENT_RESOURCE);
  EXPECT_EQ(permit("notifies", ACL_ERROR_RT_NO_NOTIFY_RESOURCE, 1024),
            ACL_ERROR_RT_NO_NOTIFY_RESOURCE);
  EXPECT_EQ(permit("wheels", ACL_ERROR_RT_NO_NOTIFY_RESOURCE, 1 << 20), ACL_SUCCESS)
      << "nothing is documented";
}

TEST_F(CardLimitsTest, WarningsPermitIt) {
  Name("ascend310b1", "warn");
  EXPECT_EQ(Stream(100'000), ACL_SUCCESS);
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(TakeRecentErrors(), nullptr);
}

TEST_F(CardLimitsTest, TheVariableIsReadOnceAndAMistakeOfItIsSaidOnce) {
  Name("rtx");
  EXPECT_EQ(Stream(0), ACL_ERROR_INVALID_PARAM);
  EXPECT_THAT(TakeRecentErrors(), HasSubstr("NPUMESH_CARD"));
  EXPECT_EQ(Stream(0), ACL_SUCCESS);
  Name("ascend310b1");
  EXPECT_EQ(Stream(1'000'000), ACL_SUCCESS);
}

TEST_F(CardLimitsTest, AMistakeIsSaidAlsoWhenSomethingElseHasReadTheVariable) {
  Name("rtx");
  EXPECT_EQ(limits_.chip(), nullptr);
  EXPECT_EQ(Stream(0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(Stream(0), ACL_SUCCESS);
}

TEST_F(CardLimitsTest, ThreadsAskAtOnce) {
  Name("ascend310b1");
  std::vector<std::thread> threads;
  std::vector<aclError> given(8);
  for (size_t i = 0; i < given.size(); ++i) {
    threads.emplace_back([&, i] {
      given[i] = limits_.Permit("aclrtCreateStream", "streams", ACL_ERROR_RT_NO_STREAM_RESOURCE,
                                [] { return size_t{512}; });
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const aclError code : given) EXPECT_EQ(code, ACL_ERROR_RT_NO_STREAM_RESOURCE);
}

}  // namespace
}  // namespace npumesh
