// What the two phases of an aclnn call cost its caller, beside a host function on the same stream.
#include <benchmark/benchmark.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"

namespace npumesh {
namespace {

constexpr int64_t kElements = 16;
// Calls between two waits: what the stream does is not the caller's time, but must not pile up.
constexpr int kCalls = 256;

// A program that adds two vectors again and again.
class Adding {
 public:
  Adding() {
    float one = 1;
    ok_ = aclInit(nullptr) == ACL_SUCCESS && aclrtSetDevice(0) == ACL_SUCCESS &&
          aclrtCreateStream(&stream_) == ACL_SUCCESS;
    for (aclTensor*& tensor : tensors_) {
      void* memory = nullptr;
      ok_ = ok_ && aclrtMalloc(&memory, kElements * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST) ==
                       ACL_SUCCESS;
      tensor = aclCreateTensor(&kElements, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &kElements, 1,
                               memory);
    }
    alpha_ = aclCreateScalar(&one, ACL_FLOAT);
    ok_ = ok_ && Prepare() == ACL_SUCCESS && aclDestroyAclOpExecutor(executor_) == ACL_SUCCESS;
  }
  ~Adding() {
    for (const aclTensor* tensor : tensors_) aclDestroyTensor(tensor);
    aclDestroyScalar(alpha_);
    aclFinalize();
  }

  bool ok() const { return ok_; }
  aclrtStream stream() const { return stream_; }
  aclOpExecutor* executor() const { return executor_; }
  aclnnStatus Prepare() {
    uint64_t bytes = 0;
    return aclnnAddGetWorkspaceSize(tensors_[0], tensors_[1], alpha_, tensors_[2], &bytes,
                                    &executor_);
  }

 private:
  bool ok_ = false;
  aclrtStream stream_ = nullptr;
  aclTensor* tensors_[3] = {};
  aclScalar* alpha_ = nullptr;
  aclOpExecutor* executor_ = nullptr;
};

void PhaseOneOfAKnownForm(benchmark::State& state) {
  Adding adding;
  if (!adding.ok()) return state.SkipWithError(aclGetRecentErrMsg());
  for (auto _ : state) {
    adding.Prepare();
    aclDestroyAclOpExecutor(adding.executor());
  }
}
BENCHMARK(PhaseOneOfAKnownForm);

// Calls `enqueue` kCalls times for each iteration, and waits for the stream outside of the time.
template <typename Enqueue>
void TimeOnStream(benchmark::State& state, const Adding& adding, const Enqueue& enqueue) {
  for (auto _ : state) {
    for (int i = 0; i < kCalls; ++i) enqueue();
    state.PauseTiming();
    aclrtSynchronizeStream(adding.stream());
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * kCalls);
}

void PhaseTwo(benchmark::State& state) {
  Adding adding;
  if (!adding.ok() || adding.Prepare() != ACL_SUCCESS) {
    return state.SkipWithError(aclGetRecentErrMsg());
  }
  aclOpExecutor* const executor = adding.executor();
  aclSetAclOpExecutorRepeatable(executor);
  TimeOnStream(state, adding, [&] { aclnnAdd(nullptr, 0, executor, adding.stream()); });
  aclDestroyAclOpExecutor(executor);
}
BENCHMARK(PhaseTwo);

void HostFunction(benchmark::State& state) {
  Adding adding;
  if (!adding.ok()) return state.SkipWithError(aclGetRecentErrMsg());
  TimeOnStream(state, adding, [&] {
    aclrtLaunchHostFunc(
        adding.stream(), [](void*) {}, nullptr);
  });
}
BENCHMARK(HostFunction);

}  // namespace
}  // namespace npumesh
