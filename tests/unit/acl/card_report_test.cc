// What a C program's captures do that a card refuses, in the report of NPUMESH_CARD_REPORT.
#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/unit/acl/acl_test.h"

namespace npumesh {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

// Read once by a process.
class Variables : public testing::Environment {
 public:
  void SetUp() override {
    std::string folder = std::filesystem::temp_directory_path() / "card-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    setenv("NPUMESH_CARD", "ascend910b3", 1);
    setenv("NPUMESH_CARD_REPORT", report().c_str(), 1);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  static std::string report() { return folder_ / "found"; }

 private:
  inline static std::filesystem::path folder_;
};
const auto* const kVariables = testing::AddGlobalTestEnvironment(new Variables);

class AclCardReportTest : public AclTest {
 protected:
  void SetUp() override {
    AclTest::SetUp();
    stream_ = NewStream();
    side_ = NewStream();
    ASSERT_EQ(aclrtCreateEventExWithFlag(&event_, ACL_EVENT_SYNC), ACL_SUCCESS);
    std::ofstream(Variables::report(), std::ios::trunc);
  }
  void Begin(aclmdlRICaptureMode mode = ACL_MODEL_RI_CAPTURE_MODE_GLOBAL) {
    ASSERT_EQ(aclmdlRICaptureBegin(stream_, mode), ACL_SUCCESS);
  }
  aclError End() {
    aclmdlRI model = nullptr;
    return aclmdlRICaptureEnd(stream_, &model);
  }
  static std::vector<json> Found() {
    std::vector<json> all;
    std::ifstream file(Variables::report());
    for (std::string line; std::getline(file, line);) all.push_back(json::parse(line));
    return all;
  }
  // The one finding, of a call that was refused.
  static void ExpectFound(int code, const char* function) {
    const std::vector<json> all = Found();
    ASSERT_EQ(all.size(), 1);
    EXPECT_EQ(all[0]["rule"], "capture");
    EXPECT_EQ(all[0]["code"], code);
    EXPECT_EQ(all[0]["chip"], "ascend910b3");
    EXPECT_THAT(all[0]["where"].get<std::string>(), StartsWith(std::string(function) + " in "));
    EXPECT_THAT(all[0]["text"].get<std::string>(), HasSubstr(function));
  }

  aclrtStream stream_ = nullptr, side_ = nullptr;
  aclrtEvent event_ = nullptr;
};

TEST_F(AclCardReportTest, TheHostWaitsForACapturedStream) {
  Begin();
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_ERROR_RT_STREAM_CAPTURED);
  EXPECT_EQ(End(), ACL_SUCCESS);
  ExpectFound(107027, "aclrtSynchronizeStream");
}

TEST_F(AclCardReportTest, TheHostWaitsForACapturedEvent) {
  Begin();
  ASSERT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeEvent(event_), ACL_ERROR_RT_EVENT_CAPTURED);
  EXPECT_EQ(End(), ACL_SUCCESS);
  ExpectFound(107028, "aclrtSynchronizeEvent");
}

TEST_F(AclCardReportTest, AStreamDoesNotComeBack) {
  Begin();
  ASSERT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEvent(side_, event_), ACL_SUCCESS);
  EXPECT_EQ(End(), ACL_ERROR_RT_STREAM_UNJOINED);
  ExpectFound(107025, "aclmdlRICaptureEnd");
}

TEST_F(AclCardReportTest, AnEventFromOutsideMakesTheCaptureInvalid) {
  ASSERT_EQ(aclrtRecordEvent(event_, side_), ACL_SUCCESS);
  Begin();
  EXPECT_EQ(aclrtStreamWaitEvent(stream_, event_), ACL_ERROR_RT_CAPTURE_DEPENDENCY);
  EXPECT_EQ(End(), ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED);
  const std::vector<json> all = Found();
  ASSERT_EQ(all.size(), 2);
  EXPECT_EQ(all[0]["code"], 107024);
  EXPECT_EQ(all[1]["code"], 507903);
}

TEST_F(AclCardReportTest, ACopyThatTheHostWaitsFor) {
  void* const there = Allocate(64);
  char here[64] = {};
  Begin();
  EXPECT_EQ(aclrtMemcpy(here, sizeof(here), there, sizeof(here), ACL_MEMCPY_DEVICE_TO_HOST),
            ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT);
  EXPECT_EQ(End(), ACL_SUCCESS);
  ExpectFound(107030, "aclrtMemcpy");
}

TEST_F(AclCardReportTest, AnotherThreadEndsIt) {
  Begin();
  std::thread([this] {
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    EXPECT_EQ(End(), ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD);
  }).join();
  EXPECT_EQ(End(), ACL_SUCCESS);
  ExpectFound(107038, "aclmdlRICaptureEnd");
}

TEST_F(AclCardReportTest, TheDefaultStream) {
  EXPECT_EQ(aclmdlRICaptureBegin(nullptr, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL),
            ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT);
  ExpectFound(107031, "aclmdlRICaptureBegin");
}

TEST_F(AclCardReportTest, EachPlaceOnce) {
  Begin();
  for (int i = 0; i < 3; ++i) aclrtSynchronizeStream(stream_);
  aclrtSynchronizeStream(stream_);
  EXPECT_EQ(End(), ACL_SUCCESS);
  EXPECT_EQ(Found().size(), 2);
}

TEST_F(AclCardReportTest, NothingOfACaptureWithoutAFault) {
  Begin();
  ASSERT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEvent(side_, event_), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(event_, side_), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEvent(stream_, event_), ACL_SUCCESS);
  aclmdlRI model = nullptr;
  ASSERT_EQ(aclmdlRICaptureEnd(stream_, &model), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIExecute(model, -1), ACL_SUCCESS);
  EXPECT_THAT(Found(), testing::IsEmpty());
}

// A mistake that has nothing to do with captures.
TEST_F(AclCardReportTest, NothingOfOtherErrors) {
  EXPECT_NE(aclrtDestroyStream(this), ACL_SUCCESS);
  EXPECT_THAT(Found(), testing::IsEmpty());
}

}  // namespace
}  // namespace npumesh
