// The page: what stands in the file, whose script the tests of tests/pages run.
#include "launch/profile/profile_page.h"

#include <gmock/gmock.h>

#include "launch/page/page.h"
#include "launch/page/page_text.h"
#include "launch/profile/profile_report.h"
#include "runtime/base/text/json.h"
#include "tests/unit/profile_view/profiles.h"

namespace npumesh::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

size_t CountOf(const std::string& text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

ProfilePageText PageOf(const std::vector<RankProfile>& profiles, size_t most = kMostPageSpans) {
  const CommonClock clock(profiles);
  const ProfileFacts facts = FactsOf(profiles, CollectiveCalls(profiles), clock);
  return ProfilePage(profiles, clock, facts, std::nullopt, {"typed", "1.2", "today"}, most);
}

json DataIn(const std::string& html) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const size_t begin = html.find(open) + open.size();
  return json::parse(html.substr(begin, html.find("</script>", begin) - begin), nullptr, false);
}

TEST(PageTest, NoDataEndsTheScript) {
  const std::string data = R"({"a":"</script><script>alert(1)</script><!--"})";
  const std::string page = HtmlPage({.title = "t <b>", .texts = {}, .data = data});
  EXPECT_EQ(CountOf(page, "</script>"), 3u);
  EXPECT_EQ(CountOf(page, "<!--"), 0u);
  EXPECT_THAT(page, HasSubstr("<title>t &lt;b&gt;</title>"));
  EXPECT_EQ(DataIn(page), json::parse(data));
}

TEST(PageTest, AsksForNothingElsewhere) {
  const std::string page = PageOf(LikelyRun(2, 100)).html;
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, Not(HasSubstr("http://")));
  EXPECT_THAT(page, Not(HasSubstr("https://")));
  EXPECT_THAT(page, Not(HasSubstr("innerHTML")));
}

TEST(PageTest, EmbeddedTextsAreWhole) {
  EXPECT_THAT(std::string(PageScript()), HasSubstr("module.exports = npumesh"));
  EXPECT_TRUE(ProfileTexts().script.ends_with("})();\n"));
  EXPECT_TRUE(PageStyle().ends_with("}\n"));
  EXPECT_TRUE(ProfileTexts().body.ends_with("</div>\n"));
}

TEST(ProfilePageTest, TheDataHaveEverySpan) {
  const std::vector<RankProfile> profiles = LikelyRun(2, 1000);
  const ProfilePageText page = PageOf(profiles);
  EXPECT_EQ(page.left_out, 0u);
  const json data = DataIn(page.html);
  ASSERT_TRUE(data.is_object());
  size_t spans = 0;
  for (const json& rank : data.at("ranks")) {
    for (const json& lane : rank.at("lanes")) {
      spans += lane.at("begin").size();
      for (const char* list :
           {"length", "arrived", "kind", "span_name", "type", "group", "bytes", "step", "number"}) {
        EXPECT_EQ(lane.at(list).size(), lane.at("begin").size()) << list;
      }
      for (const json& gap : lane.at("begin")) EXPECT_GE(gap.get<int64_t>(), 0);
    }
    spans += rank.at("memory").at("at").size();
  }
  EXPECT_EQ(spans, profiles[0].spans.size() + profiles[1].spans.size());
  EXPECT_EQ(data.at("ranks")[0].at("lanes")[0].at("name"), "steps");
  EXPECT_EQ(data.at("facts").at("world_size"), 2);
  EXPECT_EQ(data.at("command"), "typed");
  EXPECT_EQ(data.at("version"), "1.2");
  EXPECT_EQ(data.at("written"), "today");
}

TEST(ProfilePageTest, LeavesOutTheShortestSpans) {
  std::vector<RankProfile> profiles = {ProfileOf(0, 1)};
  for (int i = 0; i < 10; ++i) AddOperator(profiles[0], 0, 100 * i, 100 * i + 5 + i % 5);
  const ProfilePageText page = PageOf(profiles, 3);
  EXPECT_EQ(page.left_out, 7u);
  const json data = DataIn(page.html);
  EXPECT_EQ(data.at("ranks")[0].at("lanes")[0].at("length"), json({8, 9, 9}));
  EXPECT_THAT(page.html, HasSubstr("shows the 7 shortest spans only as shares"));
  // What is not there one by one is there as sums, of operators (kind 2).
  const json& rest = data.at("ranks")[0].at("lanes")[0].at("rest");
  const json& sums = rest.at("sums").at("2");
  EXPECT_EQ(sums.size(), rest.at("parts").get<size_t>());
  EXPECT_EQ(rest.at("sums").size(), 1u);
}

// The page said "-" where the terminal said "1% of what memory allows".
TEST(ProfilePageTest, SaysOfEachOperatorHowNearItIsToItsLimit) {
  const MachineLimits limits{100, 10};
  OperatorFacts by_bytes;
  by_bytes.gbytes = 1;
  OperatorFacts by_both;
  by_both.gflops = 20;
  by_both.gbytes = 5;
  by_both.intensity = 4;  // left of the ridge: memory allows 40 GFLOP/s
  OperatorFacts by_core = by_both;
  by_core.intensity = 50;
  EXPECT_EQ(LimitText(by_bytes, limits), "10% of what memory allows");
  EXPECT_EQ(LimitText(by_both, limits), "50% of what memory allows");
  EXPECT_EQ(LimitText(by_core, limits), "20% of what one core allows");
  EXPECT_EQ(LimitText(OperatorFacts(), limits), "");
  ProfileFacts facts;
  facts.types = {by_bytes, OperatorFacts()};
  const json types = ProfileReport(facts, limits).details.at("types");
  EXPECT_EQ(types[0].at("limited_by"), "memory");
  EXPECT_EQ(types[0].at("part_of_limit"), 0.1);
  EXPECT_TRUE(types[1].at("limited_by").is_null());
  EXPECT_TRUE(types[1].at("part_of_limit").is_null());
}

}  // namespace
}  // namespace npumesh::testing
