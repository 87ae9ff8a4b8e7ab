// `npumesh launch`: starts N ranks of an npumesh sub-command, or of any program, by mpirun.
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "launch/catalog/variable_notices.h"
#include "launch/commands/build_facts.h"
#include "launch/commands/command.h"
#include "launch/mpirun/child_process.h"
#include "launch/mpirun/mpirun_plan.h"
#include "launch/mpirun/open_files.h"
#include "launch/mpirun/rank_output.h"
#include "launch/mpirun/segment_folder.h"
#include "launch/ranks/warnings.h"
#include "launch/record/foreign/job_folder.h"
#include "launch/record/launch_note.h"
#include "launch/record/record_join.h"
#include "launch/report/command_report.h"
#include "launch/run/run_story.h"
#include "launch/screen/progress_line.h"
#include "launch/screen/screen.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/files/system_call.h"
#include "runtime/base/log.h"
#include "runtime/base/process/host_name.h"
#include "runtime/base/text/nearest_name.h"
#include "runtime/base/text/strings.h"
#include "runtime/world/topology.h"

namespace npumesh {
namespace {

Result<std::vector<Host>> HostsOf(const LaunchOptions& options) {
  if (!options.hosts.empty()) return ParseHosts(options.hosts);
  if (options.host_file.empty()) return std::vector<Host>();
  NPUMESH_ASSIGN_OR_RETURN(const std::string content, ReadFile(options.host_file, 1 << 20));
  return ParseHostFile(content, options.host_file);
}

Result<LaunchPlace> FindPlace(std::vector<std::string> sub_commands) {
  LaunchPlace place;
  const char* folders = secure_getenv("PATH");
  place.launcher = LauncherOf(NPUMESH_MPI_NAME, NPUMESH_MPI_VERSION);
  const bool mpich = place.launcher == MpiLauncher::kMpich;
  NPUMESH_ASSIGN_OR_RETURN(place.mpirun, FindProgram(mpich ? NPUMESH_MPIEXEC : "mpirun",
                                                     folders == nullptr ? "" : folders,
                                                     mpich ? "mpich" : "openmpi-bin"));
  std::error_code error;
  place.self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) return Error(Code::kIo, "/proc/self/exe: {}", error.message());
  NPUMESH_ASSIGN_OR_RETURN(const Topology topology, Topology::Detect());
  place.cores = topology.core_count();
  place.root = geteuid() == 0;
  place.sub_commands = std::move(sub_commands);
  return place;
}

// Passes the streams of mpirun on to ours. Ranks of npumesh's own commands get our screen: its
// width, its colours, and a line of the terminal for their progress.
class RankScreen {
 public:
  RankScreen(MpiLauncher launcher, bool own)
      : own_(own),
        output_(launcher, PrefixFor(own)),
        errors_(launcher, PrefixFor(own), true),
        on_output_(ScreenOf(STDOUT_FILENO)) {
    on_errors_ = ScreenOf(STDERR_FILENO);
    if (!on_errors_.terminal) on_errors_.columns = 0;
    if (!own) on_output_ = on_errors_ = Screen();
  }

  const RankOutput& output() const { return output_; }
  const RankOutput& errors() const { return errors_; }

  // What the ranks should know of this screen.
  std::vector<std::string> Variables() const {
    std::vector<std::string> variables;
    if (own_) variables.push_back(fmt::format("{}=1", kVerdictVariable));
    if (on_output_.columns > 0) variables.push_back(fmt::format("COLUMNS={}", on_output_.columns));
    if (on_errors_.terminal) variables.push_back(fmt::format("{}=1", kProgressVariable));
    return variables;
  }

  ByteSink Output() {
    return [this](std::string_view bytes) { PassOn(bytes, output_, on_output_, STDOUT_FILENO); };
  }
  ByteSink Errors() {
    return [this](std::string_view bytes) { PassOn(bytes, errors_, on_errors_, STDERR_FILENO); };
  }

 private:
  static RankPrefix PrefixFor(bool own) { return own ? RankPrefix::kOthers : RankPrefix::kAll; }

  void PassOn(std::string_view bytes, RankOutput& lines, const Screen& screen, int to) {
    const std::string text = bytes.empty() ? lines.Finish() : lines.Add(bytes);
    if (!text.empty()) ShowProgress("");
    const std::string shown = Shown(text, screen);
    if (to == STDOUT_FILENO) {
      Print(shown);
    } else {
      static_cast<void>(WriteAll(to, shown));
    }
    if (const std::optional<std::string> progress = lines.TakeProgress()) ShowProgress(*progress);
  }

