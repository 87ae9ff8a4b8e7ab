#include "acl/acl_prof.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "mstx/ms_tools_ext.h"
#include "runtime/msprof/vendor_files.h"
#include "runtime/profile/profile_file.h"

namespace npumesh {
namespace {

TEST(AclProf, ChecksTheOrderOfTheCalls) {
  setenv("NPUMESH_DEVICE_COUNT", "2", 1);
  uint32_t devices[] = {0, 1};
  aclprofConfig* config = aclprofCreateConfig(devices, 2, ACL_AICORE_PIPE_UTILIZATION, nullptr,
                                              ACL_PROF_ACL_API | ACL_PROF_HCCL_TRACE);
  ASSERT_NE(config, nullptr);
  const std::string folder = testing::TempDir();
  EXPECT_EQ(aclprofStart(config), ACL_ERROR_PROF_NOT_RUN);
  EXPECT_EQ(aclprofFinalize(), ACL_ERROR_PROF_NOT_RUN);
  EXPECT_EQ(aclprofInit(folder.c_str(), folder.size()), ACL_SUCCESS);
  EXPECT_EQ(aclprofInit(folder.c_str(), folder.size()), ACL_ERROR_PROF_ALREADY_RUN);
  EXPECT_EQ(aclprofStop(config), ACL_ERROR_PROF_NOT_RUN);
  EXPECT_EQ(aclprofStart(config), ACL_SUCCESS);
  EXPECT_EQ(aclprofStart(config), ACL_ERROR_PROF_ALREADY_RUN);
  EXPECT_EQ(aclprofStop(config), ACL_SUCCESS);
  EXPECT_EQ(aclprofFinalize(), ACL_SUCCESS);
  EXPECT_EQ(aclprofDestroyConfig(config), ACL_SUCCESS);
}

TEST(AclProf, ChecksArguments) {
  EXPECT_EQ(aclprofInit(nullptr, 1), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclprofInit("/somewhere", 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclprofCreateConfig(nullptr, 1, ACL_AICORE_NONE, nullptr, 0), nullptr);
  EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_INVALID_PROFILING_CONFIG);
  EXPECT_EQ(aclprofStart(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclprofStop(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclprofDestroyConfig(nullptr), ACL_ERROR_INVALID_PARAM);
}

// hccl_test profiles into a folder that exists nowhere at first.
TEST(AclProf, MakesItsFolderWhenItStarts) {
  const std::string above = testing::TempDir() + "acl_prof_folder";
  const std::string folder = above + "/a/b";
  std::filesystem::remove_all(above);
  uint32_t device = 0;
  aclprofConfig* config = aclprofCreateConfig(&device, 1, ACL_AICORE_NONE, nullptr, 0);
  ASSERT_EQ(aclprofInit(folder.c_str(), folder.size()), ACL_SUCCESS);
  EXPECT_FALSE(std::filesystem::exists(above));
  EXPECT_EQ(aclprofStart(config), ACL_SUCCESS);
  EXPECT_TRUE(std::filesystem::is_directory(folder));
  EXPECT_EQ(aclprofFinalize(), ACL_SUCCESS);

  std::ofstream(above + "/file") << "no folder";
  const std::string file = above + "/file";
  ASSERT_EQ(aclprofInit(file.c_str(), file.size()), ACL_SUCCESS);
  EXPECT_EQ(aclprofStart(config), ACL_ERROR_INVALID_FILE);
  EXPECT_THAT(aclGetRecentErrMsg(), testing::HasSubstr(file));
  EXPECT_EQ(aclprofStop(config), ACL_ERROR_PROF_NOT_RUN);
  EXPECT_EQ(aclprofFinalize(), ACL_SUCCESS);
  EXPECT_EQ(aclprofDestroyConfig(config), ACL_SUCCESS);
  std::filesystem::remove_all(above);
}

constexpr size_t kBytes = 4096;

// A process with devices of 16 MiB, and the folder into which it profiles.
class AclProfile : public testing::Test {
 protected:
  void SetUp() override {
    setenv("NPUMESH_HBM_SIZE", "16M", 1);
    UseDevices(1);
    std::filesystem::remove_all(folder_);
    ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
    ASSERT_EQ(aclprofInit(folder_.c_str(), folder_.size()), ACL_SUCCESS);
  }
  void TearDown() override {
    for (const aclprofConfig* config : configs_) {
      EXPECT_EQ(aclprofDestroyConfig(config), ACL_SUCCESS);
    }
    EXPECT_EQ(aclprofFinalize(), ACL_SUCCESS);
    static_cast<void>(aclFinalize());
    std::filesystem::remove_all(folder_);
  }

  // Names of the folders that aclprofStop has left.
  std::vector<std::string> VendorFolders() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      if (entry.is_directory()) names.push_back(entry.path().filename().string());
    }
    return names;
  }

  static void UseDevices(int count) {
    setenv("NPUMESH_DEVICE_COUNT", std::to_string(count).c_str(), 1);
  }
  const aclprofConfig* Config(uint64_t data_types, std::vector<uint32_t> devices = {0}) {
    configs_.push_back(aclprofCreateConfig(devices.data(), static_cast<uint32_t>(devices.size()),
                                           ACL_AICORE_NONE, nullptr, data_types));
    return configs_.back();
  }
  RankProfile Read(int rank = 0, const std::string& below = "") const {
    Result<RankProfile> read = ReadRankProfile(folder_ + below + "/" + ProfileFileName(rank));
    EXPECT_TRUE(read.ok()) << read.status().ToString();
    return read.ok() ? *std::move(read) : RankProfile();
  }
  static std::vector<Span> Of(const RankProfile& profile, SpanKind kind) {
    std::vector<Span> spans;
    std::copy_if(profile.spans.begin(), profile.spans.end(), std::back_inserter(spans),
                 [kind](const Span& span) { return span.kind == kind; });
    return spans;
  }
  // Names of the calls, sorted.
  static std::vector<std::string> CallsOf(const RankProfile& profile) {
    std::vector<std::string> names;
    for (const Span& span : Of(profile, SpanKind::kApi)) names.push_back(profile.task(span).name);
    std::sort(names.begin(), names.end());
    return names;
  }
  static void* Allocate() {
    void* block = nullptr;
    EXPECT_EQ(aclrtMalloc(&block, kBytes, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    return block;
  }
  static void AllocateAndFree() { EXPECT_EQ(aclrtFree(Allocate()), ACL_SUCCESS); }

  const std::string folder_ = testing::TempDir() + "acl_profile_" + std::to_string(getpid());
  std::vector<aclprofConfig*> configs_;
};

// Copies to the device and back, blocking and on a stream; returns the stream's id.
int32_t Copy() {
  void* device = nullptr;
  aclrtStream stream = nullptr;
  int32_t id = 0;
  std::vector<char> host(kBytes, 'a');
  EXPECT_EQ(aclrtMalloc(&device, kBytes, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  EXPECT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamGetId(stream, &id), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy(device, kBytes, host.data(), kBytes, ACL_MEMCPY_HOST_TO_DEVICE),
            ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpyAsync(host.data(), 64, device, 64, ACL_MEMCPY_DEVICE_TO_HOST, stream),
            ACL_SUCCESS);
  EXPECT_EQ(aclrtMemset(device, kBytes, 0, kBytes), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemsetAsync(device, kBytes, 1, 128, stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(device), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  return id;
}

TEST_F(AclProfile, CallsHaveSpansOnTheHost) {
  const aclprofConfig* config = Config(ACL_PROF_ACL_API);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  ASSERT_EQ(aclprofStart(config), ACL_SUCCESS);
  Copy();
  ASSERT_EQ(aclprofStop(config), ACL_SUCCESS);
  Copy();
  const RankProfile profile = Read();
  EXPECT_TRUE(profile.ended);
  EXPECT_EQ(profile.owner.rank, 0);
  EXPECT_EQ(profile.owner.process, getpid());
  EXPECT_FALSE(profile.owner.task_trace);
  EXPECT_FALSE(profile.owner.training_trace);
  EXPECT_NE(profile.owner.command, "");
  EXPECT_THAT(
      CallsOf(profile),
      testing::ElementsAre("aclrtCreateStream", "aclrtDestroyStream", "aclrtFree", "aclrtMalloc",
                           "aclrtMemcpy", "aclrtMemcpyAsync", "aclrtMemset", "aclrtMemsetAsync",
                           "aclrtSynchronizeDevice", "aclrtSynchronizeStream"));
  EXPECT_TRUE(Of(profile, SpanKind::kCopy).empty());
  EXPECT_TRUE(Of(profile, SpanKind::kTask).empty());
  for (const Span& span : Of(profile, SpanKind::kApi)) {
    EXPECT_EQ(span.lane, kHostLane);
    EXPECT_GE(span.begin_ns, profile.owner.start_monotonic_ns);
    EXPECT_LE(span.begin_ns, span.end_ns);
  }
  const std::vector<Span> memory = Of(profile, SpanKind::kMemory);
  ASSERT_EQ(memory.size(), 2u);  // after the allocation, and after its end
  EXPECT_GE(memory[0].bytes, memory[1].bytes + kBytes);
  EXPECT_THAT(VendorFolders(), testing::ElementsAre(testing::StartsWith("PROF_000001_")));
}

TEST_F(AclProfile, ExtensionsMarkHostAndStream) {
  const aclprofConfig* config = Config(ACL_PROF_MSPROFTX);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  ASSERT_EQ(aclprofStart(config), ACL_SUCCESS);
  const mstxDomainHandle_t domain = mstxDomainCreateA("loader");
  ASSERT_NE(domain, nullptr);
  EXPECT_EQ(mstxDomainCreateA("loader"), domain);
  mstxMarkA("here", nullptr);
  mstxMarkA("there", stream);
  mstxMarkA("outer", nullptr);  // the name of a range
  const mstxRangeId outer = mstxRangeStartA("outer", stream);
  const mstxRangeId inner = mstxDomainRangeStartA(domain, "inner", nullptr);
  EXPECT_NE(outer, inner);
  mstxDomainMarkA(domain, "read", nullptr);
  mstxRangeEnd(outer);  // ranges need not be nested
  mstxDomainRangeEnd(domain, inner);
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  ASSERT_EQ(aclprofStop(config), ACL_SUCCESS);

  const RankProfile profile = Read();
  std::multimap<std::string, bool> seen;  // name and type; whether in the stream
  for (const Span& span : Of(profile, SpanKind::kTask)) {
    const ProfiledTask& task = profile.task(span);
    seen.emplace(task.type + " " + task.name, span.lane != kHostLane);
    EXPECT_LE(span.begin_ns, span.end_ns);
  }
  EXPECT_THAT(seen, testing::UnorderedElementsAre(
                        testing::Pair("Mark here", false), testing::Pair("Mark there", false),
                        testing::Pair("Mark there", true), testing::Pair("Mark outer", false),
                        testing::Pair("Mark loader: read", false),
                        testing::Pair("Range loader: inner", false),
                        testing::Pair("Range outer", false), testing::Pair("Range outer", true)));
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
}

TEST_F(AclProfile, ExtensionsSayWhatIsWrong) {
  aclGetRecentErrMsg();
  mstxMarkA(nullptr, nullptr);
  EXPECT_THAT(aclGetRecentErrMsg(), testing::HasSubstr("mstxMarkA: message is null"));
  EXPECT_EQ(mstxRangeStartA(nullptr, nullptr), 0u);
  mstxRangeEnd(12345);
  EXPECT_THAT(aclGetRecentErrMsg(), testing::HasSubstr("no range has the id 12345"));
  const mstxDomainHandle_t domain = mstxDomainCreateA("short");
  mstxDomainDestroy(domain);
  EXPECT_EQ(mstxDomainRangeStartA(domain, "late", nullptr), 0u);
  EXPECT_THAT(aclGetRecentErrMsg(), testing::HasSubstr("is not a domain"));
  mstxDomainDestroy(domain);
  EXPECT_THAT(aclGetRecentErrMsg(), testing::HasSubstr("mstxDomainDestroy"));
  EXPECT_EQ(mstxDomainCreateA(nullptr), nullptr);
}

// What readers of profiles do: they remove the exports and have msprof make them again.
TEST_F(AclProfile, ExportsAreMadeAgain) {
  const aclprofConfig* config = Config(ACL_PROF_TASK_TIME_L0 | ACL_PROF_ACL_API);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  ASSERT_EQ(aclprofStart(config), ACL_SUCCESS);
  Copy();
  ASSERT_EQ(aclprofStop(config), ACL_SUCCESS);
  ASSERT_EQ(VendorFolders().size(), 1u);
  const std::string folder = folder_ + "/" + VendorFolders()[0];
  const auto files = [&folder] {
    std::map<std::string, std::string> found;  // text by name without the time of the export
    for (const char* part : {"/mindstudio_profiler_output", "/analyze"}) {
      for (const auto& entry : std::filesystem::directory_iterator(folder + part)) {
        std::ifstream file(entry.path());
        const std::string name = entry.path().filename().string();
        found[name.substr(0, name.rfind('_'))] = {std::istreambuf_iterator<char>(file), {}};
      }
    }
    return found;
  };
  const auto before = files();
  EXPECT_TRUE(before.contains("op_summary")) << "copies and fills are tasks";
  EXPECT_TRUE(std::filesystem::exists(folder + "/host/start_info"));
  std::filesystem::remove_all(folder + "/mindstudio_profiler_output");
  const Result<std::vector<std::string>> exported = ExportMsprof(folder_);
  ASSERT_TRUE(exported.ok()) << exported.status().message();
  EXPECT_THAT(*exported, testing::ElementsAre(folder));
  EXPECT_EQ(files(), before);
  ASSERT_TRUE(ExportMsprof(folder).ok());
  EXPECT_EQ(files(), before);
  std::filesystem::remove_all(folder + "/host/data");
  EXPECT_EQ(ExportMsprof(folder_).status().code(), Code::kNotFound);
}

TEST_F(AclProfile, CopiesAndFillsHaveTheLaneOfTheirStream) {
  const aclprofConfig* config = Config(ACL_PROF_TASK_TIME | ACL_PROF_TRAINING_TRACE);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  ASSERT_EQ(aclprofStart(config), ACL_SUCCESS);
  const int32_t stream = Copy();
  ASSERT_EQ(aclprofStop(config), ACL_SUCCESS);
  const RankProfile profile = Read();
  EXPECT_TRUE(profile.owner.task_trace);
  EXPECT_TRUE(profile.owner.training_trace);
  EXPECT_TRUE(CallsOf(profile).empty());
  EXPECT_TRUE(Of(profile, SpanKind::kMemory).empty());
  const std::vector<Span> copies = Of(profile, SpanKind::kCopy);
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_EQ(profile.task(copies[0]).name, "host to device");
  EXPECT_EQ(copies[0].bytes, kBytes);
  EXPECT_EQ(copies[0].lane, kHostLane);
  EXPECT_EQ(profile.task(copies[1]).name, "device to host");
  EXPECT_EQ(copies[1].bytes, 64u);
  EXPECT_EQ(copies[1].lane, stream);
  EXPECT_GT(stream, kCommunicationLane);
  const std::vector<Span> tasks = Of(profile, SpanKind::kTask);
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(profile.task(tasks[0]).type, "MemSet");
  EXPECT_EQ(tasks[0].bytes, 128u);
  EXPECT_EQ(tasks[0].lane, stream);
}

// A copy that waits in its stream has the time in which the stream ran it, not that of the call.
TEST_F(AclProfile, ACopyHasTheTimeOfItsStream) {
  const aclprofConfig* config = Config(ACL_PROF_ACL_API | ACL_PROF_TASK_TIME);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  void* host = nullptr;
  ASSERT_EQ(aclrtMallocHost(&host, kBytes), ACL_SUCCESS);
  void* device = Allocate();
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  ASSERT_EQ(aclprofStart(config), ACL_SUCCESS);
  const auto pause = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  ASSERT_EQ(aclrtLaunchHostFunc(stream, pause, nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclrtMemcpyAsync(device, kBytes, host, kBytes, ACL_MEMCPY_HOST_TO_DEVICE, stream),
            ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  ASSERT_EQ(aclprofStop(config), ACL_SUCCESS);
  ASSERT_EQ(aclrtFreeHost(host), ACL_SUCCESS);
  const RankProfile profile = Read();
  const std::vector<Span> copies = Of(profile, SpanKind::kCopy);
  const std::vector<Span> tasks = Of(profile, SpanKind::kTask);
  ASSERT_EQ(copies.size(), 1u);
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(profile.task(tasks[0]).name, "aclrtLaunchHostFunc");
  EXPECT_GE(tasks[0].end_ns - tasks[0].begin_ns, 20'000'000);
  EXPECT_GE(copies[0].begin_ns, tasks[0].end_ns);
  EXPECT_EQ(copies[0].lane, tasks[0].lane);
}

TEST_F(AclProfile, WithoutDataTypesTheFileHasNoSpans) {
  const aclprofConfig* config = Config(0);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  ASSERT_EQ(aclprofStart(config), ACL_SUCCESS);
  Copy();
  ASSERT_EQ(aclprofStop(config), ACL_SUCCESS);
  const RankProfile profile = Read();
  EXPECT_TRUE(profile.ended);
  EXPECT_TRUE(profile.spans.empty());
}

TEST_F(AclProfile, BeginsWhenTheDevicesStart) {
  UseDevices(3);
  const aclprofConfig* config = Config(ACL_PROF_ACL_API, {0, 2});
  ASSERT_EQ(aclprofStart(config), ACL_SUCCESS);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/" + ProfileFileName(0)));
  for (int32_t device = 0; device < 3; ++device) {
    ASSERT_EQ(aclrtSetDevice(device), ACL_SUCCESS);
    for (int32_t i = 0; i <= device; ++i) AllocateAndFree();
  }
  ASSERT_EQ(aclprofStop(config), ACL_SUCCESS);
  EXPECT_EQ(CallsOf(Read(0)).size(), 2u);
  EXPECT_EQ(CallsOf(Read(2)).size(), 6u);
  EXPECT_EQ(Read(2).owner.rank, 2);
  EXPECT_EQ(Read(2).owner.world_size, 3);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/" + ProfileFileName(1)));
}

TEST_F(AclProfile, ASecondStartHasAFolderBelow) {
  const aclprofConfig* config = Config(ACL_PROF_ACL_API);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  for (int calls = 1; calls <= 3; ++calls) {
    ASSERT_EQ(aclprofStart(config), ACL_SUCCESS);
    for (int i = 0; i < calls; ++i) AllocateAndFree();
    ASSERT_EQ(aclprofStop(config), ACL_SUCCESS);
  }
  EXPECT_EQ(CallsOf(Read()).size(), 2u);
  EXPECT_EQ(CallsOf(Read(0, "/start_2")).size(), 4u);
  EXPECT_EQ(CallsOf(Read(0, "/start_3")).size(), 6u);
}

TEST_F(AclProfile, RefusesADeviceOfAnotherProcess) {
  const aclprofConfig* config = Config(ACL_PROF_ACL_API, {0, 1});
  EXPECT_EQ(aclprofStart(config), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_THAT(aclGetRecentErrMsg(), testing::HasSubstr("device 1"));
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclprofStart(config), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_THAT(aclGetRecentErrMsg(), testing::HasSubstr("device 1"));
  EXPECT_EQ(aclprofStop(config), ACL_ERROR_PROF_NOT_RUN);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/" + ProfileFileName(0)));
}

TEST_F(AclProfile, FinalizeEndsWhatRuns) {
  const aclprofConfig* config = Config(ACL_PROF_ACL_API);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  ASSERT_EQ(aclprofStart(config), ACL_SUCCESS);
  AllocateAndFree();
  ASSERT_EQ(aclprofFinalize(), ACL_SUCCESS);
  EXPECT_TRUE(Read().ended);
  EXPECT_EQ(CallsOf(Read()).size(), 2u);

  ASSERT_EQ(aclprofInit(folder_.c_str(), folder_.size()), ACL_SUCCESS);
  ASSERT_EQ(aclprofStart(config), ACL_SUCCESS);
  AllocateAndFree();
  AllocateAndFree();
  ASSERT_EQ(aclFinalize(), ACL_SUCCESS);
  EXPECT_TRUE(Read().ended);
  EXPECT_EQ(CallsOf(Read()).size(), 4u);
  EXPECT_EQ(aclprofStop(config), ACL_SUCCESS);
}

// Threads and streams go on while the profile starts and stops: every file can be read.
TEST_F(AclProfile, StartsAndStopsBesideCalls) {
  const aclprofConfig* config = Config(ACL_PROF_ACL_API | ACL_PROF_TASK_TIME);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  std::atomic<bool> stopping{false};
  std::thread caller([&stopping] {
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    while (!stopping) Copy();
  });
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(aclprofStart(config), ACL_SUCCESS);
    AllocateAndFree();
    ASSERT_EQ(aclprofStop(config), ACL_SUCCESS);
  }
  stopping = true;
  caller.join();
  for (int i = 1; i <= 20; ++i) {
    const RankProfile profile = Read(0, i == 1 ? "" : "/start_" + std::to_string(i));
    EXPECT_TRUE(profile.ended);
    EXPECT_THAT(CallsOf(profile), testing::IsSupersetOf({"aclrtFree", "aclrtMalloc"}));
    for (const Span& span : profile.spans) {
      EXPECT_GE(span.begin_ns, profile.owner.start_monotonic_ns);
    }
  }
}

// A stamp with this message.
void* StampOf(const std::string& message) {
  void* const stamp = aclprofCreateStamp();
  EXPECT_EQ(
      aclprofSetStampTraceMessage(stamp, message.c_str(), static_cast<uint32_t>(message.size())),
      ACL_SUCCESS);
  return stamp;
}

TEST_F(AclProfile, MarksAndRangesOfTheProgramAreInIt) {
  const aclprofConfig* config = Config(ACL_PROF_MSPROFTX);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  ASSERT_EQ(aclprofStart(config), ACL_SUCCESS);
  void* const load = StampOf("load");
  void* const outer = StampOf("outer");
  void* const inner = StampOf("inner");
  void* const other = StampOf("other");
  uint32_t range = 0;
  aclrtStream stream = nullptr;
  int32_t stream_id = 0;
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamGetId(stream, &stream_id), ACL_SUCCESS);
  ASSERT_EQ(aclprofMark(load), ACL_SUCCESS);
  ASSERT_EQ(aclprofPush(outer), ACL_SUCCESS);
  ASSERT_EQ(aclprofRangeStart(other, &range), ACL_SUCCESS);
  ASSERT_EQ(aclprofPush(inner), ACL_SUCCESS);
  ASSERT_EQ(aclprofPop(), ACL_SUCCESS);
  ASSERT_EQ(aclprofRangeStop(range), ACL_SUCCESS);
  ASSERT_EQ(aclprofPop(), ACL_SUCCESS);
  ASSERT_EQ(aclprofMarkEx("in order", 8, stream), ACL_SUCCESS);
  aclprofStepInfo* const step = aclprofCreateStepInfo();
  ASSERT_EQ(aclprofGetStepTimestamp(step, ACL_STEP_START, stream), ACL_SUCCESS);
  ASSERT_EQ(aclprofGetStepTimestamp(step, ACL_STEP_END, stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  ASSERT_EQ(aclprofStop(config), ACL_SUCCESS);
  ASSERT_EQ(aclprofMark(load), ACL_SUCCESS);  // nothing is profiled any more
  const RankProfile profile = Read();
  std::map<std::string, Span> spans;
  for (const Span& span : Of(profile, SpanKind::kTask)) {
    EXPECT_TRUE(spans.emplace(profile.task(span).name, span).second);
  }
  ASSERT_EQ(spans.size(), 7u);
  EXPECT_EQ(profile.task(spans["load"]).type, "Mark");
  EXPECT_EQ(profile.task(spans["other"]).type, "Range");
  EXPECT_LE(spans["outer"].begin_ns, spans["other"].begin_ns);
  EXPECT_LE(spans["other"].begin_ns, spans["inner"].begin_ns);
  EXPECT_LE(spans["inner"].end_ns, spans["other"].end_ns);
  EXPECT_LE(spans["other"].end_ns, spans["outer"].end_ns);
  EXPECT_EQ(spans["outer"].lane, kHostLane);
  EXPECT_EQ(spans["in order"].lane, stream_id);
  EXPECT_LE(spans["in order"].end_ns, spans["step 1 start"].begin_ns);
  EXPECT_LE(spans["step 1 start"].end_ns, spans["step 1 end"].begin_ns);
  for (void* stamp : {load, outer, inner, other}) aclprofDestroyStamp(stamp);
  EXPECT_EQ(aclprofMark(load), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclprofPop(), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclprofRangeStop(range), ACL_ERROR_INVALID_PARAM);
  aclprofDestroyStepInfo(step);
  EXPECT_EQ(aclprofGetStepTimestamp(step, ACL_STEP_END, stream), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclprofMarkEx(nullptr, 1, stream), ACL_ERROR_INVALID_PARAM);
  const std::string long_message(128, 'x');
  EXPECT_EQ(aclprofMarkEx(long_message.c_str(), long_message.size(), stream),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclprofSetConfig(ACL_PROF_SYS_HARDWARE_MEM_FREQ, "15", 2), ACL_SUCCESS);
  EXPECT_EQ(aclprofSetConfig(ACL_PROF_ARGS_MIN, "15", 2), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclprofSetConfig(ACL_PROF_SYS_HARDWARE_MEM_FREQ, "", 0), ACL_ERROR_INVALID_PARAM);
}

TEST_F(AclProfile, TextsHaveNumbersAndRangesHaveTensors) {
  const uint64_t name = aclprofStr2Id("layer/add");
  EXPECT_NE(name, 0u);
  EXPECT_EQ(aclprofStr2Id("layer/add"), name);
  EXPECT_NE(aclprofStr2Id("Add"), name);
  EXPECT_EQ(aclprofStr2Id(""), 0u);
  EXPECT_EQ(aclprofStr2Id(nullptr), 0u);
  aclprofTensorInfo info = {};
  info.opNameId = name;
  info.opTypeId = aclprofStr2Id("Add");
  aclprofEventAttributes attributes = {};
  attributes.version = ACL_PROF_EVENT_ATTR_VERSION;
  attributes.size = sizeof attributes;
  attributes.message.tensorInfo = &info;
  EXPECT_EQ(aclprofRangePop(), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclprofRangePushEx(&attributes), ACL_SUCCESS);
  EXPECT_EQ(aclprofRangePop(), ACL_SUCCESS);
  EXPECT_EQ(aclprofRangePop(), ACL_ERROR_INVALID_PARAM);
  info.opNameId = name + 1000;
  EXPECT_EQ(aclprofRangePushEx(&attributes), ACL_ERROR_INVALID_PARAM);
  info.opNameId = name;
  attributes.version = 9;
  EXPECT_EQ(aclprofRangePushEx(&attributes), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclprofRangePushEx(nullptr), ACL_ERROR_INVALID_PARAM);
}

}  // namespace
}  // namespace npumesh
