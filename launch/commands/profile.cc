// `npumesh profile`: where the time of a profiled run went.
#include <unistd.h>

#include "launch/commands/answer.h"
#include "launch/commands/versions.h"
#include "launch/profile/joined_trace.h"
#include "launch/profile/machine_limits.h"
#include "launch/profile/profile_compare.h"
#include "launch/profile/profile_page.h"
#include "launch/profile/profile_report.h"
#include "launch/screen/screen.h"
#include "runtime/base/files/secure_file.h"

namespace npumesh {
namespace {

struct ProfileOptions {
  std::string folder;
  std::vector<std::string> compared;  // two folders, or empty
  std::optional<double> fail_above;   // with `compared`
  std::string trace;                  // empty: not written
  std::string html;                   // empty: not written
  uint64_t trace_bytes = kMostTraceBytes;
  size_t most = 10;
  bool no_limits = false;
  bool as_json = false;
};

Result<TraceSummary> WriteTraceFile(const std::string& path, uint64_t most_bytes,
                                    const std::vector<RankProfile>& profiles,
                                    const CollectiveCalls& calls, const CommonClock& clock) {
  NPUMESH_ASSIGN_OR_RETURN(std::unique_ptr<SecureFile> file,
                           SecureFile::Create(path, FileKind::kData));
  const auto append = [&](std::string_view text) { return file->Append(text); };
  NPUMESH_ASSIGN_OR_RETURN(const TraceSummary summary,
                           WriteTrace(profiles, calls, clock, append, most_bytes));
  NPUMESH_RETURN_IF_ERROR(file->Commit());
  return summary;
}

// Says in text and report that a file lacks something.
void AddOmission(Answer& answer, const std::string& text) {
  answer.text += fmt::format("warning: {}\n", text);
  answer.report.Add(Severity::kWarning, text);
}

Result<std::vector<RankProfile>> ReadAndCheck(const std::string& folder) {
  NPUMESH_ASSIGN_OR_RETURN(std::vector<RankProfile> profiles, ReadProfiles(folder));
  const Status times = CheckTimes(profiles);
  if (!times.ok()) return times.WithContext(folder);
  return profiles;
}

Result<Answer> ShowProfile(const ProfileOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<RankProfile> profiles, ReadAndCheck(options.folder));
  const CollectiveCalls calls(profiles);
  const CommonClock clock(profiles);
  const ProfileFacts facts = FactsOf(profiles, calls, clock);
  std::optional<MachineLimits> limits;
  if (!options.no_limits) limits = MeasureMachineLimits();
  const int columns = ScreenOf(STDOUT_FILENO).columns;
  Answer answer{0, ProfileText(facts, limits, options.most, columns), ProfileReport(facts, limits)};
  answer.next = options.html.empty()
                    ? fmt::format("npumesh profile {} --html page.html: the timeline, on a page",
                                  options.folder)
                    : fmt::format("open {} in a browser", options.html);
  if (!options.trace.empty()) {
    NPUMESH_ASSIGN_OR_RETURN(
        const TraceSummary summary,
        WriteTraceFile(options.trace, options.trace_bytes, profiles, calls, clock));
    if (summary.left_out != 0) {
      AddOmission(answer,
                  fmt::format("{} lacks {} of {} spans, of each rank the last ones, because "
                              "of --trace-bytes",
                              options.trace, summary.left_out, summary.left_out + summary.spans));
    }
  }
  if (!options.html.empty()) {
    const ProfilePageText page =
        ProfilePage(profiles, clock, facts, limits, OriginOf("npumesh profile " + options.folder));
    NPUMESH_RETURN_IF_ERROR(WriteFile(options.html, page.html, FileKind::kData));
    if (page.left_out != 0) {
      AddOmission(answer, fmt::format("the timeline of {} has the {} shortest spans only as shares "
                                      "of the time",
                                      options.html, page.left_out));
    }
  }
  return answer;
}

Result<ProfileFacts> FactsOfFolder(const std::string& folder) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<RankProfile> profiles, ReadAndCheck(folder));
  return FactsOf(profiles, CollectiveCalls(profiles), CommonClock(profiles));
}

