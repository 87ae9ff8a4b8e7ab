#include "graph/static_kernel/store/system_compiler.h"

#include <dlfcn.h>
#include <elf.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "runtime/base/files/secure_file.h"
#include "runtime/base/process/process_state.h"
#include "runtime/base/process/wait.h"
#include "tests/unit/static_kernel/store_fixture.h"

namespace npumesh {
namespace {

using npumesh::testing::FakeCompiler;
using npumesh::testing::Variable;
using npumesh::testing::Write;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SystemCompiler, IsThatOfTheVariable) {
  const FakeCompiler fake;
  const auto compiler = SystemCompiler::Find();
  ASSERT_TRUE(compiler.ok()) << compiler.status().message();
  EXPECT_EQ(compiler->version(), "fake c++ 1.0");
  EXPECT_THAT(compiler->command(), ElementsAre(fake.Path("compiler")));
  const Variable arguments("CXX", (" " + fake.Path("compiler") + " -m64\t-pipe ").c_str());
  EXPECT_THAT(SystemCompiler::Find()->command(),
              ElementsAre(fake.Path("compiler"), "-m64", "-pipe"));
}

TEST(SystemCompiler, IsFoundOnThePath) {
  const FakeCompiler fake;
  const Variable path("PATH", ("/nowhere:" + fake.Path("") + ":/usr/bin:/bin").c_str());
  const Variable name("CXX", "compiler");
  const auto compiler = SystemCompiler::Find();
  ASSERT_TRUE(compiler.ok()) << compiler.status().message();
  EXPECT_EQ(compiler->version(), "fake c++ 1.0");
  for (const char* blank : {"", "  "}) {
    const Variable none("CXX", blank);
    const auto system = SystemCompiler::Find();
    ASSERT_TRUE(system.ok()) << system.status().message();
    EXPECT_THAT(system->command()[0], ::testing::EndsWith("/c++"));
  }
}

TEST(SystemCompiler, ThatIsMissingIsNamed) {
  const Variable path("PATH", "/nowhere");
  const Variable name("CXX", "g++-99 -m64");
  const Status missing = SystemCompiler::Find().status();
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_EQ(missing.message(),
            "no C++ compiler: \"g++-99\" of CXX is no program on PATH (/nowhere); install g++ or "
            "clang++, or name one by CXX");
  const Variable none("CXX", nullptr);
  EXPECT_EQ(SystemCompiler::Find().status().message(),
            "no C++ compiler: \"c++\" is no program on PATH (/nowhere); install g++ or clang++, or "
            "name one by CXX");
  const Variable folder("CXX", "/tmp");
  EXPECT_EQ(SystemCompiler::Find().status().code(), Code::kNotFound);
}

TEST(SystemCompiler, ThatDoesNotSayItsVersionIsRefused) {
  const npumesh::TemporaryFolder folder;
  Write(folder.Path("fails"), "#!/bin/sh\nexit 1\n");
  chmod(folder.Path("fails").c_str(), 0700);
  const Variable fails("CXX", folder.Path("fails").c_str());
  const Status status = SystemCompiler::Find().status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_EQ(status.message(), "asked for its --version, the compiler " + folder.Path("fails") +
                                  " ended with exit code 1: it said nothing; set CXX");
  Write(folder.Path("mute"), "#!/bin/sh\n");
  chmod(folder.Path("mute").c_str(), 0700);
  const Variable mute("CXX", folder.Path("mute").c_str());
  EXPECT_THAT(std::string(SystemCompiler::Find().status().message()), HasSubstr("said nothing"));
  Write(folder.Path("text"), "no program");
  chmod(folder.Path("text").c_str(), 0700);
  const Variable text("CXX", folder.Path("text").c_str());
  EXPECT_FALSE(SystemCompiler::Find().ok());
}

class CompilerFaults : public ::testing::Test {
 protected:
  Status Compile(const std::string& acts, int seconds = 60) {
    fake_.Act(acts);
    CompileRequest request;
    request.sources = {folder_.Path("a.cc")};
    request.object = folder_.Path("a.so");
    request.time_limit = std::chrono::seconds(seconds);
    Write(request.sources[0], "int a;\n");
    const auto compiler = SystemCompiler::Find();
    EXPECT_TRUE(compiler.ok());
    return compiler->Compile(request);
  }
  std::string FaultOf(const std::string& acts) {
    const Status status = Compile(acts);
    EXPECT_EQ(status.code(), Code::kUnsupported) << acts;
    EXPECT_NE(access(folder_.Path("a.so").c_str(), F_OK), 0) << "left behind by: " << acts;
    const std::string message(status.message());
    const std::string name = fake_.Path("compiler") + " ";
    EXPECT_TRUE(message.starts_with(name)) << message;
    return message.substr(std::min(message.size(), name.size()));
  }
  void Spill(const std::string& bytes) { Write(fake_.Path("bad"), bytes); }

