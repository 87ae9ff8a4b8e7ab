// Worlds, options, operators and types of npumesh.h.
#include <filesystem>
#include <fstream>
#include <thread>

#include "graph/ops/builtin_ops.h"
#include "tests/unit/c_interface/c_world.h"

namespace npumesh {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(CWorld, TellsWhoItIs) {
  npumesh_world* world = nullptr;
  const npumesh_option options[] = {{"NPUMESH_HBM_SIZE", "32M"}};
  ASSERT_EQ(npumesh_init(options, 1, &world), NPUMESH_OK) << npumesh_last_error();
  npumesh_world_info info;
  ASSERT_EQ(npumesh_get_world_info(world, &info), NPUMESH_OK);
  EXPECT_EQ(info.rank, 0);
  EXPECT_EQ(info.size, 1);
  EXPECT_EQ(info.node_count, 1);
  EXPECT_EQ(info.memory_bytes, uint64_t{32} << 20);
  EXPECT_EQ(info.memory_used, 0u);
  void* memory = nullptr;
  ASSERT_EQ(npumesh_alloc(world, 1000, &memory), NPUMESH_OK);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 512, 0u);
  ASSERT_EQ(npumesh_get_world_info(world, &info), NPUMESH_OK);
  EXPECT_GE(info.memory_used, 1000u);
  EXPECT_EQ(npumesh_alloc(world, uint64_t{1} << 40, &memory), NPUMESH_OUT_OF_MEMORY);
  EXPECT_EQ(npumesh_free(world, memory), NPUMESH_OK);
  EXPECT_EQ(npumesh_free(world, nullptr), NPUMESH_OK);
  EXPECT_EQ(npumesh_free(world, &info), NPUMESH_INVALID_ARGUMENT);
  EXPECT_EQ(npumesh_finalize(world), NPUMESH_OK);
  EXPECT_EQ(npumesh_finalize(nullptr), NPUMESH_OK);
}

TEST(CWorld, OptionsThatAreRefused) {
  npumesh_world* world = nullptr;
  const auto refused = [&world](npumesh_option option, const char* why) {
    EXPECT_EQ(npumesh_init(&option, 1, &world), NPUMESH_INVALID_ARGUMENT) << why;
    EXPECT_THAT(npumesh_last_error(), HasSubstr(why));
    EXPECT_THAT(npumesh_last_error(), StartsWith("npumesh_init: "));
    EXPECT_EQ(world, nullptr);
  };
  refused({"NPUMESH_HBM_SIZE", "much"}, "NPUMESH_HBM_SIZE");
  refused({"NPUMESH_HBM_SIZES", "1M"}, "NPUMESH_HBM_SIZES");
  refused({"session.precision_mod", "x"}, "session.precision_mode");
  refused({"session.graph_run_mode", "7"}, "session.graph_run_mode");
  refused({nullptr, "7"}, "option 0: its key is NULL");
  refused({"session.graph_run_mode", nullptr}, "option 0: its value is NULL");
  EXPECT_EQ(npumesh_init(nullptr, 1, &world), NPUMESH_INVALID_ARGUMENT);
  EXPECT_EQ(npumesh_init(nullptr, 0, nullptr), NPUMESH_INVALID_ARGUMENT);
}

TEST(CWorld, NullHandlesAreErrors) {
  npumesh_world_info info;
  EXPECT_EQ(npumesh_get_world_info(nullptr, &info), NPUMESH_INVALID_ARGUMENT);
  EXPECT_STREQ(npumesh_last_error(), "npumesh_get_world_info: world is NULL");
  EXPECT_EQ(npumesh_run(nullptr, nullptr, 0, nullptr, 0), NPUMESH_INVALID_ARGUMENT);
  EXPECT_EQ(npumesh_barrier(nullptr), NPUMESH_INVALID_ARGUMENT);
  EXPECT_EQ(npumesh_close(nullptr), NPUMESH_OK);
  EXPECT_EQ(npumesh_close_group(nullptr), NPUMESH_OK);
  npumesh_release(nullptr);
}

