// libc_sec: random calls beside a reference of bytes, and the codes of what is wrong.
#include "securec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr size_t kTooMany = SECUREC_MEM_MAX_LEN + 1;

TEST(Securec, CopiesAsFarAsItFits) {
  std::mt19937 random(7);
  const auto below = [&](size_t limit) {
    return std::uniform_int_distribution<size_t>(0, limit)(random);
  };
  for (int call = 0; call < 5000; ++call) {
    std::vector<char> dest(1 + below(20), 'd');
    const std::vector<char> src(30, 's');
    const size_t count = below(25);
    std::vector<char> expected = dest;
    const bool fits = count <= dest.size();
    if (fits) std::fill_n(expected.begin(), count, 's');
    if (!fits) std::fill(expected.begin(), expected.end(), '\0');
    std::vector<char> moved = dest;
    EXPECT_EQ(memcpy_s(dest.data(), dest.size(), src.data(), count), fits ? EOK : ERANGE_AND_RESET);
    EXPECT_EQ(memmove_s(moved.data(), moved.size(), src.data(), count),
              fits ? EOK : ERANGE_AND_RESET);
    EXPECT_EQ(dest, expected);
    EXPECT_EQ(moved, expected);
    EXPECT_EQ(memset_s(dest.data(), dest.size(), 'x', count), fits ? EOK : ERANGE_AND_RESET);
    EXPECT_EQ(std::count(dest.begin(), dest.end(), 'x'),
              static_cast<ptrdiff_t>(std::min(count, dest.size())));
  }
}

TEST(Securec, WritesTextsAsFarAsTheyFit) {
  std::mt19937 random(8);
  const auto below = [&](size_t limit) {
    return std::uniform_int_distribution<size_t>(0, limit)(random);
  };
  for (int call = 0; call < 5000; ++call) {
    const size_t room = 1 + below(20);
    const std::string before(below(room - 1), 'b');
    const std::string text(below(20), 't');
    const size_t count = below(25);
    std::vector<char> dest(room, '?');
    EXPECT_EQ(strcpy_s(dest.data(), room, before.c_str()), EOK);
    const std::string cut = text.substr(0, count);
    const bool fits = before.size() + cut.size() < room;
    EXPECT_EQ(strncat_s(dest.data(), room, text.c_str(), count), fits ? EOK : ERANGE_AND_RESET);
    EXPECT_EQ(std::string(dest.data()), fits ? before + cut : "");
    EXPECT_EQ(strncpy_s(dest.data(), room, text.c_str(), count),
              cut.size() < room ? EOK : ERANGE_AND_RESET);
    EXPECT_EQ(std::string(dest.data()), cut.size() < room ? cut : "");
    const int printed = static_cast<int>(text.size());
    EXPECT_EQ(sprintf_s(dest.data(), room, "%s", text.c_str()), text.size() < room ? printed : -1);
    EXPECT_EQ(std::string(dest.data()), text.size() < room ? text : "");
    const bool whole = text.size() <= std::min(count, room - 1);
    EXPECT_EQ(snprintf_s(dest.data(), room, count, "%s", text.c_str()), whole ? printed : -1);
    EXPECT_EQ(std::string(dest.data()), whole ? text : count < room ? cut : "");
  }
}

TEST(Securec, SaysWhatIsWrong) {
  char dest[8] = "abc";
  EXPECT_EQ(memcpy_s(nullptr, 8, dest, 1), EINVAL);
  EXPECT_EQ(memcpy_s(dest, 0, dest, 1), ERANGE);
  EXPECT_EQ(memset_s(dest, kTooMany, 0, 1), ERANGE);
  EXPECT_EQ(strcpy_s(dest, 8, dest + 1), EOVERLAP_AND_RESET);
  EXPECT_EQ(dest[0], '\0');
  EXPECT_EQ(memcpy_s(dest, 8, dest + 1, 4), EOVERLAP_AND_RESET);
  EXPECT_EQ(memmove_s(dest, 8, dest + 1, 4), EOK);
  EXPECT_EQ(strcpy_s(dest, 8, nullptr), EINVAL_AND_RESET);
  EXPECT_EQ(strcat_s(dest, 0, "x"), ERANGE);
  EXPECT_EQ(sprintf_s(nullptr, 8, "%d", 1), -1);
  EXPECT_EQ(memcpy_s(dest, 8, nullptr, 1), EINVAL_AND_RESET);
}

TEST(Securec, SplitsTexts) {
  char text[] = "a,b";
  char* context = nullptr;
  EXPECT_STREQ(strtok_s(text, ",", &context), "a");
  EXPECT_STREQ(strtok_s(nullptr, ",", &context), "b");
  EXPECT_EQ(strtok_s(nullptr, ",", &context), nullptr);
  EXPECT_EQ(strtok_s(nullptr, ",", nullptr), nullptr);
}

}  // namespace