Result<Answer> CompareFolders(const ProfileOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const ProfileFacts before, FactsOfFolder(options.compared[0]));
  NPUMESH_ASSIGN_OR_RETURN(const ProfileFacts after, FactsOfFolder(options.compared[1]));
  const ComparedProfiles compared = CompareProfiles(before, after);
  Answer answer{0, ComparedText(compared, options.most, ScreenOf(STDOUT_FILENO).columns),
                ComparedReport(compared)};
  if (compared.verdict.rank >= 0) {
    answer.next = fmt::format("npumesh profile {} --html page.html: the timeline of B, on a page",
                              options.compared[1]);
  }
  if (options.fail_above && compared.verdict.factor == 0) {
    return Error(Code::kInvalidArgument,
                 "--fail-above: no step is whole in both profiles, so there is nothing to compare");
  }
  if (options.fail_above && compared.verdict.factor > *options.fail_above) {
    answer.exit_code = 1;
    const std::string text = fmt::format("the factor {:.3f} is above {} (--fail-above)",
                                         compared.verdict.factor, *options.fail_above);
    answer.text += text + "\n";
    answer.report.Add(Severity::kError, text);
  }
  return answer;
}

constexpr std::string_view kNotes =
    "Parts of a step: computing (operators run), overlapped (while a collective is under way), "
    "moving (data of a collective move), waiting (for other ranks to arrive), preparing (copies "
    "from and to the host, plans), idle (the rest). docs/profile.md says more.\n";

}  // namespace

void AddProfile(CLI::App& app, Action& action) {
  auto options = std::make_shared<ProfileOptions>();
  CLI::App* profile =
      app.add_subcommand("profile", "Say from the profiles of all ranks where the time went");
  AddFooter(*profile, "slower than --fail-above allows",
            {"npumesh profile prof/ --html page.html --trace trace.json",
             "npumesh profile --compare before/ after/ --fail-above 1.2"},
            kNotes);
  CLI::Option* folder =
      profile->add_option("folder", options->folder, "The folder with rank_<R>.npprof files")
          ->type_name("FOLDER");
  CLI::Option* compare = profile
                             ->add_option("--compare", options->compared,
                                          "Two folders instead: what is slower in the second")
                             ->type_name("FOLDER")
                             ->expected(2)
                             ->excludes(folder);
  profile
      ->add_option("--fail-above", options->fail_above,
                   "End with 1 when the median step of the second takes more than X times that of "
                   "the first")
      ->type_name("X")
      ->check(CLI::PositiveNumber)
      ->needs(compare);
  profile->add_option("--html", options->html, "Write one page with the timeline and the tables")
      ->type_name("FILE")
      ->excludes(compare);
  CLI::Option* trace =
      profile->add_option("--trace", options->trace, "Write a trace for Perfetto or about:tracing")
          ->type_name("FILE")
          ->excludes(compare);
  profile
      ->add_option("--trace-bytes", options->trace_bytes,
                   "What the trace may take, with k, M or G; more is left out")
      ->transform(CLI::AsSizeValue(false))
      ->needs(trace)
      ->capture_default_str();
  profile->add_option("--top", options->most, "Rows of each table")
      ->check(CLI::Range(size_t{1}, size_t{1} << 30))
      ->type_name("N")
      ->capture_default_str();
  profile
      ->add_flag("--no-limits", options->no_limits,
                 "Do not measure what a core of this machine can do at most")
      ->excludes(compare);
  AddJsonFlag(*profile, options->as_json);
  profile->final_callback([options, &action] {
    if (options->folder.empty() && options->compared.empty()) {
      throw CLI::RequiredError("folder or --compare");
    }
    action = [options] {
      return Tell("profile", options->as_json,
                  options->compared.empty() ? ShowProfile(*options) : CompareFolders(*options));
    };
  });
}

}  // namespace npumesh