TEST(CWorld, EachThreadHasItsLastError) {
  EXPECT_EQ(npumesh_fail(nullptr, "x"), NPUMESH_INVALID_ARGUMENT);
  std::thread([] { EXPECT_STREQ(npumesh_last_error(), ""); }).join();
  EXPECT_STREQ(npumesh_last_error(), "npumesh_fail: world is NULL");
  EXPECT_EQ(npumesh_exit_code(NPUMESH_OK), 0);
  EXPECT_EQ(npumesh_exit_code(NPUMESH_CORRUPT), 3);
  EXPECT_EQ(npumesh_exit_code(NPUMESH_OUT_OF_MEMORY), 4);
  EXPECT_EQ(npumesh_exit_code(NPUMESH_PEER_LOST), 5);
}

class CLoadTest : public CWorldTest {
 protected:
  static std::string Negate() {
    GraphBuilder g;
    g.Output({g.Op("Neg", {{"x", g.Data("x", CInts({2, -1}))}}, {}, "negated")});
    return Bytes(g);
  }
  npumesh_code LoadBytes(const std::string& bytes, std::vector<npumesh_option> options = {}) {
    return npumesh_load_bytes(world_, bytes.data(), bytes.size(), nullptr, options.data(),
                              options.size(), &session_);
  }
  void Refused(std::vector<npumesh_option> options, const char* why) {
    EXPECT_EQ(LoadBytes(Negate(), options), NPUMESH_INVALID_ARGUMENT) << why;
    EXPECT_THAT(npumesh_last_error(), HasSubstr(why));
  }
};

TEST_F(CLoadTest, DescribesThePorts) {
  ASSERT_EQ(LoadBytes(Negate()), NPUMESH_OK) << npumesh_last_error();
  size_t inputs = 0;
  size_t outputs = 0;
  ASSERT_EQ(npumesh_count_ports(session_, &inputs, &outputs), NPUMESH_OK);
  EXPECT_EQ(inputs, 1u);
  EXPECT_EQ(outputs, 1u);
  npumesh_port port;
  ASSERT_EQ(npumesh_get_input(session_, 0, &port), NPUMESH_OK);
  EXPECT_STREQ(port.name, "x");
  EXPECT_EQ(port.rank, 2);
  EXPECT_EQ(port.dims[0], 2);
  EXPECT_EQ(port.dims[1], NPUMESH_OPEN_DIM);
  EXPECT_EQ(port.dtype, NPUMESH_INT32);
  EXPECT_EQ(port.bytes, 0u);
  ASSERT_EQ(npumesh_get_output(session_, 0, &port), NPUMESH_OK);
  EXPECT_STREQ(port.name, "negated:0");
  EXPECT_EQ(npumesh_get_input(session_, 1, &port), NPUMESH_INVALID_ARGUMENT);
  EXPECT_EQ(npumesh_get_output(session_, 1, &port), NPUMESH_INVALID_ARGUMENT);
}

TEST_F(CLoadTest, OptionsThatAreRefused) {
  Refused({{"ge_config.oo_levels", "O1"}}, "ge_config.oo_level");
  Refused({{"ge_config.oo_level", "O9"}}, "ge_config.oo_level");
  Refused({{"npumesh.threads", "0"}}, "npumesh.threads");
  Refused({{"npumesh.parameters", "0,2"}}, "2");
  Refused({{"npumesh.group.tp", "0,0"}}, "npumesh.group.tp");
  Refused({{"npumesh.allow_outside", "perhaps"}}, "npumesh.allow_outside");
  Refused({{"session.profiling_mode", "true"}, {"session.profiling_options", "task_trace"}},
          "npumesh_start_profile");
  Refused({{"npumesh.nothing", "1"}}, "npumesh.nothing");
}

TEST_F(CLoadTest, OptionsThatAreTaken) {
  ASSERT_EQ(LoadBytes(Negate(), {{"ge_config.oo_level", "O1"},
                                 {"npumesh.threads", "2"},
                                 {"npumesh.group.tp", "0"},
                                 {"session.precision_mode", "must_keep_origin_dtype"}}),
            NPUMESH_OK)
      << npumesh_last_error();
}

