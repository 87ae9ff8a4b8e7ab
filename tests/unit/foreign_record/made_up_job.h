// MadeUpJob: a job of several ranks, with or without one fault, and what other libraries would
// leave of it: flight records of torch as pickles and JSON, a report of NCCL RAS, logs of HCCL.
#ifndef NPUMESH_TESTS_UNIT_FOREIGN_RECORD_MADE_UP_JOB_H_
#define NPUMESH_TESTS_UNIT_FOREIGN_RECORD_MADE_UP_JOB_H_

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace npumesh::testing {

enum class Fault : uint8_t {
  kNone,
  kMissing,  // a rank stops calling anything
  kSkipped,  // a rank leaves out one call and goes on
  kOther,    // a rank calls another collective
  kSize,     // a rank hands in another number of elements
  kOrder,    // two ranks call two groups in the other order
  kDead,     // a rank dies and leaves nothing
};

enum class Library : uint8_t { kPickle, kJson, kRas, kHccl };

class MadeUpJob {
 public:
  MadeUpJob(Fault fault, uint32_t seed);

  // Files by name, in a folder of their own.
  std::map<std::string, std::string> Files(Library library) const;

  const std::vector<int>& culprits() const { return culprits_; }
  int ranks() const { return ranks_; }

 private:
  struct Call {
    std::string kind;  // "AllReduce"
    int group = 0;     // 0: all ranks; 1, 2: halves
    uint64_t number = 0;
    uint64_t count = 0;
    int64_t called_ns = 0;
    bool queued = false;
    bool done = false;
  };

  uint64_t Chance(uint64_t below) { return random_() % below; }
  std::vector<int> MembersOf(int group) const;
  void Program(Fault fault);
  void Run();
  std::map<std::string, std::string> Torch(bool pickle) const;
  std::string Ras() const;
  std::map<std::string, std::string> Plogs() const;

  std::mt19937 random_;
  int ranks_ = 0;
  bool dead_ = false;
  std::vector<int> culprits_;
  std::vector<std::vector<Call>> programs_;  // by rank: what it calls, in order
  std::vector<size_t> reached_;              // by rank: how many calls it makes before it stops
};

}  // namespace npumesh::testing

#endif  // NPUMESH_TESTS_UNIT_FOREIGN_RECORD_MADE_UP_JOB_H_
