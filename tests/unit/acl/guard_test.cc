// What is written or used where it must not be: found always, and more of it with NPUMESH_GUARD.
#include <gmock/gmock.h>

#include <cstring>
#include <string>
#include <thread>

#include "tests/unit/acl/acl_test.h"

namespace npumesh {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string Words() {
  const char* const words = aclGetRecentErrMsg();
  return words == nullptr ? "" : words;
}

class AclBlockTest : public AclTest {};

// Blocks are multiples of 512 bytes, so what a block has beyond what was asked is not another's.
TEST_F(AclBlockTest, CopiesAndFillsStayInOneBlock) {
  auto* const first = static_cast<char*>(Allocate(512));
  auto* const second = static_cast<char*>(Allocate(512));
  std::string host(1024, 'h');
  for (char* const at : {first, second}) std::memset(at, 'd', 512);
  const struct {
    void* dst;
    const void* src;
    size_t bytes;
    aclrtMemcpyKind kind;
  } copies[] = {{first, host.data(), 513, ACL_MEMCPY_HOST_TO_DEVICE},
                {first + 500, host.data(), 13, ACL_MEMCPY_HOST_TO_DEVICE},
                {first, host.data(), 513, ACL_MEMCPY_DEFAULT},
                {host.data(), first, 513, ACL_MEMCPY_DEVICE_TO_HOST},
                {host.data(), first + 511, 2, ACL_MEMCPY_DEFAULT},
                {second, first, 513, ACL_MEMCPY_DEVICE_TO_DEVICE}};
  for (const auto& copy : copies) {
    EXPECT_EQ(aclrtMemcpy(copy.dst, copy.bytes, copy.src, copy.bytes, copy.kind),
              ACL_ERROR_INVALID_PARAM);
    EXPECT_THAT(Words(), HasSubstr("before the end of the block of 512 bytes"));
    EXPECT_EQ(aclrtMemcpyAsync(copy.dst, copy.bytes, copy.src, copy.bytes, copy.kind, nullptr),
              ACL_ERROR_INVALID_PARAM);
  }
  EXPECT_EQ(aclrtMemset(first, 513, 0, 513), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemsetAsync(first, 513, 0, 513, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(std::string(first, 512), std::string(512, 'd'));
  EXPECT_EQ(std::string(second, 512), std::string(512, 'd'));
  EXPECT_EQ(host, std::string(1024, 'h'));
  EXPECT_EQ(aclrtMemcpy(first, 512, host.data(), 512, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
}

TEST_F(AclBlockTest, FreedMemoryIsKnownAsFreed) {
  void* const block = Allocate(1000);
  ASSERT_EQ(aclrtFree(block), ACL_SUCCESS);
  std::string host(1000, 'h');
  Words();
  EXPECT_EQ(aclrtMemcpy(block, 1000, host.data(), 1000, ACL_MEMCPY_DEFAULT),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_THAT(Words(), HasSubstr("that was freed"));
  EXPECT_EQ(aclrtMemcpy(host.data(), 1000, block, 1000, ACL_MEMCPY_DEVICE_TO_HOST),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemset(static_cast<char*>(block) + 8, 8, 0, 8), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(host, std::string(1000, 'h'));
}

// A sample of the vendor's runtime clears a structure so.
TEST_F(AclBlockTest, VariablesAreFilledButNoOtherHostMemory) {
  static char of_program[8] = "0123456";
  char local[8] = "0123456";
  for (char* const variable : {of_program, local}) {
    EXPECT_EQ(aclrtMemset(variable, 8, 'w', 3), ACL_SUCCESS);
    EXPECT_STREQ(variable, "www3456");
    EXPECT_EQ(aclrtMemset(variable, 2, 0, 3), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQ(aclrtMemsetAsync(variable, 8, 0, 8, nullptr), ACL_ERROR_INVALID_PARAM);
    EXPECT_STREQ(variable, "www3456");
  }
  std::string allocated(64, 'a');
  static const char kText[] = "text";
  for (void* const other : {static_cast<void*>(allocated.data()), static_cast<void*>(nullptr),
                            const_cast<void*>(static_cast<const void*>(kText))}) {
    EXPECT_EQ(aclrtMemset(other, 4, 0, 4), ACL_ERROR_INVALID_PARAM);
  }
  EXPECT_EQ(allocated, std::string(64, 'a'));
}

TEST_F(AclBlockTest, CopiesStayInABlockOfTheHost) {
  void* pinned = nullptr;
  ASSERT_EQ(aclrtMallocHost(&pinned, 100), ACL_SUCCESS);
  void* const device = Allocate(512);
  EXPECT_EQ(aclrtMemcpy(pinned, 101, device, 101, ACL_MEMCPY_DEVICE_TO_HOST),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_THAT(Words(), HasSubstr("begin in a block of aclrtMallocHost and end beyond it"));
  EXPECT_EQ(aclrtMemcpy(pinned, 100, device, 100, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
  EXPECT_EQ(aclrtFreeHost(pinned), ACL_SUCCESS);
}

class AclGuardTest : public AclTest {
 protected:
  void SetUp() override {
    setenv("NPUMESH_GUARD", "1", 1);
    AclTest::SetUp();
  }
  void TearDown() override {
    unsetenv("NPUMESH_GUARD");
    aclFinalize();
  }
  // What aclFinalize says.
  static std::string Ended() {
    Words();
    testing::internal::CaptureStderr();
    EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
    std::string log = testing::internal::GetCapturedStderr();
    const std::string words = Words();
    EXPECT_EQ(log.empty(), words.empty()) << log;
    return words;
  }
};

TEST_F(AclGuardTest, AProgramThatDestroysAllIsSilent) {
  const aclrtStream stream = NewStream();
  void* const block = Allocate(100);
  EXPECT_EQ(aclrtMemsetAsync(block, 100, 1, 100, stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  EXPECT_EQ(Ended(), "");
}

TEST_F(AclGuardTest, VariablesAreNotFilled) {
  char local[8] = "0123456";
  EXPECT_EQ(aclrtMemset(local, 8, 0, 8), ACL_ERROR_INVALID_PARAM);
  EXPECT_STREQ(local, "0123456");
}

TEST_F(AclGuardTest, SizesAreExact) {
  void* const block = Allocate(100);
  EXPECT_EQ(aclrtMemset(block, 101, 0, 101), ACL_ERROR_INVALID_PARAM);
  EXPECT_THAT(Words(), HasSubstr("begin 100 bytes before the end of the block of 100 bytes"));
  EXPECT_EQ(aclrtMemset(block, 100, 0, 100), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
}

TEST_F(AclGuardTest, NamesWhatWasWrittenBehindABlock) {
  auto* const block = static_cast<char*>(Allocate(100));
  auto* const other = static_cast<char*>(Allocate(100));
  block[102] = 1;  // as a host function may
  Words();
  EXPECT_EQ(aclrtFree(block), ACL_ERROR_RT_INTERNAL_ERROR);
  EXPECT_THAT(Words(), HasSubstr("byte 3 behind the end of the block of 100 bytes"));
  EXPECT_EQ(aclrtFree(block), ACL_ERROR_INVALID_PARAM);  // it is free all the same
  other[100] = 1;
  EXPECT_THAT(Ended(), HasSubstr("byte 1 behind the end of the block of 100 bytes"));
}

TEST_F(AclGuardTest, NamesWhatWasWrittenAfterItWasFreed) {
  auto* const block = static_cast<char*>(Allocate(100));
  std::memset(block, 7, 100);
  ASSERT_EQ(aclrtFree(block), ACL_SUCCESS);
  EXPECT_NE(block[0], 7);           // what reads it notices
  EXPECT_NE(Allocate(100), block);  // nor is it used again at once
  block[4] = 7;
  EXPECT_THAT(Ended(), HasSubstr("byte 4 of the block of 100 bytes"));
}

TEST_F(AclGuardTest, FreedMemoryIsKeptUntilItIsNeeded) {
  for (int i = 0; i < 100; ++i) {
    void* const block = Allocate(size_t{10} << 20);
    ASSERT_NE(block, nullptr);
    ASSERT_EQ(aclrtFree(block), ACL_SUCCESS);
  }
  size_t free = 0;
  size_t total = 0;
  EXPECT_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total), ACL_SUCCESS);
  EXPECT_EQ(free, total);
}

TEST_F(AclGuardTest, NamesWhatWasNotDestroyed) {
  const aclrtStream stream = NewStream();
  int32_t id = 0;
  ASSERT_EQ(aclrtStreamGetId(stream, &id), ACL_SUCCESS);
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
  aclrtNotify notify = nullptr;
  ASSERT_EQ(aclrtCreateNotify(&notify, 0), ACL_SUCCESS);
  for (int i = 0; i < 7; ++i) Allocate(64);
  void* pinned = nullptr;
  ASSERT_EQ(aclrtMallocHost(&pinned, 10), ACL_SUCCESS);
  aclrtContext context = nullptr;
  ASSERT_EQ(aclrtCreateContext(&context, 0), ACL_SUCCESS);
  const std::string said = Ended();
  // Where: this program, whose name is all that a program without symbols has.
  EXPECT_THAT(said, HasSubstr("1 streams were not destroyed: stream " + std::to_string(id) +
                              ", made in unit_acl+0x"));
  EXPECT_THAT(said, HasSubstr("1 events were not destroyed: an event, made in unit_acl+0x"));
  EXPECT_THAT(said, HasSubstr("1 notifies were not destroyed: notify "));
  EXPECT_THAT(said, AllOf(HasSubstr("7 blocks of device memory were not destroyed: 64 bytes at "),
                          HasSubstr(", and 2 more")));
  EXPECT_THAT(said, HasSubstr("1 contexts were not destroyed: a context of device 0, made in "));
  EXPECT_THAT(said, HasSubstr("1 blocks of host memory were not destroyed: 10 bytes at "));
  EXPECT_EQ(aclrtFreeHost(pinned), ACL_SUCCESS);
}

TEST_F(AclGuardTest, ResettingADeviceNamesWhatEndsWithIt) {
  NewStream();
  Words();
  testing::internal::CaptureStderr();
  ASSERT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("aclrtResetDevice: 1 streams were not destroyed"));
  EXPECT_EQ(Ended(), "");  // said once
}

TEST_F(AclGuardTest, AStreamIsUsedInItsContext) {
  const aclrtStream stream = NewStream();
  void* const block = Allocate(8);
  aclrtContext own = nullptr;
  aclrtContext other = nullptr;
  ASSERT_EQ(aclrtGetCurrentContext(&own), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateContext(&other, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemsetAsync(block, 8, 0, 8, stream), ACL_ERROR_RT_STREAM_CONTEXT);
  EXPECT_THAT(Words(), HasSubstr("this thread has another one of device 0"));
  ASSERT_EQ(aclrtSetCurrentContext(own), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemsetAsync(block, 8, 0, 8, stream), ACL_SUCCESS);
  std::thread([&] {
    EXPECT_EQ(aclrtMemsetAsync(block, 8, 0, 8, stream), ACL_ERROR_RT_STREAM_CONTEXT);
    EXPECT_THAT(Words(), HasSubstr("no current context"));
  }).join();
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyContext(other), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
}

}  // namespace
}  // namespace npumesh