  FakeCompiler fake_;
  npumesh::TemporaryFolder folder_;
};

TEST_F(CompilerFaults, WhatWorks) {
  const Status status = Compile(FakeCompiler::kWorks);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(Compile("echo warning: odd; cat $ready > $out; (sleep 100) &").ok());
  EXPECT_TRUE(Compile("test \"$TMPDIR\" = " + folder_.path() + " && cp $ready $out").ok());
}

TEST_F(CompilerFaults, ErrorsAreToldByTheirLine) {
  EXPECT_EQ(FaultOf("echo part > $out; echo 'In f:'; echo ' k.cpp:3: error: no' >&2; exit 3"),
            "ended with exit code 3: k.cpp:3: error: no");
  EXPECT_EQ(FaultOf("echo; echo first; echo second; exit 1"), "ended with exit code 1: first");
  EXPECT_EQ(FaultOf("exit 1"), "ended with exit code 1: it said nothing");
  EXPECT_EQ(FaultOf("printf 'error \\033[31m'; exit 1"), "ended with exit code 1: error \\x1b[31m");
  EXPECT_EQ(FaultOf("kill -SEGV $$"),
            "was ended by signal 11 (Segmentation fault): it said nothing");
}

TEST_F(CompilerFaults, WrongObjectsAreRefused) {
  const std::string good = npumesh::testing::ObjectBytes();
  EXPECT_EQ(FaultOf(":"), "ended well but wrote no shared object");
  EXPECT_EQ(FaultOf(": > $out"), "ended well but what it wrote is empty");
  EXPECT_EQ(FaultOf("echo garbage > $out"), "ended well but what it wrote is no ELF file");
  for (size_t length = 1; length < good.size(); ++length) {
    if (length % 16 != 1) continue;
    Spill(good.substr(0, length));
    EXPECT_EQ(FaultOf("cp $folder/bad $out"), "ended well but what it wrote is no ELF file");
  }
  std::string bad = good;
  bad[EI_CLASS] = ELFCLASS32;
  Spill(bad);
  EXPECT_EQ(FaultOf("cp $folder/bad $out"), "ended well but what it wrote is no 64-bit ELF file");
  bad = good;
  bad[offsetof(Elf64_Ehdr, e_type)] = ET_REL;
  Spill(bad);
  EXPECT_EQ(FaultOf("cp $folder/bad $out"),
            "ended well but what it wrote is an ELF file but no shared object");
  bad = good;
  bad[offsetof(Elf64_Ehdr, e_shoff)] = 100;
  Spill(bad);
  EXPECT_EQ(FaultOf("cp $folder/bad $out"), "ended well but what it wrote is cut short");
#if defined(__x86_64__)
  bad = good;
  bad[offsetof(Elf64_Ehdr, e_machine)] = static_cast<char>(EM_AARCH64);
  Spill(bad);
  EXPECT_EQ(FaultOf("cp $folder/bad $out"),
            "ended well but what it wrote is for another kind of processor (ELF machine 183, here "
            "62)");
#endif
}

TEST_F(CompilerFaults, OneThatHangsIsKilledWithItsChildren) {
  const auto begin = SteadyClock::now();
  const Status status = Compile("echo part > $out; sleep 1000 & echo $! > $folder/child; wait", 1);
  EXPECT_EQ(status.code(), Code::kTimeout);
  EXPECT_EQ(status.message(), fake_.Path("compiler") + " did not end within 1 s and was killed");
  EXPECT_LT(SteadyClock::now() - begin, std::chrono::seconds(900));  // not as long as it sleeps
  EXPECT_NE(access(folder_.Path("a.so").c_str(), F_OK), 0);
  int child = 0;
  std::ifstream(fake_.Path("child")) >> child;
  ASSERT_GT(child, 0);
  const auto gone = [child] {
    const char state = ProcessState(child);
    return state == '\0' || state == 'Z';
  };
  for (int k = 0; k < 1000 && !gone(); ++k) usleep(10'000);
  EXPECT_TRUE(gone());
}

TEST_F(CompilerFaults, OneThatTalksWithoutEndIsKilled) {
  EXPECT_EQ(Compile("exec yes error", 1).code(), Code::kTimeout);
  EXPECT_EQ(Compile("exec > /dev/null 2>&1; sleep 1000", 1).code(), Code::kTimeout);
}

TEST_F(CompilerFaults, OneThatVanishedIsAnError) {
  const auto compiler = SystemCompiler::Find();
  ASSERT_TRUE(compiler.ok());
  unlink(fake_.Path("compiler").c_str());
  CompileRequest request;
  request.object = folder_.Path("a.so");
  const Status status = compiler->Compile(request);
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_EQ(status.message(),
            "cannot start " + fake_.Path("compiler") + ": No such file or directory");
}

TEST_F(CompilerFaults, ChildrenThatTheSystemCollectsDoNoHarm) {
  signal(SIGCHLD, SIG_IGN);
  const Status good = Compile(FakeCompiler::kWorks);
  const Status bad = Compile("exit 1");
  signal(SIGCHLD, SIG_DFL);
  EXPECT_TRUE(good.ok()) << good.message();
  EXPECT_THAT(std::string(bad.message()), HasSubstr("wrote no shared object"));
}

TEST_F(CompilerFaults, TheRealOneCompiles) {
  const Variable none("CXX", nullptr);
  const auto compiler = SystemCompiler::Find();
  ASSERT_TRUE(compiler.ok()) << compiler.status().message();
  CompileRequest request;
  request.sources = {folder_.Path("a.cc"), folder_.Path("b.cc")};
  request.object = folder_.Path("a.so");
  request.instructions = InstructionsHere();
  Write(request.sources[0], "extern \"C\" int a() { return 7; }\n");
  Write(request.sources[1], "extern \"C\" int b() { return 8; }\n");
  const Status status = compiler->Compile(request);
  ASSERT_TRUE(status.ok()) << status.message();
  void* library = dlopen(request.object.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  EXPECT_EQ(reinterpret_cast<int (*)()>(dlsym(library, "a"))(), 7);
  EXPECT_EQ(reinterpret_cast<int (*)()>(dlsym(library, "b"))(), 8);
  dlclose(library);
  Write(request.sources[1], "int b() { return nothing; }\n");
  const Status wrong = compiler->Compile(request);
  EXPECT_EQ(wrong.code(), Code::kUnsupported);
  EXPECT_THAT(std::string(wrong.message()), HasSubstr("error: "));
}

TEST(KernelFlags, RoundAfterEachOperation) {
  EXPECT_THAT(KernelFlags(false), Contains("-ffp-contract=off"));
  EXPECT_THAT(KernelFlags(false), Contains("-O3"));
  EXPECT_THAT(KernelFlags(true), ::testing::AllOf(Contains("-O0"), Contains("-g")));
}

}  // namespace
}  // namespace npumesh
