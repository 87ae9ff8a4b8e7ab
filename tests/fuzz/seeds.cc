#include "tests/fuzz/seeds.h"

#include "graph/config/compiler_config.h"
#include "graph/dump/format/format_data.h"
#include "graph/export/deployment_config.h"
#include "graph/io/npy_header.h"
#include "graph/io/wire.h"
#include "runtime/base/text/plain_pickle.h"
#include "tests/fuzz/targets.h"
#include "tests/onnx/example_models.h"
#include "tests/unit/io/models.h"
#include "tests/unit/io/torch_files.h"
#include "tests/unit/record/records.h"

namespace npumesh::fuzz {
namespace {

using Seeds = std::vector<std::string>;

std::vector<std::string_view> ModelTexts() {
  return {testing::kRawExample, testing::kAllReduceExample};
}

Seeds AirSeeds() {
  Seeds seeds;
  for (const std::string_view text : ModelTexts()) {
    seeds.push_back(SerializeWire(testing::FromText(text)));
    seeds.push_back(SerializeAir(testing::Load(text)).value());
  }
  return seeds;
}

Seeds PbtxtSeeds() {
  Seeds seeds;
  for (const std::string_view text : ModelTexts()) seeds.push_back(ToPbtxt(testing::Load(text)));
  return seeds;
}

Seeds GeProtoSeeds() {
  Seeds seeds;
  for (const std::string_view text : ModelTexts()) {
    seeds.push_back(ToGeProtoText(testing::Load(text), 2));
    seeds.push_back(testing::FromText(text).graph(0).Utf8DebugString());
  }
  return seeds;
}

Seeds OnnxSeeds() {
  Seeds seeds = testing::ExampleOnnxModels();
  seeds.push_back(testing::OnnxModelOfAllFields());
  return seeds;
}

Seeds NpySeeds() {
  Seeds seeds;
  for (const DataType dtype : {DataType::kFloat, DataType::kBool, DataType::kComplex128}) {
    seeds.push_back(FormatNpyHeader({dtype, Shape({2, 3, 4})}).value());
  }
  return seeds;
}

DumpTensor DumpTensorOf(DataType dtype, const Shape& shape, uint64_t size) {
  DumpTensor tensor;
  tensor.type = {dtype, shape};
  tensor.original_shape = shape;
  tensor.size = size;
  tensor.original_name = "MatMul";
  tensor.original_port = 1;
  return tensor;
}

Seeds DumpDataSeeds() {
  DumpRecord record;
  record.op_name = "layer/0/MatMul";
  record.time_us = 1700000000123456;
  const std::string empty = EncodeDumpHeader(record);
  record.dfx_message = "why";
  record.inputs = {DumpTensorOf(DataType::kFloat, Shape({2, 1}), 8),
                   DumpTensorOf(DataType::kBfloat16, Shape({0}), 0)};
  record.outputs = {DumpTensorOf(DataType::kInt8, Shape({1, 3}), 3)};
  record.buffers = {{2}};
  record.spaces = {{1, 7}};
  return {empty, EncodeDumpHeader(record) + "ffffFFFFiiibbw"};
}

Seeds DumpConfigSeeds() {
  return {R"({"dump": {"dump_path": ".", "dump_mode": "all", "dump_step": "0|2-4",
  "dump_data": "stats", "dump_stats": ["Max", "L2norm"], "dump_level": "op",
  "dump_list": [{"model_name": "m", "layer": ["a", "b"],
    "opname_blacklist": [{"name": "a", "pos": ["input0", "output12"]}],
    "optype_blacklist": [{"name": "Add"}],
    "opname_range": [{"begin": "a", "end": "b"}]}]}})",
          R"({"dump": {"dump_scene": "watcher", "dump_path": ".",
  "dump_list": [{"layer": ["a"], "watcher_nodes": ["b"]}]}})",
          R"({"dump": {"dump_debug": "on", "dump_path": "."}})",
          R"({"dump": {"dump_scene": "lite_exception", "dump_kernel_data": "tensor,printf"}})"};
}

Seeds OptionsSeeds() {
  return {R"({"mode": "max-autotune", "debug": {"graph_dump": {"type": "txt"}},
  "ge_config": {"oo_level": "O1", "optimization_switch": "AttentionFusionPass:off"},
  "experimental_config": {"topology_sorting_strategy": "DFS"},
  "session": {"profiling_mode": true, "profiling_options": "{\"task_trace\": \"on\"}"},
  "dump_config": {"enable_dump": false, "dump_step": "0|3-5", "dump_layer": "a b"}})",
          "mode=reduce-overhead\ndebug.run_eagerly=true\nge_config.oo_level=none\n"
          "experimental_config.tiling_schedule_optimize=false\nsession.dump_path=/tmp\n",
          R"({"Switch": {"GraphFusion": {"MatMulFusionPass": "off", "ALL": "on"},
  "UBFusion": {"x": "on"}}, "ExceptionalPassOfO1Level": ["a"]})",
          "MatMulFusionPass:off\nAttentionFusionPass:on\n"};
}

