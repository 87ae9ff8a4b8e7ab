#include "launch/mpirun/rank_output.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <random>

#include "launch/screen/progress_line.h"

namespace npumesh {
namespace {

TEST(LineCutter, JoinsWhatComesInPieces) {
  LineCutter cutter;
  EXPECT_TRUE(cutter.Add("one").empty());
  EXPECT_EQ(cutter.Add(" line\n\nnext"), (std::vector<std::string>{"one line", ""}));
  EXPECT_EQ(cutter.Finish(), "next");
  EXPECT_EQ(cutter.Finish(), std::nullopt);
}

// "2 text" of rank 2, or nothing; pieces are apart by a bar.
std::string Cut(std::string_view line, MpiLauncher launcher = MpiLauncher::kOpenMpi4) {
  std::vector<std::string> pieces;
  for (const auto& [rank, text] : CutTags(line, launcher)) {
    pieces.push_back(fmt::format("{} {}", rank, text));
  }
  return fmt::format("{}", fmt::join(pieces, "|"));
}

TEST(CutTags, OnlyTouchesTagsOfMpirun) {
  EXPECT_EQ(Cut("[1,2]<stdout>:text"), "2 text");
  EXPECT_EQ(Cut("[1,13]<stderr>:"), "13 ");
  EXPECT_EQ(Cut("[1,1]<stderr>:[vm:1] [ 0] [1,1]<stderr>:/lib/libc.so [1,2]<stderr>:"),
            "1 [vm:1] [ 0] |1 /lib/libc.so |2 ");
  for (const char* line :
       {"text", "", "[1,2]", "[1,x]<stdout>:a", "[12]<stdout>:a", "[1,2]<in>:a", "],[",
        "[1,]<stdout>:a", "[1,99999999999]<stdout>:a", "text [1,2]<stdout>:a"}) {
    EXPECT_EQ(Cut(line), "") << line;
  }
}

TEST(CutTags, InOpenMpi5TheBlankBelongsToTheTag) {
  const auto cut = [](std::string_view line) { return Cut(line, MpiLauncher::kOpenMpi5); };
  EXPECT_EQ(cut("[1,2]<stdout>: text"), "2 text");
  EXPECT_EQ(cut("[1,2]<stdout>:   indented"), "2   indented");
  EXPECT_EQ(cut("[1,13]<stderr>: "), "13 ");
  EXPECT_EQ(cut("[1,13]<stderr>:"), "13 ");
  EXPECT_EQ(cut("[1,1]<stderr>: a [1,1]<stderr>: b"), "1 a |1 b");
  EXPECT_EQ(cut("text"), "");
  EXPECT_EQ(Cut("[1,2]<stdout>: text"), "2  text") << "before, a blank was the rank's";
}

TEST(CutTags, InMpichTheTagBeginsWithAMark) {
  const auto cut = [](std::string_view line) { return Cut(line, MpiLauncher::kMpich); };
  EXPECT_EQ(cut("\x1f[2] text"), "2 text");
  EXPECT_EQ(cut("\x1f[2]   indented"), "2   indented");
  EXPECT_EQ(cut("\x1f[13] "), "13 ");
  EXPECT_EQ(cut("\x1f[0] x = [1] \x1f[1]  1\x1f[1]  of 2"), "0 x = [1] |1  1|1  of 2");
  EXPECT_EQ(cut("\x1f[0] a\x1f"), "0 a\x1f") << "the rank's own";
  for (const char* line :
       {"text", "", "[2] text", "\x1f", "\x1f[2]", "\x1f[2]text", "\x1f[] a", "\x1f[x] a",
        "\x1f[ 0] a", "\x1f[99999999999] a", "[proxy:0@vm] a", "[1,2]<stdout>:text"}) {
    EXPECT_EQ(cut(line), "") << line;
  }
}

const std::string kRule(74, '-');

TEST(RankOutput, ShortensTagsAndKeepsTheRest) {
  RankOutput output;
  EXPECT_EQ(output.Add("[1,0]<stdout>:a\n[1,1]<st"), "[0] a\n");
  EXPECT_EQ(output.Add("dout>:b\nmpirun says\n[1,0]<stdout>:end"), "[1] b\nmpirun says\n");
  EXPECT_EQ(output.Finish(), "[0] end\n");
}

// Symptom: "[0] rank 0[1,1]<stdout>:rank 1 of 2" and "[0]  of 2", where two ranks wrote "rank R of
// 2" in pieces.
TEST(RankOutput, JoinsPiecesOfRanksThatWriteAtOnce) {
  RankOutput output;
  EXPECT_EQ(output.Add("[1,0]<stdout>:rank 0[1,1]<stdout>:rank 1 of 2\n"), "[1] rank 1 of 2\n");
  EXPECT_EQ(output.Add("[1,0]<stdout>: of 2\n[1,0]<stdout>:next"), "[0] rank 0 of 2\n");
  EXPECT_EQ(output.Add("[1,1]<stdout>:un[1,2]<stdout>:\n"), "[2] \n");
  EXPECT_EQ(output.Finish(), "[0] next\n[1] un\n");
}

// How each launcher writes a line of a rank.
struct TagForm {
  MpiLauncher launcher;
  const char* begin;
  const char* end;

