#include "launch/mpirun/host_list.h"

#include <gmock/gmock.h>

namespace npumesh {
namespace {

using testing::HasSubstr;
using Hosts = std::vector<Host>;

TEST(ParseHosts, NamesAndSlots) {
  EXPECT_EQ(*ParseHosts("h1:2,h2:2"), (Hosts{{"h1", 2}, {"h2", 2}}));
  EXPECT_EQ(*ParseHosts("h1"), (Hosts{{"h1", 0}}));
}

TEST(ParseHosts, ErrorsQuoteThePart) {
  for (const auto& [text, error] :
       std::vector<std::pair<std::string, std::string>>{{"", "expected a host"},
                                                        {"h1,,h2", "expected a host"},
                                                        {"h1:x", "\"x\""},
                                                        {"h1:0", "slots of h1"},
                                                        {"-x:2", "expected a host"},
                                                        {"h1:1,h1:1", "host h1 is named twice"}}) {
    const Status status = ParseHosts(text).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(error)) << text;
  }
}

TEST(ParseHostFile, TakesOpenMpiLines) {
  const std::string text = "# nodes\nh1 slots=2 max_slots=4\n\n  h2:2 # second\nh3\r\n";
  EXPECT_EQ(*ParseHostFile(text, "hosts"), (Hosts{{"h1", 2}, {"h2", 2}, {"h3", 0}}));
}

TEST(ParseHostFile, ErrorsNameFileAndLine) {
  EXPECT_THAT(std::string(ParseHostFile("h1\nh2 slots=many\n", "hosts").status().message()),
              HasSubstr("hosts:2: "));
  EXPECT_THAT(std::string(ParseHostFile("# none\n", "hosts").status().message()),
              HasSubstr("hosts: names no host"));
}

TEST(SpreadRanks, EveryHostRunsTheSameNumber) {
  struct Case {
    Hosts hosts;
    int ranks, per_host;
    size_t used;
    bool oversubscribed;
  };
  const std::vector<Case> cases = {
      {{}, 2, 2, 0, false},
      {{}, 8, 8, 0, true},
      {{{"a", 2}, {"b", 2}}, 4, 2, 2, false},
      {{{"a", 2}, {"b", 2}}, 2, 2, 1, false},
      {{{"a", 2}, {"b", 2}}, 8, 4, 2, true},
      {{{"a", 0}, {"b", 0}}, 6, 3, 2, false},
      {{{"a", 4}, {"b", 0}}, 4, 2, 2, false},
  };
  for (const Case& c : cases) {
    const Result<Spread> spread = SpreadRanks(c.hosts, c.ranks, 2);
    ASSERT_TRUE(spread.ok()) << spread.status().message();
    EXPECT_EQ(spread->per_host, c.per_host);
    EXPECT_EQ(spread->hosts.size(), c.used);
    EXPECT_EQ(spread->oversubscribed, c.oversubscribed);
  }
}

TEST(SpreadRanks, UnequalHostsAreRefused) {
  const Status unequal = SpreadRanks({{"a", 2}, {"b", 2}}, 3, 2).status();
  EXPECT_THAT(std::string(unequal.message()), HasSubstr("different numbers of ranks (a 2, b 1)"));
  const Status odd = SpreadRanks({{"a", 0}, {"b", 0}}, 3, 2).status();
  EXPECT_THAT(std::string(odd.message()), HasSubstr("use a multiple of 2"));
}

}  // namespace
}  // namespace npumesh
