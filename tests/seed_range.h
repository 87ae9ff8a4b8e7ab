// Which seeds a test with random inputs takes: --first=SEED and --seeds=N on its command line.
#ifndef NPUMESH_TESTS_SEED_RANGE_H_
#define NPUMESH_TESTS_SEED_RANGE_H_

#include <gtest/gtest.h>

#include <charconv>
#include <cstdint>
#include <iostream>
#include <string_view>

namespace npumesh {

struct SeedRange {
  uint64_t first = 0;
  uint64_t count = 0;

  uint64_t end() const { return first + count; }
};

inline bool TakeNumber(std::string_view word, std::string_view name, uint64_t* into) {
  if (!word.starts_with(name)) return false;
  const std::string_view text = word.substr(name.size());
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *into);
  return error == std::errc() && end == text.data() + text.size();
}

// The main function of such a test: reads the command line into `seeds` and runs the tests.
inline int RunSeededTests(int argc, char** argv, SeedRange* seeds) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (TakeNumber(argv[i], "--first=", &seeds->first)) continue;
    if (TakeNumber(argv[i], "--seeds=", &seeds->count)) continue;
    std::cerr << "unknown argument " << argv[i] << "; expected --first=SEED or --seeds=N\n";
    return 2;
  }
  return RUN_ALL_TESTS();
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_SEED_RANGE_H_