Topology Machine() {
  return Topology::FromSynthetic("pack:1 numa:1 core:2 pu:1").value();
}

Seeds PackageConfigsSeeds() {
  Seeds seeds;
  for (const ConfigForm form : {ConfigForm::kTrue, ConfigForm::kTemplate}) {
    const ClusterMap cluster =
        PlanCluster({{"a", "10.0.0.1", 1, Machine()}, {"b", "10.0.0.2", 1, Machine()}});
    const std::string relation =
        RelationConfig(cluster, {"m0.air", "m1.air"}, {{"tp", {0, 1}}, {"dp", {1}}}, form);
    seeds.push_back(relation + '\0' + NumaConfig(cluster, form));
  }
  return seeds;
}

Seeds RankTableSeeds() {
  return {R"({"version": "1.2", "status": "completed", "server_count": "2",
  "super_pod_list": [{"super_pod_id": "east", "server_list": [{"server_id": "alpha"}]},
                     {"super_pod_id": "west", "server_list": [{"server_id": "beta"}]}],
  "server_list": [
    {"server_id": "alpha", "host_ip": "10.1.0.1", "device": [
      {"device_id": "0", "device_ip": "10.2.0.1", "host_port": "16700", "rank_id": "0"}]},
    {"server_id": "beta", "device": [
      {"device_id": "0", "device_ip": "10.2.1.1", "rank_id": "1"}]}]})",
          R"({"status": "completed", "group_count": "1", "group_list": [{"group_name": "g",
  "instance_count": "1", "device_count": "2", "instance_list": [{"pod_name": "p",
  "server_id": "s", "devices": [{"device_id": "4"}, {"device_id": "5"}]}]}]})",
          R"({"version": "2.0", "status": "completed", "rank_count": 1, "rank_list": [{"rank_id": 0,
  "local_id": 0, "device_id": 3, "level_list": [{"net_layer": 0, "net_type": "CLOS",
  "rank_addr_list": [{"addr_type": "IPV4", "addr": "10.0.0.1"}]}]}]})",
          R"({"version": "1.0", "status": "initializing"})"};
}

Seeds ForeignRecordSeeds() {
  const nlohmann::json torch = nlohmann::json::parse(R"({"version": "2.4",
      "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
      "entries": [{"record_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": 1,
                   "p2p_seq_id": 0, "profiling_name": "nccl:all_reduce", "time_created_ns": 5,
                   "input_sizes": [[8]], "output_sizes": [[8]], "input_dtypes": ["Float"],
                   "output_dtypes": ["Float"], "state": "completed", "is_p2p": false},
                  {"record_id": 1, "process_group": ["0", "default_pg"], "collective_seq_id": 1,
                   "p2p_seq_id": 1, "profiling_name": "nccl:send 0->1", "time_created_ns": 7,
                   "input_sizes": [[8]], "output_sizes": [], "state": "scheduled",
                   "is_p2p": true}]})");
  return {WritePlainPickle(torch), torch.dump(),
          R"({"nccl_version": "2.28.9", "communicators": [{"hash": "0x1", "size": 2, "ranks": [
              {"rank": 0, "host": "h", "pid": 1, "status": {"async_error": 1},
               "collective_counts": {"AllReduce": 3}}],
              "missing_ranks": [{"rank": 1, "host": "h", "pid": 2, "nvml_dev": 1
               "status": {"considered_dead": true}}]}]})",
          "NCCL version 2.26.2 compiled\nCommunicators... (0.0s)\n"
          " 0 1 1 4 4 4 RUNNING MISMATCH\n#0-0 (fa93) MISMATCH\n"
          "  Communicator ranks have different AllGather operation counts\n"
          "  3 ranks have launched up to operation 7\n"
          "  Rank 2 has launched up to operation 8 -- GPU 2 managed by process 9 on node n\n",
          "[E] HCCL(7,x):2025-10-24-11:18:29.597.044 [a] Entry-HcclCommInit:ranks[2], rank[0], "
          "identifier[g], deviceLogicId[0]\n"
          "[E] HCCL(7,x):2025-10-24-11:18:29.597.044 Task run failed, base information is "
          "tag[AllReduce_g]\n"
          "[E] HCCL(7,x): Task run failed, groupRank information is group:[g], rankSize[2], "
          "rankId[0].\n"
          "[E] HCCL(7,x): Task run failed, opData information is index[21], count[256], "
          "dataType[float32].\n"
          "[I] HCCL(7,x):[HCCL_TRACE]rank:1.2.3.4/0, count of currently executed operators:9\n"
          "[I] HCCL(7,x): [HeartbeatAbnormal]local rank [1.2.3.4/0]: crimer rank [1.2.3.4/1] "
          "status[LOST] by informer rank [1.2.3.4/0]\n"};
}

