// Ring 2: the same body on N ranks, each a thread of this process.
#ifndef NPUMESH_TESTS_RANKS_RUN_RANKS_H_
#define NPUMESH_TESTS_RANKS_RUN_RANKS_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/device/device_memory.h"
#include "runtime/world/world.h"

namespace npumesh {

// An environment for tests: small HBM; a wait that fails is one that hangs, on a busy machine, too.
inline Env TestEnv() {
  Env env;
  env.hbm_bytes = uint64_t{64} << 20;
  env.connect_timeout = std::chrono::seconds(300);
  env.exec_timeout = std::chrono::seconds(300);
  return env;
}

// Reports every rank that failed, not only the first.
inline void ExpectAllOk(const std::vector<Status>& statuses) {
  for (size_t rank = 0; rank < statuses.size(); ++rank) {
    EXPECT_TRUE(statuses[rank].ok()) << "rank " << rank << ": " << statuses[rank].ToString();
  }
}

// A typed array in a rank's HBM, given back at the end.
template <typename T>
class HbmArray {
 public:
  HbmArray(DeviceMemory& memory, uint64_t count) : memory_(memory), count_(count) {
    Result<void*> block = memory.Allocate(count * sizeof(T));
    EXPECT_TRUE(block.ok()) << block.status().ToString();
    data_ = static_cast<T*>(*block);
  }
  ~HbmArray() { EXPECT_TRUE(memory_.Free(data_).ok()); }
  HbmArray(const HbmArray&) = delete;
  HbmArray& operator=(const HbmArray&) = delete;

  T* data() { return data_; }
  uint64_t size() const { return count_; }
  T& operator[](uint64_t i) { return data_[i]; }
  std::vector<T> ToVector() const { return std::vector<T>(data_, data_ + count_); }

 private:
  DeviceMemory& memory_;
  uint64_t count_;
  T* data_ = nullptr;
};

}  // namespace npumesh

#endif  // NPUMESH_TESTS_RANKS_RUN_RANKS_H_