TEST_F(CLoadTest, BytesThatAreNoModel) {
  EXPECT_EQ(LoadBytes("no model"), NPUMESH_CORRUPT);
  EXPECT_THAT(npumesh_last_error(), HasSubstr("model"));
  const std::string whole = Negate();
  for (size_t length = 0; length < whole.size(); length += 7) {
    if (LoadBytes(whole.substr(0, length)) != NPUMESH_OK) continue;
    EXPECT_EQ(npumesh_close(session_), NPUMESH_OK);
    session_ = nullptr;
  }
  EXPECT_EQ(npumesh_load_file(world_, "/nowhere/model.air", nullptr, 0, &session_),
            NPUMESH_NOT_FOUND);
  EXPECT_THAT(npumesh_last_error(), HasSubstr("/nowhere/model.air"));
}

TEST_F(CLoadTest, OperatorsThatAreNotThere) {
  GraphBuilder g;
  g.Output({g.Op("Sorcery", {{"x", g.Data("x", CInts({2}))}})});
  EXPECT_EQ(LoadBytes(Bytes(g)), NPUMESH_UNSUPPORTED);
  EXPECT_THAT(npumesh_last_error(), HasSubstr("Sorcery"));
}

TEST_F(CLoadTest, AWorldWithSessionsDoesNotEnd) {
  ASSERT_EQ(LoadBytes(Negate()), NPUMESH_OK);
  EXPECT_EQ(npumesh_finalize(world_), NPUMESH_INVALID_ARGUMENT);
  EXPECT_THAT(npumesh_last_error(), HasSubstr("1 sessions and 0 groups"));
}

TEST_F(CLoadTest, SavedBytesLoadAgain) {
  const std::string path = testing::TempDir() + "c_interface_saved.air";
  const std::string link = testing::TempDir() + "c_interface_link.air";
  const std::string bytes = Negate();
  std::filesystem::remove(link);
  ASSERT_EQ(npumesh_save_air(bytes.data(), bytes.size(), path.c_str()), NPUMESH_OK)
      << npumesh_last_error();
  ASSERT_EQ(npumesh_load_file(world_, path.c_str(), nullptr, 0, &session_), NPUMESH_OK)
      << npumesh_last_error();
  std::filesystem::create_symlink(path, link);
  EXPECT_EQ(npumesh_save_air(bytes.data(), bytes.size(), link.c_str()), NPUMESH_INVALID_ARGUMENT);
  EXPECT_THAT(npumesh_last_error(), HasSubstr("symbolic link"));
  EXPECT_EQ(npumesh_save_air("junk", 4, path.c_str()), NPUMESH_CORRUPT);
  std::filesystem::remove(link);
  std::filesystem::remove(path);
}

TEST_F(CLoadTest, DumpsAsAFileSays) {
  const std::string folder = testing::TempDir() + "c_interface_dump";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const std::string config = folder + "/dump.json";
  std::ofstream(config) << R"({"dump": {"dump_path": ")" << folder
                        << R"(", "dump_mode": "all", "dump_list": []}})";
  EXPECT_EQ(npumesh_set_dump(world_, "/nowhere/dump.json"), NPUMESH_NOT_FOUND);
  ASSERT_EQ(npumesh_set_dump(world_, config.c_str()), NPUMESH_OK) << npumesh_last_error();
  ASSERT_EQ(LoadBytes(Negate()), NPUMESH_OK) << npumesh_last_error();
  CVector x({1, 2}, {2, 1});
  std::vector<npumesh_tensor> out = {x.tensor()};
  ASSERT_EQ(Run({x.tensor()}, out), NPUMESH_OK) << npumesh_last_error();
  ASSERT_EQ(npumesh_close(session_), NPUMESH_OK) << npumesh_last_error();
  session_ = nullptr;
  size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    files += entry.path().filename().string().starts_with("Neg.negated") ? 1 : 0;
  }
  EXPECT_EQ(files, 1u);
  ASSERT_EQ(npumesh_set_dump(world_, nullptr), NPUMESH_OK);
  std::filesystem::remove_all(folder);
}