  void ShowProgress(const std::string& text) {
    if (!on_errors_.terminal || (text.empty() && !progress_)) return;
    progress_ = !text.empty();
    static_cast<void>(WriteAll(STDERR_FILENO, OverLine(text)));
  }

  const bool own_;
  RankOutput output_;
  RankOutput errors_;
  Screen on_output_;
  Screen on_errors_;
  bool progress_ = false;  // a progress line is on the terminal
};

// mpirun puts its own folder in front of PATH, and with it the system's python3 before that of a
// venv.
void NamePython() {
  const char* const folders = secure_getenv("PATH");
  const Result<std::string> python = FindProgram("python3", folders == nullptr ? "" : folders, "");
  if (python.ok()) setenv(kPythonVariable, python->c_str(), 0);
}

// On this machine a program can be looked for before mpirun is asked to.
Status CheckProgram(const LaunchOptions& options, const LaunchPlace& place, bool here) {
  const std::string& program = options.command[0];
  if (!here || RunsSubCommand(options, place) || RunsPython(options)) return Status();
  if (program.find('/') != std::string::npos) {
    if (access(program.c_str(), X_OK) == 0) return Status();
    return Error(Code::kNotFound, "{}: {}", program, std::strerror(errno));
  }
  const char* folders = secure_getenv("PATH");
  if (FindProgram(program, folders == nullptr ? "" : folders, "").ok()) return Status();
  const std::vector<std::string_view> names(place.sub_commands.begin(), place.sub_commands.end());
  const std::vector<std::string> near = NearestNames(program, names, 1);
  return Error(Code::kNotFound, "{} is neither a command of npumesh nor a program in PATH{}",
               program, near.empty() ? "" : fmt::format("; did you mean {}", near[0]));
}

ChildCare CareFor(const LaunchOptions& options, const LaunchPlace& place) {
  ChildCare care;
  care.ends_with_its_children = true;
  // `run` ends between two steps, and says at which; mpirun passes this signal on to all ranks.
  if (RunsSubCommand(options, place) && options.command[0] == "run") care.polite_signal = SIGUSR1;
  if (options.timeout > 0) care.timeout = std::chrono::seconds(options.timeout);
  return care;
}

// True when the user has chosen Open MPI's transports.
bool ChoosesTransport(const LaunchOptions& options) {
  const std::vector<std::string>& words = options.mpi_args;
  const bool word = std::any_of(words.begin(), words.end(), [](const std::string& each) {
    return each == "btl" || each == "pml" || each == "mtl";
  });
  return word || secure_getenv("OMPI_MCA_btl") != nullptr ||
         secure_getenv("OMPI_MCA_pml") != nullptr;
}

// Ranks of this host alone talk through shared memory, which lies in a folder of the job. Null: as
// Open MPI does it.
std::unique_ptr<SegmentFolder> PrepareSegments(const LaunchOptions& options, const Spread& spread,
                                               MpiLauncher launcher) {
  if (!spread.hosts.empty()) return nullptr;
  for (const std::string& path : RemoveDeadFolders(SegmentBases())) {
    NPUMESH_INFO("{} of a job that was killed is removed", path);
  }
  // MPICH leaves nothing behind.
  if (ChoosesTransport(options) || launcher == MpiLauncher::kMpich) return nullptr;
  return SegmentFolder::Make(SegmentBases(), options.ranks, launcher);
}

// What keeps mpirun's own port at the loopback address (launch/mpirun/loopback): a variable, or
// none where the library is not there. Every program that loads the library takes one entry out of
// the list, and the mpirun of Open MPI 5 becomes another program.
std::vector<std::string> LoopbackEnvironment(const LaunchPlace& place) {
  const std::filesystem::path library =
      std::filesystem::path(place.self).parent_path() / "../lib/npumesh/libnpumesh_loopback.so";
  std::error_code error;
  const std::string path = std::filesystem::canonical(library, error).string();
  // The list of preloaded libraries is cut at blanks and colons.
  if (error || path.find_first_of(" :") != path.npos) return {};
  const char* const others = secure_getenv("LD_PRELOAD");
  const bool alone = others == nullptr || others[0] == '\0';
  const std::string again =
      place.launcher == MpiLauncher::kOpenMpi5 ? fmt::format(":{}", path) : "";
  return {fmt::format("LD_PRELOAD={}{}{}{}", path, again, alone ? "" : ":", alone ? "" : others)};
}

// What mpirun is given for a job on this host alone. MPI has hwloc look for graphics cards, and its
// component "gl" asks for ten X displays at "localhost": where /etc/hosts lacks that name, each of
// them waits for a name server. No rank uses a graphics card. A list that the user gives is left as
// it is.
std::vector<std::string> OneHostEnvironment(const LaunchPlace& place) {
  std::vector<std::string> variables = LoopbackEnvironment(place);
  if (secure_getenv("HWLOC_COMPONENTS") == nullptr) variables.push_back("HWLOC_COMPONENTS=-gl");
  return variables;
}

// The value of an option among the words of a command; empty when it is not there.
std::string ValueOf(const std::string& option, const std::vector<std::string>& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].starts_with(option + "=")) return words[i].substr(option.size() + 1);
    if (words[i] == option && i + 1 < words.size()) return words[i + 1];
  }
  return "";
}

