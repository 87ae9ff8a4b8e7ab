#include "launch/guide/page_search.h"

#include <gmock/gmock.h>

namespace npumesh {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kPage[] =
    "# Comparing dumps\n"
    "\n"
    "How two runs part.\n"
    "\n"
    "## Laws\n"
    "\n"
    "<!-- printed -->\n"
    "```\n"
    "# not a heading\n"
    "verdict: rank 2 breaks a law\n"
    "```\n"
    "\n"
    "## A table\n"
    "\n"
    "| word | is |\n"
    "|---|---|\n"
    "| **replay** | one [node](x.md#y) run again with `inputs` |\n";

std::vector<std::string> Headings(const std::vector<PageHit>& hits) {
  std::vector<std::string> headings;
  for (const PageHit& hit : hits) headings.push_back(hit.section->heading);
  return headings;
}

TEST(PageSearch, ABlockOfCodeHasNoHeadings) {
  const std::vector<PageSection> sections = SectionsOf("docs/compare.md", kPage);
  ASSERT_EQ(sections.size(), 3u);
  EXPECT_EQ(sections[1].title, "Comparing dumps");
  EXPECT_EQ(sections[1].heading, "Laws");
  EXPECT_EQ(sections[1].line, 5);
  EXPECT_EQ(sections[2].line, 13);
}

TEST(PageSearch, AHeadingCountsMoreThanText) {
  const std::vector<PageSection> sections = SectionsOf("docs/compare.md", kPage);
  EXPECT_THAT(Headings(SearchPages(sections, {"LAW"})), ElementsAre("Laws"));
  EXPECT_THAT(Headings(SearchPages(sections, {"table"})), ElementsAre("A table"));
  // The title of the page counts for all of its sections; the section of the heading comes first.
  EXPECT_THAT(Headings(SearchPages(sections, {"dumps"})),
              ElementsAre("Comparing dumps", "Laws", "A table"));
}

TEST(PageSearch, AllWordsMustBeThere) {
  const std::vector<PageSection> sections = SectionsOf("docs/compare.md", kPage);
  EXPECT_THAT(Headings(SearchPages(sections, {"rank", "dumps"})), ElementsAre("Laws"));
  EXPECT_THAT(SearchPages(sections, {"rank", "replay"}), IsEmpty());
  EXPECT_THAT(SearchPages(sections, {" "}), IsEmpty());
  EXPECT_THAT(SearchPages(sections, {}), IsEmpty());
}

TEST(PageSearch, AnExcerptIsWhatPeopleRead) {
  const std::vector<PageSection> sections = SectionsOf("docs/compare.md", kPage);
  EXPECT_EQ(SearchPages(sections, {"replay"})[0].excerpt,
            "replay | one node run again with inputs");
  EXPECT_EQ(SearchPages(sections, {"verdict"})[0].excerpt, "verdict: rank 2 breaks a law");
  const std::vector<PageSection> wide =
      SectionsOf("docs/a.md", "# A\n" + std::string(100, 'x') + " " + std::string(300, 'y') + "\n");
  EXPECT_EQ(SearchPages(wide, {"xx"})[0].excerpt, std::string(100, 'x') + " ...");
}

TEST(PageSearch, PagesInChineseAreFoundByChineseWords) {
  std::vector<PageSection> sections = SectionsOf("docs/compare.md", kPage);
  for (PageSection& section : SectionsOf("docs/zh/a.md", "# 任务挂住 rank\n\n算子不同\n")) {
    sections.push_back(std::move(section));
  }
  EXPECT_THAT(Headings(SearchPages(sections, {"算子"})), ElementsAre("任务挂住 rank"));
  EXPECT_THAT(Headings(SearchPages(sections, {"rank"})), ElementsAre("Laws"));
}

TEST(PageSearch, TheTextSaysWhereAndHowManyMore) {
  const std::vector<PageSection> sections = SectionsOf("docs/compare.md", kPage);
  const std::string text = HitsAsText(SearchPages(sections, {"dumps"}), 2);
  EXPECT_THAT(text, HasSubstr("docs/compare.md:1  Comparing dumps\n    How two runs part.\n"));
  EXPECT_THAT(text, HasSubstr("docs/compare.md:5  Comparing dumps: Laws\n"));
  EXPECT_THAT(text, HasSubstr("1 more\n"));
  EXPECT_THAT(HitsAsText(SearchPages(sections, {"law"}), 2), Not(HasSubstr("more")));
}

TEST(PageSearch, AMissingFolderIsAnError) {
  EXPECT_FALSE(ReadPages("/no/such/folder").ok());
}

TEST(PageSearch, PagesOfTheProjectAreFound) {
  const Result<std::vector<PageSection>> pages = ReadPages(NPUMESH_PAGES);
  ASSERT_TRUE(pages.ok()) << pages.status().message();
  const std::vector<PageHit> hits = SearchPages(pages.value(), {"flight", "record"});
  ASSERT_FALSE(hits.empty());
  EXPECT_EQ(hits[0].section->page, "docs/formats/flight_record.md");
  EXPECT_FALSE(SearchPages(pages.value(), {"集合通信"}).empty());
}

}  // namespace
}  // namespace npumesh