Seeds TorchFileSeeds() {
  testing::SavedTensor saved;
  saved.bytes = std::string(48, 'a');
  saved.offset = 1;
  saved.shape = {3, 2};
  saved.strides = {1, 4};
  testing::SavedTensor small = saved;
  small.storage = "torch.storage UntypedStorage";
  small.dtype = "float8_e5m2";
  small.parameter = true;
  return {testing::TorchFile(saved), testing::TorchFile(small, /*in_64=*/true)};
}

Seeds MsprobeSeeds() {
  return {R"({"task": "tensor", "level": "mix", "framework": "pytorch", "data": {
  "Torch.relu.0.forward": {
    "input_args": [{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 3], "Max": 4.5,
      "Min": -1, "Mean": NaN, "Norm": Infinity, "data_name": "Torch.relu.0.forward.input.0.pt"},
      null, [{"type": "int", "value": 3}, {"type": "bool", "value": true}]],
    "input_kwargs": {"eps": {"type": "float", "value": -Infinity}},
    "output": [{"type": "torch.Tensor", "dtype": "torch.bool", "shape": [], "Max": true,
      "Min": false, "Mean": null, "md5": "1b70be2e"}]},
  "Module.a.Linear.forward.0": {"parameters": {"weight": {"type": "torch.Tensor",
    "dtype": "Float16", "shape": [4]}}, "is_recompute": false}}})"};
}

Seeds RecordSeeds() {
  RankRecord record = testing::RecordOf(1, 2);
  testing::AddGroup(record, testing::kTp, "tp", "0-1");
  testing::AddGroup(record, testing::kDp, "dp", "0-1");
  for (uint64_t call = 1; call < 8; ++call) testing::AddCall(record, testing::kTp, call, 5000);
  testing::AddCall(record, testing::kDp, 1, 9000);
  testing::CutAt(record, flight::Stage::kRunning);
  return {testing::ToBytes(record)};
}

Seeds AlgorithmsSeeds() {
  return {"ring", "level0:NA;level1:ring;level2:H-D_R",
          "allreduce=level0:NA;level1:H-D_R/allgather=direct/alltoall=level1:pairwise"};
}

constexpr char kRules[] = R"(# Rules with all that they may have.
[IncreFlashAttention, PromptFlashAttention]
  d = size(query, -1) // num_heads if input_layout == "BSH" else size(query, -1)
  wide = d > 512 or d % 16 != 0

ifa-wide: refused 561002 on ascend910b, ascend310p3
  when   wide and not has(block_table) and type(key) in [float16, int8] \
         and card(cube_cores) >= 20 and max([1, d]) != -1
  says   heads have {d} elements of {type(query)}
  mend   pad them to {(d + 15) // 16 * 16}
  source a page

ifa-lengths: wrong on all
  when   value(actual_seq_lengths, 0) * 0.5 < 1
  says   lengths are {values(actual_seq_lengths)}
  source another page
)";

constexpr char kChips[] = R"(# Chips of one family.
@page a page
@other another page

[family]
stands_for  one  @page
streams  8  @page
events  1K  @other

[one : family]
streams  4  @other
[two : family]
hbm  2G  @page
)";

Seeds CardTableSeeds() {
  return {kRules, kChips};
}

Seeds TopologySeeds() {
  return {"pack:2 numa:2 core:4 pu:1", "numa:2(memory=1GB) l3:1 core:2 pu:2", "2 2 2"};
}

}  // namespace

std::vector<Target> AllTargets() {
  return {{"air", CheckModel, AirSeeds()},
          {"algorithms", CheckAlgorithms, AlgorithmsSeeds()},
          {"card_tables", CheckCardTables, CardTableSeeds()},
          {"dump_config", CheckDumpConfig, DumpConfigSeeds()},
          {"dump_data", CheckDumpData, DumpDataSeeds()},
          {"ge_proto", CheckModel, GeProtoSeeds()},
          {"msprobe", CheckMsprobe, MsprobeSeeds()},
          {"npy", CheckNpy, NpySeeds()},
          {"onnx", CheckOnnx, OnnxSeeds()},
          {"options", CheckOptions, OptionsSeeds()},
          {"package_configs", CheckPackageConfigs, PackageConfigsSeeds()},
          {"pbtxt", CheckModel, PbtxtSeeds()},
          {"rank_table", CheckRankTable, RankTableSeeds()},
          {"record", CheckRecord, RecordSeeds()},
          {"foreign_record", CheckForeignRecord, ForeignRecordSeeds()},
          {"topology", CheckTopology, TopologySeeds()},
          {"torch_file", CheckTorchFile, TorchFileSeeds()}};
}

}  // namespace npumesh::fuzz