// mpirun's exit code. MPICH's gives the number of a signal as a code, and says that it was one;
// Open MPI 5's is 0 where a host is lost, and says so.
int CodeOf(const ChildEnd& end, const RankOutput& output, const RankOutput& errors) {
  if (end.code == 0 && (output.lost_host() || errors.lost_host())) {
    return ExitCode(Error(Code::kPeerLost, "a host"));
  }
  const int signal = std::max(output.death_signal(), errors.death_signal());
  return signal == 0 ? end.code : 128 + signal;
}

bool RunsRun(const LaunchOptions& options, const LaunchPlace& place) {
  return RunsSubCommand(options, place) && options.command[0] == "run";
}

// What mpirun has told of the end of the ranks.
std::vector<RankDeath> DeathsOf(const RankScreen& screen) {
  std::vector<RankDeath> deaths;
  for (const RankOutput* lines : {&screen.errors(), &screen.output()}) {
    for (const auto& [rank, signal] : lines->deaths()) deaths.push_back({rank, signal});
  }
  return deaths;
}

// Why the ranks ended, as far as it is known from outside of them.
std::string ReasonOf(const LaunchNote& note, int vanished) {
  if (note.timeout_s != 0) return fmt::format(", because of --timeout {}", note.timeout_s);
  if (note.signal != 0) return fmt::format(", because {} asked for it", SignalText(note.signal));
  if (!note.deaths.empty()) {
    const RankDeath& death = note.deaths.front();
    const std::string rank = death.rank < 0 ? "a rank" : fmt::format("rank {}", death.rank);
    return fmt::format(", because {} was ended by {}", rank, SignalText(death.signal));
  }
  if (vanished >= 0) return fmt::format(", because rank {} had ended before them", vanished);
  return note.exit_code == 5 ? ", because a rank was lost" : "";
}

// Ranks that are killed cannot end the reports of their run, and those that lose another do not
// know the signal that ended it.
Status EndReports(const LaunchOptions& options, const LaunchPlace& place, const LaunchNote& note,
                  int vanished, std::chrono::duration<double> lasted) {
  if (!RunsRun(options, place)) return Status();
  const std::string report = ValueOf("--report", options.command);
  const std::string junit = ValueOf("--junit", options.command);
  NPUMESH_RETURN_IF_ERROR(
      EndUnfinishedReports(report, junit, note.exit_code,
                           fmt::format("the ranks were ended before one of them could report{}",
                                       ReasonOf(note, vanished)),
                           lasted.count()));
  for (const RankDeath& death : note.deaths) {
    if (death.rank < 0) continue;
    NPUMESH_RETURN_IF_ERROR(
        ExplainLostRank(report, junit, death.rank, SignalText(death.signal) + " ended it"));
  }
  return Status();
}

// The folder of the flight records; empty: none are kept.
std::string RecordFolder() {
  const char* const folder = secure_getenv("NPUMESH_RECORD");
  return folder == nullptr ? "" : folder;
}

// Whether the ranks failed in a way that flight records may explain. `own`: they ran a command of
// npumesh, whose codes below 4 say what to mend.
bool AsksForRecord(int code, bool own) {
  constexpr int kRunTime = 4;
  return code != 0 && !(own && code < kRunTime);
}

