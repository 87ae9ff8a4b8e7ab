#include "graph/static_kernel/store/kernel_store.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <map>

#include "graph/digest/sha256.h"
#include "graph/static_kernel/store/kernel_lock.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/json.h"
#include "tests/unit/base/flaky_file_system.h"
#include "tests/unit/static_kernel/store_fixture.h"

namespace npumesh {
namespace {

using npumesh::testing::FakeCompiler;
using npumesh::testing::InProcess;
using npumesh::testing::Kernel;
using npumesh::testing::NamesIn;
using npumesh::testing::PlanOf;
using npumesh::testing::SymbolsOf;
using npumesh::testing::TextsOf;
using npumesh::testing::Variable;
using npumesh::testing::Write;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr std::chrono::hours kAnyAge = std::chrono::hours::max();

TEST(Sha256, IsThatOfTheStandard) {
  EXPECT_EQ(Sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const TemporaryFolder folder;
  Write(folder.Path("abc"), "abc");
  EXPECT_EQ(*Sha256OfFile(folder.Path("abc")), Sha256("abc"));
  EXPECT_EQ(Sha256OfFile(folder.Path("none")).status().code(), Code::kNotFound);
  EXPECT_EQ(Sha256OfFile(folder.path()).status().code(), Code::kIo);
}

TEST(KernelStoreRoot, IsTheFirstThatIsSet) {
  std::map<std::string, std::string> variables = {
      {"NPUMESH_KERNEL_STORE", "/a/b/"}, {"XDG_CACHE_HOME", "/cache"}, {"HOME", "/home/u"}};
  const auto get = [&variables](const char* name) -> const char* {
    const auto it = variables.find(name);
    return it == variables.end() ? nullptr : it->second.c_str();
  };
  EXPECT_EQ(*KernelStoreRoot(get), "/a/b");
  variables["NPUMESH_KERNEL_STORE"] = "here";
  EXPECT_EQ(*KernelStoreRoot(get), std::filesystem::current_path().string() + "/here");
  variables["NPUMESH_KERNEL_STORE"] = "";
  EXPECT_EQ(*KernelStoreRoot(get), "/cache/npumesh/kernels");
  variables["XDG_CACHE_HOME"] = "relative";
  EXPECT_EQ(*KernelStoreRoot(get), "/home/u/.cache/npumesh/kernels");
  variables.clear();
  const Status nowhere = KernelStoreRoot(get).status();
  EXPECT_EQ(nowhere.code(), Code::kNotFound);
  EXPECT_EQ(nowhere.message(),
            "no place for static kernels: neither NPUMESH_KERNEL_STORE, XDG_CACHE_HOME nor HOME "
            "names one; set NPUMESH_KERNEL_STORE");
}

class KernelStoreTest : public ::testing::Test {
 protected:
  KernelStore Open(FileSystem& fs = RealFileSystem()) const {
    auto store = KernelStore::Open(root_, fs);
    EXPECT_TRUE(store.ok()) << store.status().message();
    return *std::move(store);
  }
  BuildOutcome Build(const BuildPlan& plan) const {
    auto outcome = Open().Build(plan, SystemCompiler::Find);
    EXPECT_TRUE(outcome.ok()) << outcome.status().message();
    return outcome.ok() ? *std::move(outcome) : BuildOutcome();
  }
  std::string InStore(const std::string& name) const { return root_ + "/" + name; }
  std::vector<std::string> Names(const std::string& name) const { return NamesIn(InStore(name)); }
  void ExpectClean(const std::string& when = "") const {
    EXPECT_THAT(TextsOf(Open().Verify()), IsEmpty()) << when;
  }
  void ExpectNothingUnfinished(const std::string& when = "") const {
    EXPECT_THAT(Names("locks"), IsEmpty()) << when;
    EXPECT_THAT(Names("work"), IsEmpty()) << when;
  }
  static void Unuse(const std::string& path, int hours) {
    const timespec old{time(nullptr) - hours * 3600, 0};
    const timespec times[] = {old, old};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }

  TemporaryFolder folder_;
  FakeCompiler compiler_;
  std::string root_ = folder_.Path("cache/kernels");
};

TEST_F(KernelStoreTest, IsMadeForThisUserAlone) {
  const KernelStore store = Open();
  EXPECT_EQ(store.root(), root_);
  EXPECT_TRUE(store.writable());
  EXPECT_THAT(Names(""),
              ElementsAre("failures", "locks", "manifests", "objects", "sources", "work"));
  for (const char* name : {"/..", "", "/objects", "/work"}) {
    struct stat info;
    ASSERT_EQ(stat((root_ + name).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u) << name;
  }
  EXPECT_TRUE(KernelStore::Open(root_ + "//").ok());
}

TEST_F(KernelStoreTest, BuildsInOneRunWhatIsMissing) {
  const BuildOutcome first = Build(PlanOf(3));
  EXPECT_EQ(first.compiled, 3);
  EXPECT_EQ(first.found + first.awaited, 0);
  EXPECT_THAT(first.failures, IsEmpty());
  EXPECT_GT(first.compile_seconds, 0);
  EXPECT_EQ(compiler_.runs(), 1);
  EXPECT_EQ(compiler_.compiled(), SymbolsOf(3));
  EXPECT_EQ(Names("objects").size(), 1u);
  const BuildOutcome second = Build(PlanOf(5));
  EXPECT_EQ(second.found, 3);
  EXPECT_EQ(second.compiled, 2);
  ASSERT_EQ(second.objects.size(), 5u);
  for (size_t k = 0; k < 5; ++k) {
    EXPECT_EQ(second.objects[k].symbol, fmt::format("k{}", k));
    EXPECT_EQ(*Sha256OfFile(second.objects[k].object), second.objects[k].sha256);
  }
  EXPECT_EQ(second.objects[0], first.objects[0]);
  EXPECT_NE(second.objects[4].sha256, first.objects[0].sha256);
  EXPECT_EQ(compiler_.compiled(), SymbolsOf(5));
  EXPECT_EQ(Open().List(), second.objects);
  EXPECT_EQ(Open().Find(Kernel(4).key), second.objects[4]);
  EXPECT_EQ(Open().Find(Kernel(5).key), std::nullopt);
  EXPECT_EQ(Open().Find("../../secret"), std::nullopt);
  ExpectNothingUnfinished();
  ExpectClean();
}

TEST_F(KernelStoreTest, AsksForTheCompilerOnlyWhenItIsNeeded) {
  Build(PlanOf(1));
  int asked = 0;
  const auto none = [&asked]() -> Result<SystemCompiler> {
    ++asked;
    return Error(Code::kNotFound, "no C++ compiler here");
  };
  EXPECT_EQ(Open().Build(PlanOf(1), none)->found, 1);
  EXPECT_EQ(asked, 0);
  const auto outcome = Open().Build(PlanOf(3), none);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(outcome->objects.size(), 1u);
  ASSERT_EQ(outcome->failures.size(), 2u);
  EXPECT_EQ(outcome->failures[1].key, Kernel(2).key);
  EXPECT_EQ(outcome->failures[1].title, "Add float[2]");
  EXPECT_EQ(outcome->failures[1].why, "no C++ compiler here");
  EXPECT_THAT(Names("failures"), IsEmpty()) << "it is no fault of the kernel";
  EXPECT_EQ(Open().Build(PlanOf(2), nullptr)->failures.size(), 1u);
  ExpectNothingUnfinished();
  EXPECT_EQ(Open().Build({}, nullptr)->objects.size(), 0u);
}

TEST_F(KernelStoreTest, TheManifestSaysWhereAKernelComesFrom) {
  BuildPlan plan = PlanOf(1);
  plan.instructions = InstructionSet::kX86V2;
  const KernelObject kernel = Build(plan).objects.at(0);
  const std::string text = *ReadFile(InStore("manifests/" + kernel.key + ".json"));
  const auto manifest = nlohmann::json::parse(text);
  EXPECT_EQ(manifest["format"], 1);
  EXPECT_EQ(manifest["key"], kernel.key);
  EXPECT_EQ(manifest["symbol"], "k0");
  EXPECT_EQ(manifest["title"], "Add float[0]");
  EXPECT_EQ(manifest["object"], "objects/" + kernel.sha256 + ".so");
  EXPECT_EQ(manifest["sha256"], kernel.sha256);
  EXPECT_EQ(manifest["instruction_set"], "x86-64-v2");
  EXPECT_EQ(manifest["compiler"], "fake c++ 1.0");
  EXPECT_EQ(manifest["generator"], "test 1");
  EXPECT_THAT(manifest["created"].get<std::string>(), ::testing::MatchesRegex("20..-..-..T.*Z"));
  EXPECT_EQ(kernel.compiler, "fake c++ 1.0");
  EXPECT_EQ(*ReadFile(InStore("sources/" + kernel.key + ".cc")), plan.kernels[0].program);
  EXPECT_EQ(*ReadFile(InStore("sources/" + kernel.key + ".json")), plan.kernels[0].record);
  for (const char* name : {"manifests", "objects", "sources"}) {
    struct stat info;
    ASSERT_EQ(stat(InStore(std::string(name) + "/" + Names(name).at(0)).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u) << name;
  }
  // A store can be moved.
  std::filesystem::rename(root_, folder_.Path("moved"));
  EXPECT_EQ(KernelStore::Open(folder_.Path("moved"))->List().size(), 1u);
}

TEST_F(KernelStoreTest, RealKernelsCanBeCalled) {
  compiler_.Act(FakeCompiler::kIsReal);
  const BuildOutcome outcome = [this] {
    const Variable none("CXX", nullptr);
    return Build(PlanOf(70));
  }();
  ASSERT_EQ(outcome.objects.size(), 70u);
  void* library = dlopen(outcome.objects[0].object.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  for (const int k : {0, 1, 69}) {
    void* kernel = dlsym(library, fmt::format("k{}", k).c_str());
    ASSERT_NE(kernel, nullptr) << dlerror();
    EXPECT_EQ(reinterpret_cast<int (*)()>(kernel)(), 100 + k);
  }
  dlclose(library);
}

TEST_F(KernelStoreTest, ABadKernelFailsAlone) {
  compiler_.Act(FakeCompiler::kRefuses);
  BuildPlan plan = PlanOf(4);
  plan.kernels[2] = Kernel(2, "// BROKEN");
  const BuildOutcome outcome = Build(plan);
  EXPECT_EQ(outcome.compiled, 3);
  EXPECT_EQ(outcome.objects.size(), 3u);
  ASSERT_EQ(outcome.failures.size(), 1u);
  EXPECT_EQ(outcome.failures[0].key, plan.kernels[2].key);
  EXPECT_EQ(outcome.failures[0].why,
            compiler_.Path("compiler") + " ended with exit code 1: k.cpp:3: error: broken kernel");
  EXPECT_EQ(compiler_.runs(), 5) << "together, and each alone";
  const std::string note = InStore("failures/" + plan.kernels[2].key + ".json");
  const auto failure = nlohmann::json::parse(*ReadFile(note));
  EXPECT_EQ(failure["key"], plan.kernels[2].key);
  EXPECT_EQ(failure["why"], outcome.failures[0].why);
  EXPECT_EQ(failure["builder"], LockOwner::Me().ToString());
  EXPECT_EQ(failure["boot"], LockOwner::Me().boot);
  EXPECT_TRUE(failure.contains("time"));
  ExpectNothingUnfinished();
  ExpectClean();
  // Asked again, it tries again, and a success removes the failure.
  EXPECT_EQ(Build(plan).failures.size(), 1u);
  EXPECT_EQ(compiler_.runs(), 6);
  compiler_.Act(FakeCompiler::kWorks);
  EXPECT_THAT(Build(plan).failures, IsEmpty());
  EXPECT_THAT(Names("failures"), IsEmpty());
}

TEST_F(KernelStoreTest, EveryFaultOfTheCompilerIsAFailure) {
  const std::pair<const char*, const char*> faults[] = {
      {"kill -SEGV $$", "was ended by signal 11"},
      {"echo garbage > $out", "is no ELF file"},
      {":", "wrote no shared object"},
      {": > $out", "is empty"},
      {"exit 7", "exit code 7"},
  };
  for (const auto& [acts, why] : faults) {
    compiler_.Act(acts);
    const BuildOutcome outcome = Build(PlanOf(2));
    ASSERT_EQ(outcome.failures.size(), 2u) << acts;
    EXPECT_THAT(outcome.failures[0].why, HasSubstr(why));
    EXPECT_THAT(Names("manifests"), IsEmpty());
    EXPECT_THAT(Names("objects"), IsEmpty());
    ExpectNothingUnfinished(acts);
  }
}

// The limit of one run times all kernels would be hours.
TEST_F(KernelStoreTest, ACompilerThatNeverEndsIsNotWaitedForByEachKernel) {
  compiler_.Act("sleep 1000");
  BuildPlan plan = PlanOf(6);
  plan.time_limit = std::chrono::seconds(1);
  const BuildOutcome outcome = Build(plan);
  EXPECT_EQ(compiler_.runs(), 3) << "together, and two alone";
  ASSERT_EQ(outcome.failures.size(), 6u);
  EXPECT_THAT(outcome.failures[1].why, HasSubstr("did not end within 1 s and was killed"));
  EXPECT_EQ(outcome.failures[5].why,
            "not tried, because the compiler did not end in time for 2 other kernels, 1 s each");
  ExpectNothingUnfinished();
}

TEST_F(KernelStoreTest, AKeyThatIsNoneIsRefused) {
  BuildPlan plan = PlanOf(1);
  plan.kernels[0].key = "../../etc/passwd";
  const Status status = Open().Build(plan, SystemCompiler::Find).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.message(), "\"../../etc/passwd\" is no key of a static kernel");
}

TEST_F(KernelStoreTest, LocksOfTheDeadAreNoHindrance) {
  Open();
  LockOwner rebooted = LockOwner::Me();
  rebooted.boot = "another-boot";
  Write(InStore("locks/" + Kernel(0).key), rebooted.ToString());
  LockOwner reused = LockOwner::Me();
  reused.started += 1;
  Write(InStore("locks/" + Kernel(1).key), reused.ToString());
  std::filesystem::create_directory(
      InStore(fmt::format("work/{}.another-boot.1.1.1.7-0", rebooted.host)));
  EXPECT_EQ(Build(PlanOf(3)).compiled, 3);
  EXPECT_EQ(compiler_.runs(), 1);
  ExpectNothingUnfinished();
}

TEST_F(KernelStoreTest, ABuilderOfAnotherHostIsWaitedForAndThenPassedOver) {
  Open();
  const std::string lock = InStore("locks/" + Kernel(1).key);
  Write(lock, "elsewhere boot 1 1 1");
  BuildPlan plan = PlanOf(2);
  plan.wait_limit = std::chrono::seconds(1);
  const auto begin = std::chrono::steady_clock::now();
  const BuildOutcome outcome = Build(plan);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
  EXPECT_EQ(outcome.compiled, 2);
  EXPECT_EQ(compiler_.runs(), 2);
  ExpectNothingUnfinished();
}

TEST_F(KernelStoreTest, DamageCountsAsAbsentAndIsBuiltAgain) {
  const KernelObject kernel = Build(PlanOf(1)).objects.at(0);
  const std::string manifest = InStore("manifests/" + kernel.key + ".json");
  const std::string good = *ReadFile(manifest);
  const std::string bytes = *ReadFile(kernel.object);
  const std::string no_format = "is no manifest of format 1";
  std::vector<std::pair<std::string, std::string>> texts = {
      {"", "is no JSON object"},
      {"[]", "is no JSON object"},
      {"{}", no_format},
      {good.substr(0, good.size() / 2), "is no JSON object"}};
  const auto with = [&](const char* name, const nlohmann::json& value, const char* what) {
    auto document = nlohmann::json::parse(good);
    document[name] = value;
    texts.emplace_back(document.dump(), what);
  };
  with("format", 2, no_format.c_str());
  with("key", Kernel(1).key, "has the key of another kernel");
  with("sha256", "../x", "has no SHA-256 of its object");
  with("sha256", Kernel(1).key, "names another object than its SHA-256");
  with("object", "/etc/passwd", "names another object than its SHA-256");
  with("symbol", "", "names no symbol");
  with("symbol", 7, "names no symbol");
  for (const auto& [text, what] : texts) {
    Write(manifest, text);
    EXPECT_EQ(Open().Find(kernel.key), std::nullopt) << text;
    EXPECT_THAT(TextsOf(Open().Verify()), ElementsAre(manifest + ": " + what));
    EXPECT_THAT(Open().List(), IsEmpty());
  }
  EXPECT_EQ(Build(PlanOf(1)).compiled, 1);
  ExpectClean("built again");

  KernelStore store = Open();
  EXPECT_TRUE(store.Find(kernel.key));
  Write(kernel.object, bytes + "x");
  EXPECT_EQ(store.Find(kernel.key), std::nullopt) << "changed after it was found good";
  const std::string damaged = kernel.object + ": is damaged: its SHA-256 is " + Sha256(bytes + "x");
  EXPECT_THAT(TextsOf(store.Verify()), ElementsAre(damaged));
  EXPECT_EQ(Build(PlanOf(1)).compiled, 1);
  ExpectClean("built again");
  unlink(kernel.object.c_str());
  EXPECT_THAT(TextsOf(store.Verify()), ElementsAre(kernel.object + ": is missing"));
  EXPECT_EQ(Build(PlanOf(1)).compiled, 1);
  Write(InStore("sources/" + kernel.key + ".cc"), "other");
  EXPECT_THAT(TextsOf(store.Verify()), ElementsAre(InStore("sources/" + kernel.key) +
                                                   ".cc: is not what the kernel was made from"));
  EXPECT_TRUE(store.Find(kernel.key)) << "people alone read the source";
}

// Every manifest cut short at each byte is damage, never a kernel.
TEST_F(KernelStoreTest, AManifestThatIsCutShortIsDamage) {
  const KernelObject kernel = Build(PlanOf(1)).objects.at(0);
  const std::string path = InStore("manifests/" + kernel.key + ".json");
  const std::string good = *ReadFile(path);
  KernelStore store = Open();
  for (size_t length = 0; length + 2 < good.size(); ++length) {
    Write(path, good.substr(0, length));
    EXPECT_EQ(store.Find(kernel.key), std::nullopt) << length;
  }
}

TEST_F(KernelStoreTest, RootsThatOthersDecideAreRefused) {
  const auto message = [this] {
    const Status status = KernelStore::Open(root_).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    return std::string(status.message());
  };
  Open();
  chmod(root_.c_str(), 0770);
  EXPECT_EQ(message(), "refusing the kernel store " + root_ +
                           ": it may be written by others (mode 770), and its objects would be "
                           "run; chmod go-w, or set NPUMESH_KERNEL_STORE to another folder");
  chmod(root_.c_str(), 0700);
  chmod(InStore("objects").c_str(), 0702);
  EXPECT_THAT(message(), HasSubstr(root_ + "/objects: it may be written by others (mode 702)"));
  chmod(InStore("objects").c_str(), 0755);
  EXPECT_TRUE(KernelStore::Open(root_).ok()) << "others may read";
  std::filesystem::rename(root_, folder_.Path("real"));
  std::filesystem::create_symlink(folder_.Path("real"), root_);
  EXPECT_EQ(message(), "refusing the kernel store " + root_ +
                           ": it is a symbolic link; name its target instead");
  std::filesystem::remove(root_);
  Write(root_, "");
  EXPECT_THAT(message(), HasSubstr("it is no folder; set NPUMESH_KERNEL_STORE"));
  EXPECT_EQ(KernelStore::Open("").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(KernelStore::Open(std::string("/tmp/a\0b", 8)).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(KernelStore::Open(root_ + "/below/a/file").status().code(), Code::kIo);
}

TEST_F(KernelStoreTest, ARootOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give a folder away";
  Open();
  ASSERT_EQ(chown(root_.c_str(), 65534, 65534), 0);
  const Status status = KernelStore::Open(root_).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("it belongs to user 65534, not to 0, and its objects would be run"));
}

// Runs `body` as a user for whom permissions count; 0: all is well.
int AsOrdinaryUser(const std::string& home, const std::function<int()>& body) {
  return InProcess([&] {
    if (geteuid() == 0) {
      if (chown(home.c_str(), 65534, 65534) != 0) return 90;
      if (setresuid(65534, 65534, 65534) != 0) return 91;
    }
    return body();
  });
}

TEST_F(KernelStoreTest, OneThatTakesNoFilesIsRead) {
  EXPECT_EQ(AsOrdinaryUser(folder_.path(),
                           [this] {
                             if (Open().Build(PlanOf(1), SystemCompiler::Find)->compiled != 1) {
                               return 1;
                             }
                             for (const char* name : {"manifests", "objects", "sources", "locks",
                                                      "failures", "work", "."}) {
                               chmod(InStore(name).c_str(), 0500);
                             }
                             KernelStore store = Open();
                             if (store.writable()) return 2;
                             if (store.Build(PlanOf(1), nullptr)->found != 1) return 3;
                             const Status more =
                                 store.Build(PlanOf(2), SystemCompiler::Find).status();
                             if (more.code() != Code::kIo) return 4;
                             if (more.message() !=
                                 "1 of 2 static kernels are missing and the kernel store " + root_ +
                                     " takes no files; make it writable or set "
                                     "NPUMESH_KERNEL_STORE") {
                               return 5;
                             }
                             if (!store.Verify().empty()) return 6;
                             if (!store.Collect(std::chrono::hours(0)).empty()) return 7;
                             if (store.Remove({Kernel(0).key}).code() != Code::kIo) return 8;
                             if (store.Install("/x", {}, {}).code() != Code::kIo) return 9;
                             return 0;
                           }),
            0);
}

TEST_F(KernelStoreTest, OneThatCannotBeMadeIsAnError) {
  chmod(folder_.path().c_str(), 0500);
  EXPECT_EQ(AsOrdinaryUser(folder_.path(),
                           [this] {
                             const Status status = KernelStore::Open(root_).status();
                             return status.code() == Code::kIo &&
                                            status.message().find("Permission denied") !=
                                                std::string_view::npos
                                        ? 0
                                        : 1;
                           }),
            0);
}

// A folder that is closed while a builder works.
TEST_F(KernelStoreTest, FoldersThatRefuseAreAnErrorOfTheWhole) {
  for (const char* name : {"locks", "work", "objects", "manifests", "sources"}) {
    const TemporaryFolder home;
    root_ = home.Path("kernels");
    EXPECT_EQ(AsOrdinaryUser(
                  home.path(),
                  [&] {
                    KernelStore store = Open();
                    chmod(InStore(name).c_str(), 0500);
                    const Status status = store.Build(PlanOf(2), SystemCompiler::Find).status();
                    chmod(InStore(name).c_str(), 0700);
                    if (status.code() != Code::kIo) return 1;
                    if (!NamesIn(InStore("locks")).empty()) return 2;
                    if (!store.Verify().empty()) return 3;
                    return store.Build(PlanOf(2), SystemCompiler::Find)->objects.size() == 2 ? 0
                                                                                             : 4;
                  }),
              0)
        << name;
  }
}

TEST_F(KernelStoreTest, AFullDiskLeavesACleanStore) {
  int failures = 0;
  for (int at = 1;; ++at) {
    SCOPED_TRACE(at);
    const TemporaryFolder home;
    root_ = home.Path("kernels");
    Open();
    FlakyFileSystem fs(at);
    auto store = KernelStore::Open(root_, fs);
    ASSERT_TRUE(store.ok()) << "there is something to read";
    const auto outcome = store->Build(PlanOf(2), SystemCompiler::Find);
    const bool failed = fs.failed();
    if (!outcome.ok()) {
      ++failures;
      EXPECT_EQ(outcome.status().code(), Code::kIo);
    }
    ExpectNothingUnfinished();
    ExpectClean();
    EXPECT_EQ(Build(PlanOf(2)).objects.size(), 2u);
    ExpectClean();
    if (!failed) break;
  }
  EXPECT_GT(failures, 20);
}

TEST_F(KernelStoreTest, ForeignObjectsAreInstalledWhole) {
  const BuildPlan plan = PlanOf(2);
  const BuildOutcome built = Build(plan);
  root_ = folder_.Path("other");
  KernelStore other = Open();
  const Status status = other.Install(built.objects[0].object, built.objects, {plan.kernels[1]});
  ASSERT_TRUE(status.ok()) << status.message();
  const auto kernels = other.List();
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].object, InStore("objects/" + built.objects[0].sha256 + ".so"));
  EXPECT_EQ(kernels[0].compiler, "fake c++ 1.0");
  EXPECT_EQ(kernels[0].created, built.objects[0].created);
  EXPECT_THAT(Names("sources"), ElementsAre(Kernel(1).key + ".cc", Kernel(1).key + ".json"));
  EXPECT_EQ(Build(plan).found, 2);
  ExpectClean();
  ExpectNothingUnfinished();
}

TEST_F(KernelStoreTest, WhatIsDamagedIsNotInstalled) {
  std::vector<KernelObject> kernels = Build(PlanOf(1)).objects;
  KernelStore store = Open();
  Write(folder_.Path("bad.so"), "bad");
  const Status bad = store.Install(folder_.Path("bad.so"), kernels, {});
  EXPECT_EQ(bad.code(), Code::kCorrupt);
  EXPECT_EQ(bad.message(), folder_.Path("bad.so") + " is damaged: Add float[0] (" + kernels[0].key +
                               ") needs SHA-256 " + kernels[0].sha256 + ", and it has " +
                               Sha256("bad"));
  EXPECT_EQ(store.Install(folder_.Path("none.so"), kernels, {}).code(), Code::kNotFound);
  kernels[0].key = "x";
  EXPECT_EQ(store.Install(kernels[0].object, kernels, {}).code(), Code::kInvalidArgument);
  EXPECT_EQ(Names("objects").size(), 1u);
  ExpectClean();
}

TEST_F(KernelStoreTest, RemovesKernelsAndTheObjectsThatNoneNeeds) {
  Build(PlanOf(2));
  Build(PlanOf(3));
  KernelStore store = Open();
  ASSERT_TRUE(store.Remove({Kernel(0).key, Kernel(7).key, "no key"}).ok());
  EXPECT_EQ(Names("objects").size(), 2u) << "kernel 1 needs it";
  EXPECT_EQ(Names("sources").size(), 4u);
  ASSERT_TRUE(store.Remove({Kernel(1).key}).ok());
  EXPECT_EQ(Names("objects").size(), 1u);
  EXPECT_EQ(store.Find(Kernel(1).key), std::nullopt);
  EXPECT_TRUE(store.Find(Kernel(2).key));
  ExpectClean();
  EXPECT_EQ(Build(PlanOf(3)).compiled, 2);
}

TEST_F(KernelStoreTest, CollectsWhatIsOfNoUse) {
  Build(PlanOf(3));
  const LockOwner me = LockOwner::Me();
  LockOwner dead = me;
  dead.started += 1;
  const auto dotted = [](LockOwner owner) {
    std::string name = owner.ToString();
    std::replace(name.begin(), name.end(), ' ', '.');
    return name + ".7-0";
  };
  Write(InStore("objects/" + Kernel(8).key + ".so"), "orphan");
  Write(InStore("sources/" + Kernel(8).key + ".cc"), "orphan");
  Write(InStore("manifests/" + Kernel(9).key + ".json"), "damaged");
  Write(InStore("failures/" + Kernel(9).key + ".json"), "{}");
  Write(InStore("locks/" + Kernel(9).key), dead.ToString());
  Write(InStore("locks/" + Kernel(8).key), me.ToString());
  Write(InStore("locks/.candidate"), dead.ToString());
  Write(InStore("locks/.mine"), me.ToString());
  std::filesystem::create_directory(InStore("work/" + dotted(dead)));
  std::filesystem::create_directory(InStore("work/" + dotted(me)));
  Write(InStore("work/" + dotted(dead) + "/k.cc"), "");
  EXPECT_THAT(Open().Collect(kAnyAge),
              ElementsAre(InStore("failures/" + Kernel(9).key + ".json"),
                          InStore("locks/.candidate"), InStore("locks/" + Kernel(9).key),
                          InStore("manifests/" + Kernel(9).key + ".json"),
                          InStore("work/" + dotted(dead))));
  EXPECT_THAT(Names("locks"), UnorderedElementsAre(".mine", Kernel(8).key));
  std::filesystem::remove(InStore("work/" + dotted(me)));
  EXPECT_THAT(Open().Collect(kAnyAge), ElementsAre(InStore("objects/" + Kernel(8).key + ".so"),
                                                   InStore("sources/" + Kernel(8).key + ".cc")))
      << "no builder is about to publish them";
  EXPECT_THAT(Open().Collect(kAnyAge), IsEmpty());
  EXPECT_EQ(Build(PlanOf(3)).found, 3);
}

TEST_F(KernelStoreTest, CollectsWhatWasNotUsed) {
  Build(PlanOf(1));
  Build(PlanOf(3));
  const auto manifest = [this](int k) { return InStore("manifests/" + Kernel(k).key + ".json"); };
  for (int k = 0; k < 3; ++k) Unuse(manifest(k), 50);
  EXPECT_THAT(Open().Collect(std::chrono::hours(51)), IsEmpty());
  EXPECT_TRUE(Open().Find(Kernel(1).key)) << "counts as used now";
  EXPECT_EQ(Open().Collect(std::chrono::hours(50)).size(), 7u) << "two kernels and one object";
  EXPECT_THAT(Names("manifests"), ElementsAre(Kernel(1).key + ".json"));
  ExpectClean();
  EXPECT_EQ(Open().Collect(std::chrono::hours(0)).size(), 4u);
  EXPECT_THAT(Names("objects"), IsEmpty());
}

}  // namespace
}  // namespace npumesh
