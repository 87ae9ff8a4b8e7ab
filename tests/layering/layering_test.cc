#include "tests/layering/layering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

namespace npumesh {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

// A small house in a temporary folder, in order until a test breaks it.
class MadeUpHouse : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = testing::TempDir() + "npumesh_layering_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    root_ = folder;
    Write("proto/CMakeLists.txt", "add_library(npumesh_proto INTERFACE)\n");
    Write("runtime/base/names.h",
          "namespace npumesh {\nclass Apple;\nclass alignas(64) Apple final : public Fruit {\n");
    // Not the same types: members, and other namespaces.
    Write("runtime/base/other.h",
          "namespace npumesh {\nstruct Pear::Apple {\n};\nnamespace fruit {\nclass Apple {\n");
    Write("runtime/base/CMakeLists.txt", "npumesh_library(npumesh_base LIBRARIES fmt::fmt)\n");
    Write("runtime/base/status.h", "#include <string>\n");
    Write("runtime/world/CMakeLists.txt",
          "npumesh_library(npumesh_world DEPENDS npumesh_base LIBRARIES MPI::MPI_C)\n");
    Write("runtime/world/world.cc", "#include <mpi.h>\nMPI_Comm comm;\n");
    Write("runtime/world/topology.cc", "#include <hwloc.h>\nhwloc_topology_t topology;\n");
    Write("collectives/CMakeLists.txt",
          "npumesh_library(npumesh_collectives\n"
          "  DEPENDS npumesh_base  # npumesh_world is not needed here\n"
          "  LIBRARIES hwy::hwy)\n");
    Write("collectives/communicator.cc", "#include \"runtime/base/status.h\"\n");
    Write("graph/io/CMakeLists.txt",
          "npumesh_library(npumesh_io DEPENDS npumesh_proto PRECOMPILE <proto/ge_ir.pb.h>)\n");
    Write("graph/io/air.cc", "#include \"proto/ge_ir.pb.h\"\nbool data = type == \"Data\";\n");
    Write("graph/engine/plan.cc", "bool cpu = desc.device_type == \"CPU\";\n");
    Write("README.md", "# A house\n");
    Write("launch/npumesh.cc", "#include \"graph/io/air.h\"\n#include \"runtime/base/log.h\"\n");
  }
  void TearDown() override {
    if (!root_.empty()) fs::remove_all(root_);
  }

  void Write(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }

  fs::path root_;
};

TEST(LayeringTest, ThisProjectKeepsItsRules) {
  for (const Violation& violation : CheckLayering(NPUMESH_SOURCE_DIR)) {
    ADD_FAILURE() << violation.ToString();
  }
}

// CONTRIBUTING.md, "English".
TEST(LayeringTest, ThisProjectsEnglishIsPlain) {
  const std::vector<WordCeiling> ceilings = {
      {"whoever", "name who acts"},          {"somebody", "name who acts"},
      {"everybody", "name who acts"},        {"nobody", "\"no rank\", \"no reader\""},
      {"for ever", "without limit"},         {"of its own", "separate"},
      {"is none(?! of)", "there is no ..."}, {"looked at", "read, checked"},
  };
  for (const Violation& violation : CheckEnglish(NPUMESH_SOURCE_DIR, ceilings)) {
    ADD_FAILURE() << violation.ToString();
  }
}

TEST_F(MadeUpHouse, IsInOrder) {
  EXPECT_THAT(CheckLayering(root_), IsEmpty());
}

struct Breach {
  const char* name;
  const char* file;
  const char* text;
  int line;
  const char* rule;
  const char* says;
};

class Breaches : public MadeUpHouse, public testing::WithParamInterface<Breach> {};

TEST_P(Breaches, IsFoundWhereItStands) {
  const Breach& breach = GetParam();
  Write(breach.file, breach.text);
  const std::vector<Violation> found = CheckLayering(root_);
  ASSERT_FALSE(found.empty());
  // One line may break two rules (an upward include is also missing from DEPENDS).
  bool seen = false;
  for (const Violation& violation : found) {
    EXPECT_EQ(violation.file, breach.file) << violation.ToString();
    EXPECT_EQ(violation.line, breach.line) << violation.ToString();
    if (violation.rule != breach.rule) continue;
    seen = true;
    EXPECT_THAT(violation.ToString(), HasSubstr(breach.says));
  }
  EXPECT_TRUE(seen) << "no violation of rule " << breach.rule;
}

