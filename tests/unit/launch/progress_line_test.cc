#include "launch/screen/progress_line.h"

#include <gtest/gtest.h>

#include "launch/export/export_job.h"

namespace npumesh {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(DurationText, HasOneOrTwoUnits) {
  EXPECT_EQ(DurationText(seconds(0)), "0 s");
  EXPECT_EQ(DurationText(seconds(59)), "59 s");
  EXPECT_EQ(DurationText(seconds(200)), "3 min 20 s");
  EXPECT_EQ(DurationText(seconds(7500)), "2 h 5 min");
}

TEST(ProgressText, SaysWhatIsLeftWhenItCanKnow) {
  EXPECT_EQ(ProgressText("step 1 of 1000", 0.001, milliseconds(2000)), "step 1 of 1000, 0 %");
  EXPECT_EQ(ProgressText("step 25 of 100", 0.25, milliseconds(20'000)),
            "step 25 of 100, 25 %, 1 min 0 s left");
  EXPECT_EQ(ProgressText("step 100 of 100", 1, milliseconds(20'000)),
            "step 100 of 100, 100 %, 0 s left");
}

// A clock that the test sets, and what was written.
struct Scene {
  milliseconds now{5000};
  std::string written;

  std::unique_ptr<ProgressLine> Line(ProgressForm form) {
    return std::make_unique<ProgressLine>(
        form, [this] { return now; }, [this](std::string_view text) { written += text; });
  }
};

TEST(ProgressLine, WaitsASecondAndIsGoneAtTheEnd) {
  Scene scene;
  auto line = scene.Line(ProgressForm::kTerminal);
  line->Show("a", 0.1);
  EXPECT_EQ(scene.written, "");
  scene.now += milliseconds(1000);
  line->Show("b", 0.5);
  EXPECT_EQ(scene.written, "\rb, 50 %, 1 s left\x1b[K");
  scene.now += milliseconds(100);
  line->Show("c", 0.6);  // too early
  scene.now += milliseconds(100);
  scene.written.clear();
  line->Show("d", 0.8);
  EXPECT_EQ(scene.written, "\rd, 80 %, 1 s left\x1b[K");
  scene.written.clear();
  line.reset();
  EXPECT_EQ(scene.written, "\r\x1b[K");
}

TEST(ProgressLine, OfAnExportSaysWhatTimeIsLeft) {
  Scene scene;
  const auto tell = TellWeights(scene.Line(ProgressForm::kTerminal));
  tell({1, 8});
  EXPECT_EQ(scene.written, "");
  scene.now += milliseconds(2000);
  tell({2, 8});
  EXPECT_EQ(scene.written, "\rweight 2 of 8, 25 %, 6 s left\x1b[K");
}

TEST(ProgressLine, LeavesNoTraceOfShortWork) {
  Scene scene;
  scene.Line(ProgressForm::kTerminal)->Show("a", 1);
  EXPECT_EQ(scene.written, "");
}

TEST(ProgressLine, OfARankIsAMessage) {
  Scene scene;
  auto line = scene.Line(ProgressForm::kMessage);
  scene.now += milliseconds(2000);
  line->Show("b", 0.5);
  line->Clear();
  EXPECT_EQ(scene.written,
            "\x1e"
            "b, 50 %, 2 s left\n\x1e\n");
}

TEST(ProgressLine, IsNotWrittenIntoPipes) {
  Scene scene;
  auto line = scene.Line(ProgressForm::kNone);
  scene.now += milliseconds(2000);
  line->Show("b", 0.5);
  line.reset();
  EXPECT_EQ(scene.written, "");
}

TEST(ProgressForm, IsThatOfTheTerminalOrOfLaunch) {
  for (const std::string_view rank_variable : {"PMIX_RANK", "PMI_RANK"}) {
    const auto with = [=](bool terminal, bool rank, const char* launched) {
      return ProgressFormOf({.terminal = terminal}, [=](const char* name) -> const char* {
        if (name == rank_variable) return rank ? "0" : nullptr;
        return std::string_view(name) == kProgressVariable ? launched : nullptr;
      });
    };
    EXPECT_EQ(with(true, false, nullptr), ProgressForm::kTerminal);
    EXPECT_EQ(with(false, false, nullptr), ProgressForm::kNone);
    EXPECT_EQ(with(false, true, "1"), ProgressForm::kMessage);
    EXPECT_EQ(with(false, true, "0"), ProgressForm::kNone);
    EXPECT_EQ(with(false, false, "1"), ProgressForm::kNone);
  }
}

}  // namespace
}  // namespace npumesh