TEST_F(CLoadTest, WritesAProfile) {
  const std::string folder = testing::TempDir() + "c_interface_profile";
  std::filesystem::remove_all(folder);
  ASSERT_EQ(LoadBytes(Negate()), NPUMESH_OK);
  ASSERT_EQ(npumesh_start_profile(world_, folder.c_str()), NPUMESH_OK) << npumesh_last_error();
  EXPECT_EQ(npumesh_start_profile(world_, folder.c_str()), NPUMESH_INVALID_ARGUMENT);
  CVector x({1, 2}, {2, 1});
  std::vector<npumesh_tensor> out = {x.tensor()};
  ASSERT_EQ(Run({x.tensor()}, out), NPUMESH_OK) << npumesh_last_error();
  ASSERT_EQ(npumesh_stop_profile(world_), NPUMESH_OK) << npumesh_last_error();
  EXPECT_FALSE(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
}

// Against the registry itself: every operator, every field.
TEST(COperators, AllFieldsOfAllOperators) {
  size_t count = 0;
  for (const std::string_view type : BuiltinOps().Types()) {
    ASSERT_EQ(npumesh_op_type(count), type);
    const OpSchema& schema = BuiltinOps().Find(type)->schema;
    npumesh_op op;
    ASSERT_EQ(npumesh_get_op(npumesh_op_type(count++), &op), NPUMESH_OK);
    ASSERT_EQ(op.inputs, schema.inputs.size());
    ASSERT_EQ(op.outputs, schema.outputs.size());
    ASSERT_EQ(op.attrs, schema.attrs.size());
    npumesh_op_field field;
    const std::string name(type);
    for (size_t i = 0; i < op.inputs; ++i) {
      ASSERT_EQ(npumesh_get_op_field(name.c_str(), NPUMESH_OP_INPUT, i, &field), NPUMESH_OK);
      EXPECT_EQ(field.name, schema.inputs[i].name);
      EXPECT_EQ(std::string(field.kind) == "optional",
                schema.inputs[i].kind == PortKind::kOptional);
      EXPECT_EQ(std::string(field.kind) == "dynamic", schema.inputs[i].kind == PortKind::kDynamic);
    }
    for (size_t i = 0; i < op.outputs; ++i) {
      ASSERT_EQ(npumesh_get_op_field(name.c_str(), NPUMESH_OP_OUTPUT, i, &field), NPUMESH_OK);
      EXPECT_EQ(field.name, schema.outputs[i].name);
    }
    for (size_t i = 0; i < op.attrs; ++i) {
      ASSERT_EQ(npumesh_get_op_field(name.c_str(), NPUMESH_OP_ATTR, i, &field), NPUMESH_OK);
      EXPECT_EQ(field.name, schema.attrs[i].name);
      EXPECT_THAT(field.kind, StartsWith("VT_"));
      EXPECT_EQ(field.fallback == nullptr, !schema.attrs[i].fallback);
    }
  }
  EXPECT_GT(count, 400u);
  EXPECT_EQ(npumesh_op_type(count), nullptr);
}

TEST(COperators, Questions) {
  npumesh_op op;
  EXPECT_EQ(npumesh_get_op("MatMulV33", &op), NPUMESH_NOT_FOUND);
  EXPECT_THAT(npumesh_last_error(), HasSubstr("near: "));
  npumesh_op_field field;
  ASSERT_EQ(npumesh_get_op_field("HcomAllReduce", NPUMESH_OP_ATTR, 0, &field), NPUMESH_OK);
  EXPECT_STREQ(field.name, "reduction");
  EXPECT_STREQ(field.kind, "VT_STRING");
  EXPECT_EQ(field.fallback, nullptr);
  EXPECT_EQ(npumesh_get_op_field("Add", NPUMESH_OP_INPUT, 2, &field), NPUMESH_INVALID_ARGUMENT);
  EXPECT_THAT(npumesh_last_error(), HasSubstr("Add: it has 2 inputs, asked for position 2"));
  EXPECT_EQ(npumesh_get_op_field("Add", static_cast<npumesh_op_part>(9), 0, &field),
            NPUMESH_INVALID_ARGUMENT);
}

TEST(CTypes, AreThoseOfTheLibrary) {
  for (int32_t number = -2; number < 60; ++number) {
    const std::optional<DataType> known = DataTypeFromRuntime(number);
    EXPECT_EQ(npumesh_dtype_name(number), known ? Name(*known) : "unknown");
    EXPECT_EQ(npumesh_dtype_bits(number), known ? BitsOf(*known) : 0);
  }
  EXPECT_EQ(NPUMESH_BFLOAT16, static_cast<int>(DataType::kBfloat16));
  EXPECT_EQ(NPUMESH_FLOAT4_E1M2, static_cast<int>(DataType::kFloat4E1M2));
}

}  // namespace
}  // namespace npumesh