INSTANTIATE_TEST_SUITE_P(
    Layering, Breaches,
    testing::Values(
        Breach{"RuntimeIncludesGraph", "runtime/base/log.cc",
               "#include <string>\n#include \"graph/io/air.h\"\n", 2, "floor",
               "runtime includes \"graph/io/air.h\" of the higher floor graph"},
        Breach{"CollectivesIncludesLaunch", "collectives/communicator.cc",
               "#  include <launch/options.h>\n", 1, "floor", "higher floor launch"},
        Breach{"GraphIncludesLaunch", "graph/io/air.h", "#include \"launch/options.h\"\n", 1,
               "floor", "graph includes \"launch/options.h\""},
        Breach{"WayAroundByDots", "runtime/base/log.cc", "#include \"../../graph/io/air.h\"\n", 1,
               "floor", "write the path from the root of the project"},
        Breach{"MissingFromDepends", "collectives/communicator.cc",
               "#include \"runtime/world/world.h\"\n", 1, "depends",
               "collectives/CMakeLists.txt does not list npumesh_world in DEPENDS"},
        Breach{"MissingFromDependsInSubfolder", "collectives/deep/er/ring.cc",
               "#include \"runtime/world/world.h\"\n", 1, "depends", "does not list npumesh_world"},
        Breach{"ProtoMissingFromDepends", "runtime/base/log.cc", "\n#include \"proto/ge_ir.h\"\n",
               2, "depends", "runtime/base/CMakeLists.txt does not list npumesh_proto"},
        Breach{"FolderWithoutLibrary", "collectives/communicator.cc",
               "#include \"graph/passes/fold.h\"\n", 1, "depends", "belongs to no library"},
        Breach{"DependsPointsUp", "runtime/world/CMakeLists.txt",
               "\nnpumesh_library(npumesh_world DEPENDS npumesh_io)\n", 2, "depends",
               "npumesh_world depends on npumesh_io of the higher floor graph/io"},
        Breach{"DependsOnThirdParty", "graph/io/CMakeLists.txt",
               "npumesh_library(npumesh_io DEPENDS npumesh_proto hwy::hwy)\n", 1, "depends",
               "third-party targets go to LIBRARIES"},
        Breach{"TwoTypesOfOneName", "runtime/world/names.h",
               "namespace npumesh {\nstruct Apple {\n};\n}\n", 2, "names",
               "defines Apple, as runtime/base/names.h does"},
        Breach{"MpiHeader", "runtime/base/log.cc", "#include <mpi.h>\n", 1, "seal",
               "MPI (mpi.h) may appear only in runtime/world"},
        Breach{"MpiType", "collectives/communicator.cc", "void Send(MPI_Comm comm);\n", 1, "seal",
               "MPI (MPI_Comm)"},
        Breach{"MpiPlaceIsAWholeName", "runtime/world_tools/a.cc", "#include <mpi.h>\n", 1, "seal",
               "runtime/world"},
        Breach{"HwlocHeader", "runtime/world/world.cc", "#include <hwloc.h>\n", 1, "seal",
               "may appear only in runtime/world/topology.cc"},
        Breach{"HwlocCall", "graph/ops/add.cc", "hwloc_topology_init(&t);\n", 1, "seal",
               "hwloc (hwloc_topology_init)"},
        Breach{"HwlocType", "runtime/world/world.h", "hwloc_topology_t topology;\n", 1, "seal",
               "hwloc (hwloc_topology_t)"},
        Breach{"GeneratedHeader", "launch/npumesh.cc", "#include \"proto/ge_ir.pb.h\"\n", 1, "seal",
               "protobuf (proto/ge_ir.pb.h) may appear only in proto, graph/io, graph/dump"},
        Breach{"ProtobufHeader", "graph/ops/add.cc", "#include <google/protobuf/message.h>\n", 1,
               "seal", "protobuf"},
        Breach{"Stoi", "launch/npumesh.cc", "int n =\n    std::stoi(text);\n", 2, "banned",
               "calls stoi"},
        Breach{"Strtol", "runtime/base/log.cc", "auto n = strtol (text, nullptr, 10);\n", 1,
               "banned", "calls strtol"},
        Breach{"Atoi", "runtime/base/log.cc", "return atoi(text);\n", 1, "banned", "calls atoi"},
        Breach{"System", "graph/io/air.cc", "system(\"ls\");\n", 1, "banned", "calls system"},
        Breach{"OperatorByName", "graph/engine/plan.cc", "\nif (node.type == \"MatMul\") Pack();\n",
               2, "operator", "asks for the operator MatMul by name"},
        Breach{"Popen", "graph/io/air.cc", "::popen(\"ls\", \"r\");\n", 1, "banned",
               "programs start without a shell"},
        Breach{"AclWithoutNet", "runtime/acl/a.cc",
               "aclError aclInit(const char* path) {\n  return Init(path);\n}\n", 1, "net",
               "aclInit lets exceptions out"},
        Breach{"HcclCatchesForTheNext", "collectives/a.cc",
               "\nHcclResult HcclA(void* a,\n                 int b) {\n  return 0;\n}\n"
               "HcclResult HcclB() try {\n} catch (...) {\n  return AnswerThrown(__func__);\n}\n",
               2, "net", "HcclA lets exceptions out"},
        Breach{"CallsWithoutNet", "graph/c.cc",
               "extern \"C\" npumesh_code npumesh_init() {\n  return Start();\n}\n", 1, "net",
               "npumesh_init lets exceptions out"},
        Breach{"CitedNote", "graph/ops/add.cc", "int a;\n// Sums (design 5.2).\n", 2, "citation",
               "cites \"design 5\""},
        Breach{"CitedNumber", "proto/dump_data.proto", "// Numbers of files (reference 3.1).\n", 1,
               "citation", "cites \"reference 3\""},
        Breach{"CitedWord", "docs/export.md", "# Export\n\nAs seed 001 says.\n", 3, "citation",
               "cites \"seed 001\""},
        Breach{"CitedRow", "tests/unit/a_test.py", "# S2.1: the mode\n", 1, "citation",
               "cites \"S2.1\""},
        Breach{"CitedRowInAPage", "docs/coverage.md", "| S2.1 | captured graphs |\n", 1, "citation",
               "cites \"S2.1\""},
        Breach{"CitedPart", "docs/export.md", "See section 3 of it.\n", 1, "citation",
               "state the fact, or name a public source"},
        Breach{"CitedFile", "CONTRIBUTING.md", "See design.md.\n", 1, "file",
               "names design.md, but no file"},
        Breach{"NamedFileIsGone", "graph/ops/add.cc",
               "int a;\n// As base/sums.h and status.h say.\n", 2, "file",
               "names base/sums.h, but no file"},
        Breach{"LinkedPageIsGone", "docs/export.md", "# Export\n[sums](../sums.md)\n", 2, "file",
               "names sums.md"},
        Breach{"LinkedFileIsGone", "docs/export.md", "# Export\n\nSee [it](../examples/) there.\n",
               3, "link", "there is no file examples/"},
        Breach{"LinkedHeadingIsGone", "docs/export.md", "# Export\n\n[it](#the-exports)\n", 3,
               "link", "docs/export.md has no such heading"},
        Breach{"HeadingOfAnotherPageIsGone", "docs/export.md", "[it](../README.md#use)\n", 1,
               "link", "README.md has no such heading"}),
    [](const testing::TestParamInfo<Breach>& info) { return info.param.name; });

