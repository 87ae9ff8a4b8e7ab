// What the tests of the C interface share: a process with some devices, begun and ended by each
// test.
#ifndef NPUMESH_TESTS_UNIT_ACL_ACL_TEST_H_
#define NPUMESH_TESTS_UNIT_ACL_ACL_TEST_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <future>
#include <string>

#include "acl/acl.h"

namespace npumesh {

// Devices of 16 MiB; the first one is current.
class AclTest : public testing::Test {
 protected:
  explicit AclTest(int devices = 1) : devices_(devices) {}

  void SetUp() override {
    setenv("NPUMESH_HBM_SIZE", "16M", 1);
    setenv("NPUMESH_DEVICE_COUNT", std::to_string(devices_).c_str(), 1);
    ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  }
  void TearDown() override { EXPECT_EQ(aclFinalize(), ACL_SUCCESS); }

  static aclrtStream NewStream() {
    aclrtStream stream = nullptr;
    EXPECT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
    return stream;
  }
  static void* Allocate(size_t bytes) {
    void* pointer = nullptr;
    EXPECT_EQ(aclrtMalloc(&pointer, bytes, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    return pointer;
  }
  // Keeps a stream busy until it is opened.
  class Gate {
   public:
    explicit Gate(aclrtStream stream) {
      EXPECT_EQ(aclrtLaunchHostFunc(stream, Wait, this), ACL_SUCCESS);
    }
    void Open() { opened_.set_value(); }

   private:
    static void Wait(void* gate) { static_cast<Gate*>(gate)->opened_.get_future().wait(); }
    std::promise<void> opened_;
  };

 private:
  const int devices_;
};

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_ACL_ACL_TEST_H_
