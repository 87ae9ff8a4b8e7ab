// Random choices; equal seeds give equal choices on every machine.
#ifndef NPUMESH_TESTS_FUZZ_ENGINE_DICE_H_
#define NPUMESH_TESTS_FUZZ_ENGINE_DICE_H_

#include <cstdint>
#include <random>
#include <vector>

namespace npumesh::fuzz {

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed * 0x9e3779b97f4a7c15u + 1) {}

  // In [0, limit). REQUIRES: limit > 0.
  int64_t Below(int64_t limit) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(limit));
  }
  // In [low, high].
  int64_t Between(int64_t low, int64_t high) { return low + Below(high - low + 1); }
  bool Chance(int percent) { return Below(100) < percent; }
  template <typename T>
  const T& Pick(const std::vector<T>& from) {
    return from[static_cast<size_t>(Below(static_cast<int64_t>(from.size())))];
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace npumesh::fuzz

#endif  // NPUMESH_TESTS_FUZZ_ENGINE_DICE_H_