TEST_F(MadeUpHouse, LookAlikesBreakNoRule) {
  Write("runtime/base/log.cc",
        "// MPI_Comm, see mpi.h; never atoi(text)\n"
        "/* #include \"graph/io/air.cc\"\n   system(\"x\") */\n"
        "const char* a = \"MPI_Comm and system(1)\";\n"
        "const char* b = R\"(#include <mpi.h>\n#include <hwloc.h>)\";\n"
        "const char c = '\"'; int big = 1'000'000; auto d = file->system(1); my_system(2);\n");
  EXPECT_THAT(CheckLayering(root_), IsEmpty());
}

TEST_F(MadeUpHouse, FunctionsThatCatchBreakNoRule) {
  Write("runtime/acl/a.cc",
        "aclError aclA(int a);\n"
        "aclError aclB() try {\n  if (a) {\n  }\n  return 0;\n} catch (...) {\n"
        "  return npumesh::FailThrown(__func__);\n}\n"
        "static aclError Helper() {\n}\n");
  Write(
      "graph/c.cc",
      "extern \"C\" npumesh_code npumesh_init() {\n  return npumesh::Call(__func__, Start);\n}\n");
  EXPECT_THAT(CheckLayering(root_), IsEmpty());
}

TEST_F(MadeUpHouse, PublicSourcesAndOwnPagesMayBeCited) {
  Write("docs/dump.md", "");
  Write("docs/export.md",
        "The reference row, [dump.md](dump.md), seed 7, PyTorch's rules, *.h, ge_ir.proto.Def.\n"
        "```cmake\nadd_executable(mine mine.cc)\n```\n");
  Write("runtime/base/log.cc", "// Checked against the reference: 3 ranks (HCCL documentation).\n");
  EXPECT_THAT(CheckLayering(root_), IsEmpty());
}