// What the flight records of the job that began at `begin_ns` (time of day) say went wrong;
// nullopt: nothing, or the records are not those of this job. What cannot be read is left to
// `npumesh record`.
std::optional<Job> WrongOf(const std::string& record, int64_t begin_ns) {
  std::error_code failed;
  if (record.empty() || !std::filesystem::is_directory(record, failed)) return std::nullopt;
  Result<Job> job = ReadJob(record);
  if (!job.ok() || job->joined.problems.empty()) return std::nullopt;
  const std::string host = HostName();
  for (const RankRecord& each : job->records) {
    if (each.host == host && each.start_realtime_ns < begin_ns)
      return std::nullopt;  // an older job
  }
  return std::move(*job);
}

// What to do after a job for which AsksForRecord holds; empty: nothing that is not said already.
// `late`: the time was over. `wrong`: the verdict on its records has been printed.
std::string NextOf(int code, bool late, const std::string& record, bool wrong) {
  constexpr int kPeer = 5;
  std::error_code error;
  if (wrong) {
    return fmt::format("npumesh record {} --html record.html: where every rank was when", record);
  }
  if (!record.empty() && std::filesystem::is_directory(record, error)) {
    return fmt::format("npumesh record {}", record);
  }
  if (!record.empty() || (code != kPeer && !late)) return "";
  return "the same with NPUMESH_RECORD=records/, then npumesh record records/: where every rank "
         "was";
}

int64_t RealtimeNow() {
  return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

// What was seen of a job, for the flight records.
LaunchNote NoteOf(const LaunchOptions& options, const ChildEnd& end, const RankScreen& screen) {
  LaunchNote note;
  if (end.late) note.timeout_s = options.timeout;
  note.signal = end.signal;
  note.deaths = DeathsOf(screen);
  note.end_realtime_ns = RealtimeNow();
  return note;
}

// Prints the verdict of `npumesh record`, and adds it to the reports of a run.
Status TellWrong(const Job& job, const LaunchOptions& options, const LaunchPlace& place) {
  const std::string text = VerdictText(job.joined);
  for (const std::string_view line : Split(text, "\n")) {
    if (!line.empty()) PrintFailure("launch", line);
  }
  const std::string blame = BlameText(job.joined.blame);
  if (blame.empty() || !RunsRun(options, place)) return Status();
  return AddBlame(ValueOf("--report", options.command), ValueOf("--junit", options.command),
                  RecordReport(job.records, job.joined).details.at("look_first_at"),
                  fmt::format("look first at {}", blame));
}

// The exit code of the job. `far`: on other hosts, too.
int CodeOfJob(const ChildEnd& end, const RankScreen& screen, bool own, bool far) {
  if (end.late) return ExitCode(Error(Code::kInternal, "--timeout"));
  if (end.signal != 0) return 128 + end.signal;
  JobWords words;
  words.own = own;
  words.refused = screen.errors().mpirun_spoke() && !screen.errors().rank_spoke() &&
                  !screen.output().rank_spoke();
  words.verdict = screen.errors().told_verdict();
  words.vanished = screen.errors().vanished() >= 0;
  const int code = CodeOf(end, screen.output(), screen.errors());
  const int told = JobCode(code, words);
  if (code == 1 && told != 1 && !words.vanished && !words.refused) {
    PrintFailure("launch",
                 "mpirun ended with 1 and no rank has told a verdict: MPI could not start "
                 "the ranks, or ended them; see its words above");
  }
  if (words.refused && told != 0 && far) {
    PrintFailure("launch",
                 "mpirun could not start ranks on all hosts; each has to be reached by ssh without "
                 "a password (ssh HOST true) and have the same MPI and npumesh");
  }
  return told;
}

Result<int> Launch(const LaunchOptions& options, std::vector<std::string> sub_commands) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<Host> hosts, HostsOf(options));
  NPUMESH_ASSIGN_OR_RETURN(LaunchPlace place, FindPlace(std::move(sub_commands)));
  NPUMESH_ASSIGN_OR_RETURN(const Spread spread, SpreadRanks(hosts, options.ranks, place.cores));
  NPUMESH_RETURN_IF_ERROR(CheckProgram(options, place, hosts.empty()));
  if (RunsPython(options)) NamePython();
  NPUMESH_RETURN_IF_ERROR(RaiseOpenFiles(spread.per_host));
  // `run` says it itself, also without this command.
  if (options.command[0] != "run") PrintWarnings("launch", VariableNotices());
  const std::unique_ptr<SegmentFolder> segments = PrepareSegments(options, spread, place.launcher);
  if (segments != nullptr) place.segments = segments->path();
  ChildCare care = CareFor(options, place);
  if (spread.hosts.empty()) care.environment = OneHostEnvironment(place);
  RankScreen screen(place.launcher, RunsSubCommand(options, place));
  place.variables = screen.Variables();
  const std::string record = RecordFolder();
  if (!record.empty()) NPUMESH_RETURN_IF_ERROR(RemoveLaunchNote(record));
  const auto begin = std::chrono::steady_clock::now();
  const int64_t begin_realtime = RealtimeNow();
  NPUMESH_ASSIGN_OR_RETURN(const ChildEnd end, RunChild(MpirunWords(options, place, spread),
                                                        screen.Output(), screen.Errors(), care));
  // What is said from here on goes where the output went, perhaps; there is still to clean up.
  if (end.signal == SIGPIPE) signal(SIGPIPE, SIG_IGN);
  Status late;
  if (end.late) {
    late =
        Error(Code::kInternal, "the job was not done after {} s (--timeout); its ranks are ended",
              options.timeout);
  }
  if (end.bereft) {
    NPUMESH_WARNING("mpirun did not notice that all ranks of this host had ended; it was killed");
  }
  LaunchNote note = NoteOf(options, end, screen);
  note.exit_code = CodeOfJob(end, screen, RunsSubCommand(options, place), !spread.hosts.empty());
  if (!record.empty()) NPUMESH_RETURN_IF_ERROR(WriteLaunchNote(record, note));
  NPUMESH_RETURN_IF_ERROR(EndReports(options, place, note, screen.errors().vanished(),
                                     std::chrono::steady_clock::now() - begin));
  if (!late.ok()) PrintFailure("launch", late.message());
  const bool begun = end.late || screen.errors().rank_spoke() || screen.output().rank_spoke();
  if (!begun || !AsksForRecord(note.exit_code, RunsSubCommand(options, place))) {
    return note.exit_code;
  }
  const std::optional<Job> wrong = WrongOf(record, begin_realtime);
  if (wrong) {
    NPUMESH_RETURN_IF_ERROR(TellWrong(*wrong, options, place));
  }
  const std::string next = NextOf(note.exit_code, end.late, record, wrong.has_value());
  if (!next.empty()) PrintFailure("launch", fmt::format("next: {}", next));
  return note.exit_code;
}

}  // namespace

