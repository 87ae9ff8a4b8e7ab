// Damages bytes the way disks, networks and attackers do; equal seeds give equal damage.
#ifndef NPUMESH_TESTS_FUZZ_MUTATOR_H_
#define NPUMESH_TESTS_FUZZ_MUTATOR_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace npumesh::fuzz {

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  // One to four damages: flipped or random bytes, a cut, a doubled or removed range, a length of
  // 2 GiB, a piece of `others` spliced in.
  std::string Mutate(std::string bytes, const std::vector<std::string>& others);

  std::string RandomBytes(size_t most);

 private:
  // In [0, limit); 0 when limit is 0.
  size_t Below(size_t limit);
  void Damage(std::string* bytes, const std::vector<std::string>& others);

  std::mt19937_64 random_;
};

}  // namespace npumesh::fuzz

#endif  // NPUMESH_TESTS_FUZZ_MUTATOR_H_