TEST_F(MadeUpHouse, TheMapNamesEveryRoom) {
  const std::string map =
      "```\nruntime/\n  base/ world/  what all need\n    include/\ncollectives/\ngraph/\n"
      "  io/          files\n  engine/\n```\n```mermaid\ngone/\n```\n";
  Write("runtime/base/include/base.h", "");
  fs::create_directories(root_ / "runtime/world/include");
  Write("docs/architecture.md", map);
  EXPECT_THAT(CheckLayering(root_), IsEmpty());
  Write("python/mesh/stand_in/tensorflow/__init__.py", "");
  Write("python/mesh/note.txt", "");
  EXPECT_THAT(CheckLayering(root_), IsEmpty());
  // A room of that name in another place is another room.
  Write("graph/base/b.cc", "");
  std::vector<Violation> found = CheckLayering(root_);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].ToString(),
            "docs/architecture.md:1: [map] does not name the room graph/base/; say what it holds");
  Write("docs/architecture.md", map + "```\ngraph/base/\n  deep/\n```\n");
  found = CheckLayering(root_);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].ToString(),
            "docs/architecture.md:15: [map] names graph/base/deep/, which is no folder");
}

TEST_F(MadeUpHouse, TheDiagramDrawsWhatDependsListsSay) {
  const std::string rooms =
      "```\nruntime/\n  base/ world/\ncollectives/\ngraph/\n  io/ engine/\n```\n";
  const std::string arrows = "collectives --> base\n  world --> base\nio --> proto\n";
  Write("docs/architecture.md", rooms + "```mermaid\n" + arrows + "```\n");
  EXPECT_THAT(CheckLayering(root_), IsEmpty());
  Write("docs/architecture.md", rooms + "```mermaid\n" + arrows + "io --> base\n```\n");
  std::vector<Violation> found = CheckLayering(root_);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].ToString(),
            "docs/architecture.md:12: [map] draws io --> base, which no DEPENDS list has");
  Write("docs/architecture.md", rooms + "```mermaid\ncollectives --> base\nio --> proto\n```\n");
  found = CheckLayering(root_);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].ToString(), "docs/architecture.md:9: [map] the diagram has no arrow of world");
}

TEST_F(MadeUpHouse, TheIndexLinksEveryPage) {
  Write("docs/README.md", "[Dump](dump.md) [record](formats/record.md)\n");
  Write("docs/dump.md", "");
  Write("docs/formats/record.md", "");
  EXPECT_THAT(CheckLayering(root_), IsEmpty());
  Write("docs/formats/profile.md", "");
  const std::vector<Violation> found = CheckLayering(root_);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].ToString(),
            "docs/formats/profile.md:1: [map] docs/README.md has no link to this page");
}

TEST_F(MadeUpHouse, LibrariesDependInNoCircle) {
  Write("graph/ir/CMakeLists.txt", "\nnpumesh_library(npumesh_ir DEPENDS npumesh_ops)\n");
  Write("graph/ops/CMakeLists.txt", "npumesh_library(npumesh_ops DEPENDS npumesh_io)\n");
  EXPECT_THAT(CheckLayering(root_), IsEmpty());
  Write("graph/io/CMakeLists.txt",
        "npumesh_library(npumesh_io DEPENDS npumesh_proto npumesh_ir)\n");
  const std::vector<Violation> found = CheckLayering(root_);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].ToString(),
            "graph/io/CMakeLists.txt:1: [circle] libraries depend on each other: "
            "npumesh_io -> npumesh_ir -> npumesh_ops -> npumesh_io");
}