  std::string Tag(int rank) const { return fmt::format("{}{}{}", begin, rank, end); }
  std::string Line(int rank, std::string_view text) const {
    return fmt::format("{}{}\n", Tag(rank), text);
  }
};

constexpr TagForm kTagForms[] = {{MpiLauncher::kOpenMpi4, "[1,", "]<stderr>:"},
                                 {MpiLauncher::kOpenMpi5, "[1,", "]<stderr>: "},
                                 {MpiLauncher::kMpich, "\x1f[", "] "}};

// Lines of three ranks, each cut at random and the pieces mixed at random, as mpirun joins them.
void JoinsRandomPieces(const TagForm& form) {
  std::mt19937 random(1);
  const auto below = [&](size_t bound) { return random() % bound; };
  for (int round = 0; round < 1000; ++round) {
    std::array<std::string, 3> left;
    std::array<std::string, 3> expected;
    std::array<std::string, 3> seen;
    for (size_t rank = 0; rank < left.size(); ++rank) {
      for (size_t line = below(4); line > 0; --line) {
        const std::string text = std::string(below(6), "ab [,]<:"[below(8)]) + "\n";
        left[rank] += text;
        expected[rank] += fmt::format("[{}] {}", rank, text);
      }
    }
    RankOutput output(form.launcher);
    std::string printed;
    while (left != std::array<std::string, 3>{}) {
      const size_t rank = below(left.size());
      const size_t size = std::min(left[rank].size(), 1 + below(7));
      // mpirun tags each piece, and each line within it.
      std::string text;
      for (const char letter : left[rank].substr(0, size)) {
        if (text.empty() || text.back() == '\n') text += form.Tag(static_cast<int>(rank));
        text += letter;
      }
      left[rank].erase(0, size);
      printed += output.Add(text);
    }
    printed += output.Finish();
    LineCutter cutter;
    for (const std::string& line : cutter.Add(printed)) {
      seen.at(static_cast<size_t>(line.at(1) - '0')) += line + "\n";
    }
    EXPECT_EQ(seen, expected) << form.begin << ", round " << round;
  }
}

TEST(RankOutput, JoinsRandomPieces) {
  for (const TagForm& form : kTagForms) JoinsRandomPieces(form);
}

TEST(RankOutput, OnlyOthersThanRank0SayWhoTheyAre) {
  for (const TagForm& form : kTagForms) {
    RankOutput output(form.launcher, RankPrefix::kOthers);
    EXPECT_EQ(output.Add(form.Line(0, "  a b") + form.Line(10, "c") + form.Line(0, "")),
              "  a b\n[10] c\n\n");
    EXPECT_TRUE(output.rank_spoke());
    EXPECT_FALSE(output.mpirun_spoke());
  }
}

TEST(RankOutput, KeepsProgressApart) {
  for (const TagForm& form : kTagForms) {
    RankOutput output(form.launcher, RankPrefix::kOthers);
    EXPECT_EQ(output.TakeProgress(), std::nullopt);
    EXPECT_EQ(output.Add(form.Line(0, "\x1estep 1 of 9") + form.Line(0, "\x1estep 2 of 9")), "");
    EXPECT_EQ(output.TakeProgress(), "step 2 of 9");
    EXPECT_EQ(output.TakeProgress(), std::nullopt);
    EXPECT_EQ(output.Add(form.Line(0, "\x1e")), "");
    EXPECT_EQ(output.TakeProgress(), "");
    EXPECT_FALSE(output.rank_spoke());
  }
}

TEST(RankOutput, LeavesOutThatARankReturnedAnError) {
  RankOutput output;
  const std::string notice = kRule +
                             "\nPrimary job  terminated normally, but 1 process returned\n"
                             "a non-zero exit code. Per user-direction, the job has been "
                             "aborted.\n" +
                             kRule + "\n";
  EXPECT_EQ(output.Add("[1,1]<stderr>:npumesh run: no\n" + notice), "[1] npumesh run: no\n");
  EXPECT_EQ(output.Finish(), "");
}

TEST(RankOutput, KnowsTheNoticesOfOpenMpi5) {
  RankOutput output(MpiLauncher::kOpenMpi5);
  const std::string echo = kRule +
                           "\nprterun detected that one or more processes exited with non-zero\n"
                           "status, thus causing the job to be terminated.\n" +
                           kRule + "\n";
  EXPECT_EQ(output.Add("[1,1]<stderr>: no\n" + echo), "[1] no\n");
  output.Add(kRule +
             "\nprterun noticed that process rank 0 with PID 40 on node vm exited on\n"
             "signal 9 (Killed).\n" +
             kRule + "\n");
  EXPECT_FALSE(output.mpirun_spoke());
}

// Twenty lines of guesses become one, and what mpirun says of Ctrl-C goes.
TEST(RankOutput, SaysShortlyThatAHostCannotBeReached) {
  for (const char* name : {"ORTE", "PRTE"}) {
    RankOutput output;
    const std::string said = fmt::format(
        "{} was unable to reliably start one or more daemons.\nThis usually is caused by:\n\n"
        "* not finding the required libraries and/or binaries on\n  one or more nodes.\n",
        name);
    EXPECT_EQ(output.Add(kRule + "\n" + said + kRule + "\n"),
              "mpirun could not start its daemon on a host\n");
    EXPECT_TRUE(output.mpirun_spoke());
  }
  RankOutput output;
  EXPECT_EQ(output.Add("mpirun: Forwarding signal 10 to job\n[1,0]<stdout>:a\n"), "[0] a\n");
}

TEST(RankOutput, KnowsThatAHostIsLost) {
  RankOutput output(MpiLauncher::kOpenMpi5);
  EXPECT_FALSE(output.lost_host());
  const std::string said =
      "PRTE has lost communication with a remote daemon.\n\n"
      "  HNP daemon   : [prterun-host0-83@0,0] on node host0\n"
      "  Remote daemon: [prterun-host0-83@0,1] on node host1\n";
  EXPECT_EQ(output.Add(kRule + "\n" + said + kRule + "\n"), said);
  EXPECT_TRUE(output.lost_host());
}

const std::string kHydrasNotice =
    "\n" + std::string(83, '=') +
    "\n=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 67 RUNNING AT vm\n"
    "=   EXIT CODE: 9\n=   CLEANING UP REMAINING PROCESSES\n"
    "=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES\n" +
    std::string(83, '=') +
    "\nYOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)\n"
    "This typically refers to a problem with your application.\n"
    "Please see the FAQ page for debugging suggestions\n";

TEST(RankOutput, OfMpichHasItsTagsAlready) {
  RankOutput output(MpiLauncher::kMpich);
  EXPECT_EQ(output.Add("\x1f[0] a\n\x1f[1]   indented\n\x1f[12] \n"),
            "[0] a\n[1]   indented\n[12] \n");
  EXPECT_TRUE(output.rank_spoke());
  EXPECT_FALSE(output.mpirun_spoke());
  EXPECT_EQ(output.death_signal(), 0);
}

TEST(RankOutput, OfMpichTellsWhichSignalEndedARank) {
  RankOutput output(MpiLauncher::kMpich);
  EXPECT_EQ(output.Add(kHydrasNotice), "a rank was ended by signal 9\n");
  EXPECT_EQ(output.death_signal(), 9);
  EXPECT_FALSE(output.mpirun_spoke());
}

TEST(RankOutput, OfMpichKnowsWhatMpiexecSays) {
  RankOutput output(MpiLauncher::kMpich);
  EXPECT_EQ(output.Add("[proxy:0@vm] HYDU_create_process: execvp error on file /nonexistent\n"),
            "[proxy:0@vm] HYDU_create_process: execvp error on file /nonexistent\n");
  EXPECT_TRUE(output.mpirun_spoke());
  EXPECT_FALSE(output.rank_spoke());
  for (const char* line : {"YOUR APPLICATION TERMINATED WITH THE EXIT STRING: (signal )",
                           "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 99)",
                           "\x1f[0] YOUR APPLICATION TERMINATED (signal 9)"}) {
    output.Add(std::string(line) + "\n");
    EXPECT_EQ(output.death_signal(), 0) << line;
  }
}

TEST(RankOutput, KnowsWhichRankASignalHasEnded) {
  RankOutput output;
  EXPECT_THAT(output.deaths(), testing::IsEmpty());
  output.Add(kRule +
             "\nmpirun noticed that process rank 12 with PID 40 on node vm exited on\n"
             "signal 9 (Killed).\n" +
             kRule + "\n");
  EXPECT_THAT(output.deaths(), testing::ElementsAre(std::pair(12, 9)));
  RankOutput of_mpich(MpiLauncher::kMpich);
  of_mpich.Add(kHydrasNotice);
  EXPECT_THAT(of_mpich.deaths(), testing::ElementsAre(std::pair(-1, 9)));
}

TEST(RankOutput, TellsInALineThatARankHasVanished) {
  RankOutput output;
  const std::string notice = kRule +
                             "\nmpirun has exited due to process rank 1 with PID 0 on\n"
                             "node vm exiting improperly. There are three reasons this could "
                             "occur:\n\n1. this process did not call \"init\" before exiting\n" +
                             kRule + "\n";
  EXPECT_EQ(output.Add(notice), "rank 1 has ended before the job, without an error\n");
  EXPECT_EQ(output.vanished(), 1);
  EXPECT_FALSE(output.mpirun_spoke()) << "the ranks had started";
  EXPECT_EQ(RankOutput().vanished(), -1);
}

TEST(RankOutput, KnowsThatAComparisonDiffers) {
  RankOutput output;
  EXPECT_EQ(output.Add(fmt::format("[1,0]<stderr>:{}\n", kVerdictMark)), "");
  EXPECT_TRUE(output.told_verdict());
  RankOutput other;
  EXPECT_EQ(other.Add(fmt::format("[1,0]<stderr>:{}x\n", kVerdictMark)),
            fmt::format("[0] {}x\n", kVerdictMark));
  EXPECT_FALSE(other.told_verdict());
}

std::string LogLine(int rank, const std::string& text) {
  return fmt::format(
      "[1,{0}]<stderr>:[ERROR] NPUMESH({1},hang) rank {0}:2026-11-27-10:00:0{0}.123."
      "456 [collectives/contract/request.cc:{0}]{1} {2}\n",
      rank, 4000 + rank, text);
}

// Regression: of 64 ranks a disagreement was 128 lines of one text.
TEST(RankOutput, FoldsWhatRanksSayInTheSameWords) {
  const std::string text = "allreduce \"x\" (group all, call 5): count differs: rank 1 has 128";
  const std::string other = "another message that all ranks write in the same words, nearly";
  RankOutput output(MpiLauncher::kOpenMpi4, RankPrefix::kAll, true);
  const std::string first = output.Add(LogLine(2, text));
  EXPECT_TRUE(first.starts_with("[2] [ERROR] NPUMESH(4002,hang)")) << first;
  for (const int rank : {0, 3, 1}) EXPECT_EQ(output.Add(LogLine(rank, text)), "");
  const std::string folded =
      "[0-1,3] the same as rank 2: allreduce \"x\" (group all, call 5): count differs: rank 1 "
      "has...\n";
  EXPECT_TRUE(output.Add(LogLine(0, other)).starts_with(folded + "[0] [ERROR]"));
  EXPECT_EQ(output.Add(LogLine(1, other)), "");
  EXPECT_EQ(output.Finish(), fmt::format("[1] the same as rank 0: {}...\n", other.substr(0, 60)));
  // A rank that says it again is heard again, and what is short stays.
  EXPECT_NE(output.Add(LogLine(2, text)), "");
  EXPECT_NE(output.Add(LogLine(2, text)), "");
  EXPECT_EQ(output.Add("[1,0]<stderr>:done\n[1,1]<stderr>:done\n"), "[0] done\n[1] done\n");
  RankOutput whole;
  EXPECT_NE(whole.Add(LogLine(0, text)), "");
  EXPECT_NE(whole.Add(LogLine(1, text)), "");
}

TEST(RankOutput, KeepsOtherNotices) {
  RankOutput output;
  EXPECT_EQ(output.Add(kRule + "\nNo such host: h9\n"), "");
  EXPECT_EQ(output.Add(kRule + "\n"), "No such host: h9\n");
  EXPECT_EQ(output.Add(kRule + "\ncut off"), "");
  EXPECT_EQ(output.Finish(), "cut off\n");
}

TEST(RankOutput, KnowsWhoSpoke) {
  RankOutput output;
  output.Add(kRule + "\nmpirun noticed that process rank 1 exited on signal 9 (Killed).\n" + kRule +
             "\n");
  EXPECT_FALSE(output.mpirun_spoke());
  output.Add("[1,0]<stdout>:a\n");
  EXPECT_TRUE(output.rank_spoke());
  output.Add(kRule + "\nThere are not enough slots\n" + kRule + "\n");
  EXPECT_TRUE(output.mpirun_spoke());
}

}  // namespace
}  // namespace npumesh
