#include <gmock/gmock.h>

#include "launch/doctor/machine_facts.h"

namespace npumesh {
namespace {

using testing::HasSubstr;

constexpr uint64_t kGiB = uint64_t{1} << 30;

MachineFacts Healthy() {
  MachineFacts facts;
  facts.process = {0027, false, 2};
  facts.ranks = 4;
  facts.mpi_built = "4.1.4";
  facts.mpi_running = "Open MPI v4.1.4";
  facts.shm_room = kGiB;
  facts.memory_free = 64 * kGiB;
  facts.open_files = 1024;
  facts.processes = 4096;
  facts.cores = 8;
  facts.numa_nodes = 2;
  facts.ptrace_scope = 0;
  return facts;
}

Finding About(const MachineFacts& facts, const std::string& subject) {
  for (const Finding& finding : Judge(facts)) {
    if (finding.subject == subject) return finding;
  }
  return {"nothing about " + subject, Severity::kError, "", ""};
}

TEST(Judge, AHealthyMachineHasNothingToMend) {
  for (const Finding& finding : Judge(Healthy())) {
    EXPECT_EQ(finding.severity, Severity::kInfo) << finding.subject << ": " << finding.text;
    EXPECT_EQ(finding.mend, "") << finding.subject;
  }
}

TEST(Judge, EachTroubleHasItsVerdictAndRemedy) {
  const struct {
    const char* subject;
    void (*spoil)(MachineFacts& facts);
    Severity severity;
    const char* text;
    const char* mend;
  } cases[] = {
      {"MPI", [](MachineFacts& f) { f.mpirun = Error(Code::kNotFound, "none"); }, Severity::kError,
       "no mpirun in PATH", "apt-get install openmpi-bin"},
      {"MPI", [](MachineFacts& f) { f.mpi_running = "Open MPI v5.0.1"; }, Severity::kAdvice,
       "built with 4.1.4", "build again"},
      {"device memory", [](MachineFacts& f) { f.anonymous_memory = Error(Code::kIo, "refused"); },
       Severity::kError, "refused", "seccomp"},
      {"/dev/shm", [](MachineFacts& f) { f.shm_room.reset(); }, Severity::kAdvice, "not there",
       "--shm-size=1g"},
      {"/dev/shm", [](MachineFacts& f) { f.shm_room = 1 << 20; }, Severity::kAdvice,
       "1 MiB free, Open MPI may want 64 MiB for 4 ranks", "--shm-size=1g"},
      {"memory", [](MachineFacts& f) { f.memory_free = kGiB; }, Severity::kAdvice,
       "1.0 GiB available for 4 ranks", "NPUMESH_HBM_SIZE"},
      {"addresses", [](MachineFacts& f) { f.addresses = kGiB; }, Severity::kAdvice,
       "1.0 GiB left (ulimit -v): a rank wants 2.0 GiB", "NPUMESH_HBM_SIZE"},
      {"programs",
       [](MachineFacts& f) {
         f.missing = {{"ssh", "npumesh launch --hosts", "openssh-client"}, {"c++", "it", "g++"}};
       },
       Severity::kAdvice, "no ssh, for npumesh launch --hosts; no c++, for it",
       "apt-get install openssh-client g++"},
      {"leftovers",
       [](MachineFacts& f) {
         f.leftovers = {"/dev/shm/a", "/dev/shm/b"};
       },
       Severity::kAdvice, "2 things of dead jobs in shared memory: /dev/shm/a, ...",
       "npumesh doctor --clean"},
      {"limits", [](MachineFacts& f) { f.open_files = 100; }, Severity::kError,
       "100 open files, 4 ranks want 256", "ulimit -n 256"},
      {"limits", [](MachineFacts& f) { f.processes = 100; }, Severity::kError,
       "100 processes and threads", "ulimit -u 128"},
      {"hwloc", [](MachineFacts& f) { f.topology = Error(Code::kIo, "no /sys"); }, Severity::kError,
       "no /sys", "NPUMESH_TOPOLOGY"},
      {"hwloc", [](MachineFacts& f) { f.binding = Error(Code::kIo, "not allowed"); },
       Severity::kAdvice, "binding is refused: not allowed", "--bind none"},
      {"hwloc", [](MachineFacts& f) { f.cores = 2; }, Severity::kAdvice,
       "2 cores, 2 NUMA nodes for 4", "mpi_yield_when_idle"},
      {"umask", [](MachineFacts& f) { f.process.umask = 0022; }, Severity::kAdvice,
       "0022, looser than 0027", "umask 0027"},
      {"ASLR", [](MachineFacts& f) { f.process.aslr = 0; }, Severity::kAdvice, "level 0",
       "randomize_va_space"},
      {"account", [](MachineFacts& f) { f.process.root = true; }, Severity::kAdvice, "root",
       "ordinary user"},
      {"debugger", [](MachineFacts& f) { f.ptrace_scope = 1; }, Severity::kAdvice,
       "ptrace_scope is 1", "sysctl kernel.yama.ptrace_scope=0"},
  };
  for (const auto& expected : cases) {
    MachineFacts facts = Healthy();
    expected.spoil(facts);
    const Finding finding = About(facts, expected.subject);
    EXPECT_EQ(finding.severity, expected.severity) << finding.subject << ": " << finding.text;
    EXPECT_THAT(finding.text, HasSubstr(expected.text));
    EXPECT_THAT(finding.mend, HasSubstr(expected.mend)) << finding.subject;
  }
}

TEST(LookAtMachine, SeesThisOne) {
  const MachineFacts facts = LookAtMachine(1, "4.1.4", "Open MPI v4.1.4");
  EXPECT_TRUE(facts.anonymous_memory.ok()) << facts.anonymous_memory.message();
  EXPECT_TRUE(facts.topology.ok()) << facts.topology.message();
  EXPECT_GT(facts.cores, 0);
  EXPECT_GT(facts.open_files, 0u);
  ASSERT_TRUE(facts.memory_free.has_value());
  EXPECT_GT(*facts.memory_free, uint64_t{1} << 20);
}

}  // namespace
}  // namespace npumesh
