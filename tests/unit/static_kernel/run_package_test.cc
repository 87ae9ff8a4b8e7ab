#include "graph/static_kernel/record/run_package.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "graph/digest/sha256.h"
#include "graph/static_kernel/record/tar_archive.h"
#include "graph/static_kernel/store/kernel_store.h"
#include "graph/static_kernel/store/program_run.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/parse.h"
#include "runtime/base/text/strings.h"
#include "tests/unit/base/flaky_file_system.h"
#include "tests/unit/base/plain_user.h"
#include "tests/unit/base/temporary_folder.h"

namespace npumesh {
namespace {

namespace stdfs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using FilesByPath = std::map<std::string, std::string>;

void Write(const std::string& path, const std::string& content) {
  stdfs::create_directories(stdfs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

// Contents of all files below `folder`; folders have none.
FilesByPath FilesBelow(const std::string& folder) {
  FilesByPath files;
  if (!stdfs::exists(folder)) return files;
  for (const auto& entry : stdfs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    files[stdfs::relative(entry.path(), folder).string()] = *ReadFile(entry.path().string());
  }
  return files;
}

struct ShellRun {
  int exit_code = 0;  // 128 + signal of a run that was killed
  std::string out;
  std::string err;
};

// The one line of an error.
MATCHER_P2(FailsWith, exit_code, text, "") {
  return arg.exit_code == exit_code && arg.out.empty() && std::ranges::count(arg.err, '\n') == 1 &&
         arg.err.ends_with('\n') && arg.err.find(text) != std::string::npos;
}

std::ostream& operator<<(std::ostream& out, const ShellRun& run) {
  return out << "exit code " << run.exit_code << ", out \"" << run.out << "\", err \"" << run.err
             << "\"";
}

class RunPackageTest : public testing::Test {
 protected:
  RunPackageTest() {
    Publish("first", "machine code of two kernels", "RmsNorm float[128,768]");
    Publish("second", "machine code of two kernels", "Add `touch pwned` $(touch pwned) 'q'");
    Publish("third", std::string(1000, '\0') + "other code", "line\nbreak");
  }

  // A store as kernel_store.h says, with one more kernel.
  void Publish(const std::string& name, const std::string& code, const std::string& title) {
    const KernelObject kernel{.key = Sha256(name),
                              .symbol = name,
                              .title = title,
                              .object = Path("store/objects/" + Sha256(code) + ".so"),
                              .sha256 = Sha256(code)};
    Write(kernel.object, code);
    Write(Path("store/manifests/" + kernel.key + ".json"),
          "{\"object\": \"" + kernel.sha256 + "\", \"symbol\": \"" + name + "\"}\n");
    Write(Path("store/sources/" + kernel.key + ".cc"), "void " + name + "();\n");
    Write(Path("store/sources/" + kernel.key + ".json"), "[]\n");
    kernels_.push_back(kernel);
  }

  std::string Path(const std::string& name) const { return folder_.Path(name); }
  std::string package() const { return Path("static_kernel_20261122192002.run"); }
  std::string target() const { return Path("target"); }

  Status Pack(const PackageMachine& machine = MachineFor(InstructionSet::kBaseline)) {
    return WriteRunPackage(package(), Path("store"), kernels_, machine);
  }
  std::string PackageBytes() {
    EXPECT_TRUE(Pack().ok());
    return *ReadFile(package());
  }

  // In the child: /bin/sh runs `script`.
  [[noreturn]] void Exec(const std::string& script, std::vector<std::string> args) const {
    setpgid(0, 0);
    alarm(60);  // outlives exec
    if (chdir(folder_.path().c_str()) != 0) _exit(126);
    for (const auto& [fd, name] : {std::pair(1, "out"), std::pair(2, "err")}) {
      dup2(open(Path(name).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), fd);
    }
    args.insert(args.begin(), {"sh", script});
    std::vector<char*> argv;
    for (std::string& arg : args) argv.push_back(arg.data());
    argv.push_back(nullptr);
    execv("/bin/sh", argv.data());
    _exit(127);
  }
  ShellRun RunScript(const std::string& script, const std::vector<std::string>& args) const {
    const pid_t child = fork();
    if (child == 0) Exec(script, args);
    int state = 0;
    EXPECT_EQ(waitpid(child, &state, 0), child);
    return {.exit_code = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state),
            .out = *ReadFile(Path("out")),
            .err = *ReadFile(Path("err"))};
  }
  ShellRun Run(const std::vector<std::string>& args) const { return RunScript(package(), args); }
  ShellRun Install() const { return Run({"--install", "--target", target()}); }
  ShellRun Uninstall() const { return Run({"--uninstall", "--target", target()}); }

  // A package with other bytes is refused, whatever it is asked for, and touches nothing.
  void ExpectRefused(const std::string& bytes, const std::string& why) const {
    Write(Path("bad.run"), bytes);
    for (const char* action : {"--install", "--uninstall", "--verify", "--list"}) {
      std::vector<std::string> args = {action};
      if (std::string(action).ends_with("install")) args.insert(args.end(), {"--target", target()});
      EXPECT_THAT(RunScript(Path("bad.run"), args), FailsWith(3, why)) << action;
    }
    EXPECT_FALSE(stdfs::exists(target()));
  }

  const TemporaryFolder folder_;
  std::vector<KernelObject> kernels_;
};

// ---- the archive ----

TEST(TarArchive, IsReadByTar) {
  const TemporaryFolder folder;
  const FilesByPath files = {{"a", ""},
                             {"b/" + std::string(98, 'n'), std::string(512, 'x')},
                             {"c/d.so", std::string(513, '\0')}};
  Write(folder.Path("x.tar"), TarArchive(files));
  stdfs::create_directory(folder.Path("x"));
  const Result<ProgramEnd> end =
      RunProgram({"/bin/tar", "-C", folder.Path("x"), "-xf", folder.Path("x.tar")}, "",
                 std::chrono::seconds(60));
  ASSERT_TRUE(end.ok()) << end.status().ToString();
  ASSERT_EQ(end->code, 0) << end->said;
  EXPECT_EQ(FilesBelow(folder.Path("x")), files);
}

TEST(TarArchive, HasOneHeaderAndWholeBlocksForEachFile) {
  const std::string archive = TarArchive({{"a", "12345"}});
  EXPECT_EQ(archive.size(), 512u * 4);
  EXPECT_EQ(archive.substr(0, 2), std::string("a\0", 2));
  EXPECT_EQ(archive.substr(100, 8), std::string("0000600\0", 8));
  EXPECT_EQ(archive.substr(124, 12), std::string("00000000005\0", 12));
  EXPECT_EQ(archive.substr(136, 12), std::string("00000000000\0", 12));
  EXPECT_EQ(archive.substr(257, 8), std::string("ustar\0"
                                                "00",
                                                8));
  EXPECT_EQ(archive.substr(512, 6), std::string("12345\0", 6));
  EXPECT_EQ(TarArchive({}), std::string(1024, '\0'));
}

// ---- writing ----

TEST_F(RunPackageTest, IsAProgramThatIsTheSameEachTime) {
  const std::string first = PackageBytes();
  EXPECT_TRUE(first.starts_with("#!/bin/sh\n"));
  struct stat info;
  ASSERT_EQ(stat(package().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u & ~0550u, 0u);
  EXPECT_NE(info.st_mode & 0100u, 0u);
  std::reverse(kernels_.begin(), kernels_.end());
  kernels_.push_back(kernels_[0]);
  EXPECT_EQ(PackageBytes(), first);
}

TEST_F(RunPackageTest, WithoutKernelsThereIsNoPackage) {
  kernels_.clear();
  EXPECT_EQ(Pack().code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(Pack().message()), HasSubstr("no static kernels"));
}

TEST_F(RunPackageTest, OnlyKeysOfTheStoreGoIntoAScript) {
  const std::string key = kernels_[0].key;
  for (const std::string& bad :
       {std::string(), std::string("$(rm)"), key + "0", "G" + key.substr(1)}) {
    kernels_[0].key = bad;
    EXPECT_EQ(Pack().code(), Code::kInvalidArgument) << bad;
    EXPECT_THAT(std::string(Pack().message()), HasSubstr("64 hexadecimal digits"));
  }
  kernels_[0].key = key;
  kernels_[0].sha256 = "../" + key.substr(3);
  EXPECT_EQ(Pack().code(), Code::kInvalidArgument);
  EXPECT_FALSE(stdfs::exists(package()));
}

TEST_F(RunPackageTest, WhatTheStoreHasLostOrSpoiltIsSaid) {
  const std::string manifest = Path("store/manifests/" + kernels_[0].key + ".json");
  Write(manifest, "{}");
  EXPECT_EQ(Pack().code(), Code::kCorrupt);
  EXPECT_THAT(std::string(Pack().message()), AllOf(HasSubstr(package()), HasSubstr(manifest)));
  stdfs::remove(manifest);
  EXPECT_EQ(Pack().code(), Code::kNotFound);
  Write(kernels_[0].object, "other");
  EXPECT_EQ(Pack().code(), Code::kCorrupt);
  EXPECT_THAT(std::string(Pack().message()), HasSubstr(Sha256("other")));
  stdfs::remove(kernels_[0].object);
  EXPECT_EQ(Pack().code(), Code::kNotFound);
  EXPECT_FALSE(stdfs::exists(package()));
}

TEST_F(RunPackageTest, AFailingDiskLeavesNoPackage) {
  for (int fail_at = 1;; ++fail_at) {
    FlakyFileSystem fs(fail_at);
    const Status status = WriteRunPackage(package(), Path("store"), kernels_,
                                          MachineFor(InstructionSet::kBaseline), fs);
    if (!fs.failed()) break;
    EXPECT_EQ(status.code(), Code::kIo);
    if (!stdfs::exists(package())) continue;
    // Only the sync of the folder came after the rename.
    EXPECT_EQ(Run({"--verify"}).exit_code, 0);
    stdfs::remove(package());
  }
}

TEST_F(RunPackageTest, KernelsWithoutSourcesArePacked) {
  stdfs::remove_all(Path("store/sources"));
  ASSERT_TRUE(Pack().ok());
  EXPECT_EQ(Install().exit_code, 0);
  EXPECT_EQ(FilesBelow(target()), FilesBelow(Path("store")));
}

// ---- what it does ----

TEST_F(RunPackageTest, InstallsWhatTheStoreHas) {
  ASSERT_TRUE(Pack().ok());
  const ShellRun run = Install();
  EXPECT_EQ(run.exit_code, 0) << run;
  EXPECT_EQ(run.out, "installed 3 kernels into " + target() + "\n");
  EXPECT_THAT(run.err, IsEmpty());
  EXPECT_EQ(FilesBelow(target()), FilesBelow(Path("store")));
  EXPECT_TRUE(stdfs::is_empty(target() + "/work"));
  for (const auto& entry : stdfs::recursive_directory_iterator(target())) {
    EXPECT_EQ(entry.status().permissions() & (stdfs::perms::group_all | stdfs::perms::others_all),
              stdfs::perms::none)
        << entry.path();
  }
}

// A store forgets what was not used for long, so files must not look old.
TEST_F(RunPackageTest, InstalledFilesAreNew) {
  ASSERT_TRUE(Pack().ok());
  const auto before = stdfs::file_time_type::clock::now() - std::chrono::minutes(1);
  ASSERT_EQ(Install().exit_code, 0);
  for (const auto& [name, content] : FilesBelow(target())) {
    EXPECT_GT(stdfs::last_write_time(target() + "/" + name), before) << name;
  }
}

TEST_F(RunPackageTest, ASecondInstallChangesNothing) {
  ASSERT_TRUE(Pack().ok());
  ASSERT_EQ(Install().exit_code, 0);
  const std::string object = target() + "/objects/" + kernels_[0].sha256 + ".so";
  const auto when = stdfs::last_write_time(object);
  EXPECT_EQ(Install().exit_code, 0);
  EXPECT_EQ(stdfs::last_write_time(object), when);
  EXPECT_EQ(FilesBelow(target()), FilesBelow(Path("store")));
}

TEST_F(RunPackageTest, InstallMendsWhatIsDamaged) {
  ASSERT_TRUE(Pack().ok());
  ASSERT_EQ(Install().exit_code, 0);
  Write(target() + "/objects/" + kernels_[0].sha256 + ".so", "half");
  Write(target() + "/manifests/" + kernels_[1].key + ".json", "");
  EXPECT_EQ(Install().exit_code, 0);
  EXPECT_EQ(FilesBelow(target()), FilesBelow(Path("store")));
}

TEST_F(RunPackageTest, UninstallTakesEverythingBack) {
  ASSERT_TRUE(Pack().ok());
  ASSERT_EQ(Install().exit_code, 0);
  const ShellRun run = Uninstall();
  EXPECT_EQ(run.exit_code, 0) << run;
  EXPECT_EQ(run.out, "removed 3 kernels from " + target() + "\n");
  EXPECT_THAT(FilesBelow(target()), IsEmpty());
  EXPECT_EQ(Uninstall().exit_code, 0);
}

TEST_F(RunPackageTest, UninstallOfAStoreThatIsNotThereIsNothing) {
  ASSERT_TRUE(Pack().ok());
  EXPECT_EQ(Uninstall().exit_code, 0);
  EXPECT_FALSE(stdfs::exists(target()));
}

TEST_F(RunPackageTest, UninstallKeepsWhatOthersNeed) {
  ASSERT_TRUE(Pack().ok());
  ASSERT_EQ(Install().exit_code, 0);
  const std::string own_build = "manifests/" + kernels_[2].key + ".json";
  const std::string sharer = "manifests/" + Sha256("fourth") + ".json";
  Write(target() + "/" + own_build, "{\"object\": \"" + Sha256("own build") + "\"}\n");
  Write(target() + "/" + sharer, "{\"object\": \"" + kernels_[0].sha256 + "\"}\n");
  EXPECT_EQ(Uninstall().exit_code, 0);
  std::vector<std::string> left;
  for (const auto& [name, content] : FilesBelow(target())) left.push_back(name);
  EXPECT_THAT(left,
              testing::UnorderedElementsAre(own_build, sharer, "sources/" + kernels_[2].key + ".cc",
                                            "sources/" + kernels_[2].key + ".json",
                                            "objects/" + kernels_[0].sha256 + ".so"));
}

TEST_F(RunPackageTest, ListsKeysAndTitles) {
  ASSERT_TRUE(Pack().ok());
  const ShellRun run = Run({"--list"});
  EXPECT_EQ(run.exit_code, 0) << run;
  utsname system{};
  uname(&system);
  EXPECT_TRUE(run.out.starts_with(std::string("for baseline on ") + system.machine + ":\n"));
  EXPECT_THAT(run.out, HasSubstr(kernels_[0].key + "  RmsNorm float[128,768]\n"));
  EXPECT_THAT(run.out, HasSubstr(kernels_[1].key + "  Add `touch pwned` $(touch pwned) 'q'\n"));
  EXPECT_THAT(run.out, HasSubstr(kernels_[2].key + "  line\\nbreak\n"));
  EXPECT_FALSE(stdfs::exists(Path("pwned")));
}

TEST_F(RunPackageTest, VerifiesItself) {
  ASSERT_TRUE(Pack().ok());
  const ShellRun run = Run({"--verify"});
  EXPECT_EQ(run.exit_code, 0) << run;
  EXPECT_EQ(run.out, "whole: 3 kernels, 11 parts\n");
  EXPECT_THAT(run.err, IsEmpty());
}

TEST_F(RunPackageTest, HelpNamesEveryOptionAndExitCode) {
  ASSERT_TRUE(Pack().ok());
  const ShellRun run = Run({"--help"});
  EXPECT_EQ(run.exit_code, 0);
  for (const char* text : {"--install", "--uninstall", "--target DIR", "--list", "--verify",
                           "--help", "NPUMESH_KERNEL_STORE", "XDG_CACHE_HOME", "Exit codes"}) {
    EXPECT_THAT(run.out, HasSubstr(text));
  }
}

TEST_F(RunPackageTest, RefusesWhatItDoesNotKnow) {
  ASSERT_TRUE(Pack().ok());
  EXPECT_THAT(Run({}), FailsWith(2, "say what to do"));
  EXPECT_THAT(Run({"--instal"}), FailsWith(2, "unknown option \"--instal\""));
  EXPECT_THAT(Run({"--install", "x"}), FailsWith(2, "unknown option \"x\""));
  EXPECT_THAT(Run({"--install", "--list"}), FailsWith(2, "--install and --list exclude"));
  EXPECT_THAT(Run({"--install", "--target"}), FailsWith(2, "--target belongs a folder"));
  EXPECT_THAT(Run({"--install", "--target", ""}), FailsWith(2, "--target belongs a folder"));
  EXPECT_THAT(Run({"--list", "--target", "x"}), FailsWith(2, "--list takes no --target"));
}

// Sets variables of this process while it lives.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& values) {
    for (const char* name : {"NPUMESH_KERNEL_STORE", "XDG_CACHE_HOME", "HOME", "PATH"}) {
      if (const char* value = getenv(name)) before_[name] = value;
      const auto found = values.find(name);
      if (found != values.end()) {
        setenv(name, found->second.c_str(), 1);
      } else if (std::string_view(name) != "PATH") {
        unsetenv(name);
      }
    }
  }
  ~Environment() {
    for (const char* name : {"NPUMESH_KERNEL_STORE", "XDG_CACHE_HOME", "HOME"}) unsetenv(name);
    for (const auto& [name, value] : before_) setenv(name.c_str(), value.c_str(), 1);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::map<std::string, std::string> before_;
};

TEST_F(RunPackageTest, FindsTheStoreOfTheUser) {
  ASSERT_TRUE(Pack().ok());
  {
    const Environment none({});
    EXPECT_THAT(Run({"--install"}), FailsWith(2, "name the store by --target"));
  }
  {
    const Environment home({{"HOME", Path("home dir")}});
    EXPECT_EQ(Run({"--install"}).exit_code, 0);
  }
  {
    const Environment cache({{"HOME", Path("home2")}, {"XDG_CACHE_HOME", Path("cache")}});
    EXPECT_EQ(Run({"--install"}).exit_code, 0);
  }
  {
    const Environment store({{"HOME", Path("home2")},
                             {"XDG_CACHE_HOME", Path("cache2")},
                             {"NPUMESH_KERNEL_STORE", Path("mine")}});
    EXPECT_EQ(Run({"--install"}).exit_code, 0);
    EXPECT_EQ(Run({"--install", "--target", "-odd name/"}).exit_code, 0);
  }
  const FilesByPath store = FilesBelow(Path("store"));
  for (const char* root :
       {"home dir/.cache/npumesh/kernels", "cache/npumesh/kernels", "mine", "-odd name"}) {
    EXPECT_EQ(FilesBelow(Path(root)), store) << root;
  }
  EXPECT_FALSE(stdfs::exists(Path("home2")));
  EXPECT_FALSE(stdfs::exists(Path("cache2")));
}

// ---- what it refuses ----

PackageMachine ForAnotherProcessor() {
  PackageMachine machine = MachineFor(InstructionSet::kBaseline);
  machine.instructions = "x86-64-v9";
  machine.flags = {"avx1024", "fpu2"};
  return machine;
}

TEST_F(RunPackageTest, RefusesAProcessorThatLacksInstructionsByName) {
  ASSERT_TRUE(Pack(ForAnotherProcessor()).ok());
  EXPECT_THAT(Install(), FailsWith(3,
                                   "the kernels are for x86-64-v9, this processor lacks avx1024 "
                                   "fpu2; compile them here"));
  EXPECT_FALSE(stdfs::exists(target()));
  EXPECT_EQ(Run({"--verify"}).exit_code, 0);
}

TEST_F(RunPackageTest, RefusesAnotherArchitecture) {
  PackageMachine machine = MachineFor(InstructionSet::kBaseline);
  machine.architecture = "vax";
  ASSERT_TRUE(Pack(machine).ok());
  EXPECT_THAT(Install(), FailsWith(3, "the kernels are for vax, this is "));
  EXPECT_FALSE(stdfs::exists(target()));
}

TEST_F(RunPackageTest, EveryLevelNeedsWhatThoseBeforeItNeed) {
  EXPECT_THAT(MachineFor(InstructionSet::kBaseline).flags, IsEmpty());
  const auto v2 = MachineFor(InstructionSet::kX86V2).flags;
  const auto v3 = MachineFor(InstructionSet::kX86V3).flags;
  const auto v4 = MachineFor(InstructionSet::kX86V4).flags;
  EXPECT_THAT(v2, testing::Contains("sse4_2"));
  EXPECT_THAT(v2, Not(testing::Contains("avx2")));
  EXPECT_THAT(v3, testing::Contains("avx2"));
  EXPECT_THAT(v4, testing::Contains("avx512vl"));
  EXPECT_THAT(v3, testing::IsSupersetOf(v2));
  EXPECT_THAT(v4, testing::IsSupersetOf(v3));
}

TEST_F(RunPackageTest, AFlippedByteInAnyPartIsRefused) {
  const std::string whole = PackageBytes();
  const std::string key = kernels_[0].key;
  const std::string places[] = {"machine code of two",
                                "other code",
                                "\"symbol\": \"second\"",
                                "void third();",
                                "manifests/" + key,
                                "sources/" + key,
                                "objects/",
                                "parts.sha256",
                                "ustar",
                                Sha256("void first();\n") + "  sources"};
  for (const std::string& part : places) {
    const size_t at = whole.find(part, whole.find("\n__ARCHIVE__\n"));
    ASSERT_NE(at, std::string::npos) << part;
    std::string bytes = whole;
    bytes[at + 2] ^= 1;
    SCOPED_TRACE(part);
    ExpectRefused(bytes, "the archive has SHA-256 ");
  }
}

TEST_F(RunPackageTest, AFlippedByteInTheScriptIsRefused) {
  const std::string whole = PackageBytes();
  for (const std::string& place :
       {std::string("# Static kernels"), "\n" + kernels_[0].key, std::string("RmsNorm"),
        std::string("install_kernels() {"), std::string("cannot unpack"), std::string("umask 077"),
        std::string("# SHA-256 of the lines")}) {
    const size_t at = whole.find(place);
    ASSERT_NE(at, std::string::npos) << place;
    std::string bytes = whole;
    bytes[at + 2] ^= 1;
    SCOPED_TRACE(place);
    ExpectRefused(bytes, "damaged");
  }
}

// Before the second line is whole, it is the shell that says the one line.
MATCHER(IsRefused, "") {
  return (arg.exit_code == 3 || arg.exit_code == 2 || arg.exit_code == 127) && arg.out.empty() &&
         std::ranges::count(arg.err, '\n') == 1;
}

// Cut in its first lines it said nothing and exited with 0.
TEST_F(RunPackageTest, ATruncatedPackageIsRefused) {
  const std::string whole = PackageBytes();
  const size_t text = whole.find("\n__ARCHIVE__\n") + 13;
  const size_t second_line = whole.find('\n') + 1;
  const size_t third_line = whole.find('\n', second_line) + 1;
  std::vector<size_t> lengths = {whole.size() - 1, whole.size() - 512, text, text + 1, text + 512};
  for (size_t n = third_line - 1; n < text; n += 97) lengths.push_back(n);
  for (size_t n = text - 150; n < text; ++n) lengths.push_back(n);
  for (const size_t length : lengths) {
    Write(Path("bad.run"), whole.substr(0, length));
    EXPECT_THAT(RunScript(Path("bad.run"), {"--install", "--target", target()}),
                FailsWith(3, "damaged"))
        << length << " of " << whole.size() << " bytes";
  }
  for (size_t length = second_line + 1; length < third_line - 1; length += 7) {
    Write(Path("bad.run"), whole.substr(0, length));
    EXPECT_THAT(RunScript(Path("bad.run"), {"--install", "--target", target()}), IsRefused())
        << length << " of " << whole.size() << " bytes";
  }
  EXPECT_FALSE(stdfs::exists(target()));
  ExpectRefused(whole.substr(0, whole.size() - 512), "the archive has ");
  ExpectRefused(whole + "x", "the archive has ");
}

// Overwritten in its first lines it installed nothing and exited with 0.
TEST_F(RunPackageTest, DamagesOfAnyKindInstallNothing) {
  const std::string whole = PackageBytes();
  std::mt19937_64 dice(7);
  const auto draw = [&dice](size_t below) { return static_cast<size_t>(dice() % below); };
  constexpr int kDamages = 150;  // 500 were tried once, with every cut of the second line
  for (int i = 0; i < kDamages; ++i) {
    std::string bytes = whole;
    // Half of them in the lines that watch over the others.
    const size_t at = draw(i % 2 == 0 ? 600 : whole.size());
    const size_t count = std::min(1 + draw(i % 3 == 0 ? 4 : 200), whole.size() - at);
    switch (draw(4)) {
      case 0:
        bytes.replace(at, count, std::string(count, '\0'));
        break;
      case 1:
        for (size_t k = at; k < at + count; ++k) bytes[k] = static_cast<char>(dice());
        break;
      case 2:
        bytes.erase(at, count);
        break;
      default:
        bytes.replace(at, count, whole.substr(draw(whole.size() - count), count));
    }
    // A changed first line is a comment all the same, or another shell's.
    if (bytes == whole || bytes.substr(9) == whole.substr(9)) continue;
    Write(Path("bad.run"), bytes);
    const ShellRun run = RunScript(Path("bad.run"), {"--install", "--target", target()});
    EXPECT_NE(run.exit_code, 0) << "damage " << i << " at " << at << ": " << run;
    EXPECT_FALSE(run.err.empty()) << "damage " << i << " at " << at;
    EXPECT_FALSE(stdfs::exists(target())) << "damage " << i << " at " << at;
  }
}

TEST_F(RunPackageTest, RefusesAStoreThatOthersMayWrite) {
  ASSERT_TRUE(Pack().ok());
  stdfs::create_directory(target());
  for (const mode_t mode : {0770u, 0707u, 0777u}) {
    ASSERT_EQ(chmod(target().c_str(), mode), 0);
    EXPECT_THAT(Install(), FailsWith(4, "may be written by others; chmod 700 it"));
  }
  EXPECT_TRUE(stdfs::is_empty(target()));
}

TEST_F(RunPackageTest, RefusesLinksAndFilesInThePlaceOfTheStore) {
  ASSERT_TRUE(Pack().ok());
  stdfs::create_directory(Path("elsewhere"));
  stdfs::create_directory_symlink(Path("elsewhere"), target());
  EXPECT_THAT(Install(), FailsWith(4, "is a symbolic link"));
  EXPECT_THAT(Run({"--install", "--target", target() + "/"}), FailsWith(4, "is a symbolic link"));
  stdfs::remove(target());
  Write(target(), "");
  EXPECT_THAT(Install(), FailsWith(4, "cannot make the store " + target()));
  stdfs::remove(target());
  stdfs::create_directory(target());
  stdfs::create_directory_symlink(Path("elsewhere"), target() + "/objects");
  EXPECT_THAT(Install(), FailsWith(4, target() + "/objects is a symbolic link"));
  EXPECT_TRUE(stdfs::is_empty(Path("elsewhere")));
}

TEST_F(RunPackageTest, SaysWhatItCannotWrite) {
  ASSERT_TRUE(Pack().ok());
  stdfs::create_directories(target() + "/manifests/" + kernels_[0].key + ".json");
  EXPECT_THAT(Install(), FailsWith(4, "it is a folder; remove it"));
  EXPECT_TRUE(stdfs::is_empty(target() + "/work"));
}

// ---- killed ----

// Programs on PATH that count their calls and kill the whole process group before call number `at`
// (0: never); the system's own do the work, but nothing is synced, which takes seconds on a busy
// disk.
class DeadlyPrograms {
 public:
  DeadlyPrograms(const std::string& folder, int at) : count_(folder + "/count") {
    Write(count_, "0");
    for (const std::string name : {"mkdir", "tar", "sync", "mv", "rm", "sha256sum"}) {
      const std::string program = folder + "/" + name;
      Write(program, "#!/bin/sh\nn=$(($(cat " + count_ + ") + 1))\necho $n >" + count_ +
                         "\n[ $n -ne " + std::to_string(at) + " ] || kill -9 0\nPATH=${PATH#*:}\n" +
                         (name == "sync" ? "exit 0\n" : "exec " + name + " \"$@\"\n"));
      chmod(program.c_str(), 0700);
    }
  }
  int calls() const {
    const std::string text = *ReadFile(count_);
    return static_cast<int>(*ParseInt(Trimmed(text.substr(0, text.find('\n'))), 0, 10000, "calls"));
  }

 private:
  const std::string count_;
};

// Each manifest has its object, whole.
void ExpectNoManifestWithoutObject(const std::string& store) {
  const FilesByPath files = FilesBelow(store);
  for (const auto& [name, content] : files) {
    if (!name.starts_with("manifests/")) continue;
    const std::string sha256 = content.substr(std::string("{\"object\": \"").size(), 64);
    const auto object = files.find("objects/" + sha256 + ".so");
    ASSERT_NE(object, files.end()) << name;
    EXPECT_EQ(Sha256(object->second), sha256) << name;
  }
}

// Runs `action` in a process that is killed before call number `at` of a program.
ShellRun RunKilledAt(int at, const std::string& programs, const std::function<ShellRun()>& action,
                     int* calls = nullptr) {
  const DeadlyPrograms deadly(programs, at);
  const Environment path({{"PATH", programs + ":" + getenv("PATH")}});
  const ShellRun run = action();
  if (calls != nullptr) *calls = deadly.calls();
  return run;
}

TEST_F(RunPackageTest, AKilledInstallLeavesNoManifestWithoutItsObject) {
  ASSERT_TRUE(Pack().ok());
  const auto install = [this] { return Install(); };
  int killed = 0;
  for (int at = 1;; ++at) {
    ASSERT_LT(at, 200);
    stdfs::remove_all(target());
    int calls = 0;
    const ShellRun run = RunKilledAt(at, Path("bin"), install, &calls);
    ExpectNoManifestWithoutObject(target());
    if (run.exit_code == 0) break;
    ASSERT_EQ(run.exit_code, 128 + SIGKILL) << "before call " << at << ": " << run;
    ASSERT_EQ(calls, at);
    ++killed;
    ASSERT_EQ(RunKilledAt(0, Path("bin"), install).exit_code, 0) << "after a kill at call " << at;
    FilesByPath files = FilesBelow(target());
    std::erase_if(files, [](const auto& file) { return file.first.starts_with("work/"); });
    EXPECT_EQ(files, FilesBelow(Path("store"))) << "after a kill at call " << at;
  }
  EXPECT_GE(killed, 20);  // checks, folders, unpacking, and a rename for each of 11 files
}

TEST_F(RunPackageTest, AKilledUninstallLeavesNoManifestWithoutItsObject) {
  ASSERT_TRUE(Pack().ok());
  int killed = 0;
  for (int at = 1;; ++at) {
    ASSERT_LT(at, 200);
    ASSERT_EQ(RunKilledAt(0, Path("bin"), [this] { return Install(); }).exit_code, 0);
    const ShellRun run = RunKilledAt(at, Path("bin"), [this] { return Uninstall(); });
    ExpectNoManifestWithoutObject(target());
    if (run.exit_code == 0) break;
    ASSERT_EQ(run.exit_code, 128 + SIGKILL) << "before call " << at << ": " << run;
    ++killed;
  }
  EXPECT_GE(killed, 5);
  std::vector<std::string> left;
  for (const auto& [name, content] : FilesBelow(target())) left.push_back(name);
  EXPECT_THAT(left, testing::Each(testing::StartsWith("work/")));
}

}  // namespace
}  // namespace npumesh