void AddLaunch(CLI::App& app, Action& action) {
  auto options = std::make_shared<LaunchOptions>();
  CLI::App* launch = app.add_subcommand("launch", "Start N ranks by mpirun");
  AddFooter(
      *launch, "a comparison of the ranks differs",
      {"npumesh launch -n 4 -- run mp/ --steps 10",
       "npumesh launch -n 4 --hosts node1:2,node2:2 -- ./my_hccl_program --size 1M",
       "npumesh launch -n 2 -- python train.py"},
      "Ends with what the ranks return, with 3 when the program is not there, with 4 when the "
      "ranks cannot be started or --timeout is over, with 5 when a rank was lost, with 128 + N "
      "when signal N has ended the job.\n");
  launch->add_option("-n,--ranks", options->ranks, "Number of ranks")
      ->required()
      ->check(CLI::Range(1, 1 << 20));
  CLI::Option* hosts =
      launch->add_option("--hosts", options->hosts, "Hosts and their ranks: h1:2,h2:2")
          ->type_name("HOST:N,...");
  launch->add_option("--hostfile", options->host_file, "File of lines \"host slots=N\"")
      ->type_name("FILE")
      ->excludes(hosts);
  launch
      ->add_option("--bind", options->bind,
                   "Cores of a rank: core, numa or none; npumesh binds by hwloc, other programs "
                   "are bound by mpirun")
      ->check(CLI::IsMember({"core", "numa", "none"}));
  launch->add_option("--timeout", options->timeout, "Seconds after which all ranks end")
      ->check(CLI::Range(1, 1'000'000'000));
  launch->add_option("--mpi-arg", options->mpi_args, "One more word for mpirun")
      ->type_name("WORD")
      ->allow_extra_args(false);
  launch
      ->add_option("command", options->command,
                   "After --: a sub-command of npumesh, or a program, and its words")
      ->required();
  launch->callback([options, &app, &action] {
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
      names.push_back(command->get_name());
    }
    action = [options, names] {
      const Result<int> code = Launch(*options, names);
      return code.ok() ? *code : Fail("launch", code.status());
    };
  });
}

}  // namespace npumesh