TEST_F(MadeUpHouse, ModulesOfPythonImportInNoCircle) {
  Write("python/mesh/__init__.py", "from .world import World\nfrom . import tools\nimport os\n");
  Write("python/mesh/tools/__init__.py", "from ..handle import (\n    A as B,\n    C)\n");
  Write("python/mesh/world.py",
        "\"\"\"A world.\n\n    from mesh import World\n\"\"\"\n# import mesh\nfrom .handle import "
        "*\n");
  Write("python/mesh/handle.py", "import sys, json\n");
  EXPECT_THAT(CheckLayering(root_), IsEmpty());
  // Also where a function hides it.
  Write("python/mesh/handle.py", "\ndef call():\n    from .tools import (other,\n        Tool)\n");
  const std::vector<Violation> found = CheckLayering(root_);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].ToString(),
              HasSubstr("python/mesh/handle.py:3: [circle] modules import each other: "
                        "mesh.handle -> mesh.tools -> mesh.handle;"));
}

TEST_F(MadeUpHouse, LinksLeadToFilesAndHeadings) {
  Write("README.md", "## [Use](docs/export.md), `--why` it?\n[it](docs/export.md#two-words)\n");
  Write("docs/export.md",
        "# Two words\n[a](../README.md#use---why-it) [b](#two-words) [c](..)\n"
        "[d](https://npumesh.example/x#y)\n```\n[e](gone)\n```\n");
  EXPECT_THAT(CheckLayering(root_), IsEmpty());
}

TEST_F(MadeUpHouse, LinesOfPagesAreNoLongerThanTheirWidth) {
  const std::string code(119, 'x');
  const std::string words =
      "1. " + std::string(58, 'a') + " " + std::string(58, 'b');  // 120 columns
  Write("docs/dump.md", words + "\n- `" + code + " y`\n| " + code + " y |\n# " + code +
                            " y\n```\n" + code + " y\n```\n" + words.substr(0, 119) + "\u00e9\n");
  EXPECT_THAT(CheckLayering(root_), IsEmpty());
  Write("docs/dump.md", words + "\n" + words + "b\n");
  const std::vector<Violation> found = CheckLayering(root_);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].ToString(), "docs/dump.md:2: [width] has 121 columns, expected at most 120");
}

TEST_F(MadeUpHouse, WordsAboveTheirCeilingAreShownWithTheirLines) {
  Write("runtime/base/log.cc", "/* Whoever waits,\n * or not. */\nint whoever;\n");
  Write("python/mesh/a.py", "def f():\n    \"\"\"For whoever\n    calls.\"\"\"\n    whoever = 1\n");
  EXPECT_EQ(CheckEnglish(root_, {{"whoever", "name who acts", 0}}).size(), 2u);
  Write("graph/io/air.cc", "Fail(\"whoever\", 1);\nFail(\"not \\\"whoever\\\"\");\nf(whoever);\n");
  EXPECT_EQ(CheckEnglish(root_, {{"whoever", "name who acts", 0}}).size(), 3u);
  fs::remove(root_ / "graph/io/air.cc");
  fs::remove(root_ / "python/mesh/a.py");
  Write("docs/dump.md",
        "For whoever reads \"whoever\".\n\"whoever\", `whoever`\n```\nwhoever\n```\n");
  EXPECT_THAT(CheckEnglish(root_, {{"whoever", "name who acts", 2}}), IsEmpty());
  const std::vector<Violation> found = CheckEnglish(root_, {{"whoever", "name who acts", 1}});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(found[0].ToString(), HasSubstr("says \"whoever\" (name who acts)"));
}

TEST_F(MadeUpHouse, CodeAfterLiteralsIsStillRead) {
  Write("runtime/base/log.cc", "f('\"', \"a\\\"b\"); int n = 1'000; atoi(x);\n");
  const std::vector<Violation> found = CheckLayering(root_);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, "banned");
}

TEST_F(MadeUpHouse, AnEmptyTreeDoesNotPass) {
  fs::create_directories(root_ / "empty");
  const std::vector<Violation> found = CheckLayering(root_ / "empty");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].text, HasSubstr("no floor"));
}

TEST(CodeOnlyTest, KeepsLengthAndLines) {
  const std::string source = "a /* b\nc */ \"d\" // e\nf";
  EXPECT_EQ(CodeOnly(source), "a     \n" + std::string(13, ' ') + "\nf");
}

}  // namespace
}  // namespace npumesh
