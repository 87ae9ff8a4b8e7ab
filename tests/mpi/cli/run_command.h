// Starts the npumesh command as a user would, and keeps what it said.
#ifndef NPUMESH_TESTS_MPI_CLI_RUN_COMMAND_H_
#define NPUMESH_TESTS_MPI_CLI_RUN_COMMAND_H_

#include <filesystem>
#include <string>
#include <vector>

#include "graph/ir/graph_builder.h"

namespace npumesh {

// Whether mpirun is MPICH's: it joins the exit codes of ranks bit by bit, returns the number of a
// signal as it is, and keeps shared memory where nothing of npumesh looks after it.
constexpr bool kOfMpich = NPUMESH_OF_MPICH == 1;

struct CommandRun {
  int code = -1;
  std::string out;
  std::string err;

  // Lines on standard error that are ours, not mpirun's.
  std::vector<std::string> FailureLines() const;
};

// `npumesh <words>` under mpirun with this many ranks.
CommandRun RunRanksOf(int ranks, const std::vector<std::string>& words);
// `npumesh <words>` alone.
CommandRun RunAlone(const std::vector<std::string>& words);

// A folder for one test, removed with this object.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }

  // m0.air, m1.air, ...: y = allreduce(x) for x float32[4]; without a collective for one rank.
  void PutModels(int ranks) const;
  // m0.air, m1.air, ...: y = softmax(relu(x + 1) x) of the sum over the ranks, float32[3,20].
  void PutChains(int ranks) const;
  // m0.air, m1.air, ...: the best two of so many experts, float32[2,experts], node "gate"; -1: as
  // many as are given.
  void PutGatings(int ranks, int64_t experts) const;
  // m0.air, m1.air, ...: y = x w for x float16[4,64] and a constant w.
  void PutProducts(int ranks) const;
  // PutModels for two ranks, but before the collective rank 0 looks up element 7 of 4.
  void PutModelsThatFailOnRank0() const;
  // <name>/export.air: y = x + w for float32[4], w in the file <name>/w, whose bytes are four times
  // `value`; the graph says that it lies in `recorded`.
  void PutPackage(const std::string& name, const std::string& recorded, float value) const;
  // <set>/rank_<R>/0.npy: `value` four times.
  void PutTensor(const std::string& set, int rank, float value, int64_t elements = 4) const;

 private:
  void Save(int rank, GraphBuilder& g) const;

  std::filesystem::path path_;
};

}  // namespace npumesh

#endif  // NPUMESH_TESTS_MPI_CLI_RUN_COMMAND_H_
