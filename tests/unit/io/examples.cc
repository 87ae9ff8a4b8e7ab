// Two exports in full: x + y + p1 + p2 in TorchAir's bytes, and the same with HcomAllReduce, in the
// bytes of GE.
#include "tests/unit/io/models.h"

namespace npumesh::testing {

const std::string_view kRawExample = R"text(
graph {
  name: "graph_1"
  op { name: "arg0_1" type: "Const"
    attr { key: "value" value { t { desc { dtype: DT_FLOAT shape { dim: 2 dim: 4 } layout: "ND" }
      data:
        "\000\000\200?\000\000\000@\000\000@@\000\000\200@"
        "\000\000\240@\000\000\300@\000\000\340@\000\000\000A" } } }
    attr { key: "_input_name_key" value { list { } } } attr { key: "_input_name_value" value {
        list { } } }
    attr { key: "_output_name_key" value { list { s: "" } } } attr { key: "_output_name_value"
        value { list { i: 0 } } }
    output_desc { dtype: DT_FLOAT shape { dim: 2 dim: 4 } layout: "ND" } }
  op { name: "arg1_1" type: "Const"
    attr { key: "value" value { t { desc { dtype: DT_FLOAT shape { dim: 2 dim: 4 } layout: "ND" }
      data:
        "\000\000\000?\000\000\000?\000\000\000?\000\000\000?"
        "\000\000\000?\000\000\000?\000\000\000?\000\000\000?" } } }
    attr { key: "_input_name_key" value { list { } } } attr { key: "_input_name_value" value {
        list { } } }
    attr { key: "_output_name_key" value { list { s: "" } } } attr { key: "_output_name_value"
        value { list { i: 0 } } }
    output_desc { dtype: DT_FLOAT shape { dim: 2 dim: 4 } layout: "ND" } }
  op { name: "arg2_1" type: "Data"
    attr { key: "index" value { i: 0 } }
    attr { key: "_input_name_key" value { list { s: "x" } } } attr { key: "_input_name_value"
        value { list { i: 0 } } }
    attr { key: "_output_name_key" value { list { s: "y" } } } attr { key: "_output_name_value"
        value { list { i: 0 } } }
    input_desc { name: "x" dtype: DT_FLOAT shape { dim: 2 dim: 4 } layout: "ND" device_type: "NPU"
                  attr { key: "format_for_int" value { i: 2 } } }
    output_desc { name: "y" dtype: DT_FLOAT shape { dim: 2 dim: 4 } layout: "ND" device_type: "NPU"
                  attr { key: "_meta" value { s:
        "Tensor(dtype=torch.float32, shape=torch.Size([2, 4])" } }
                  attr { key: "format_for_int" value { i: 2 } } } }
  op { name: "arg3_1" type: "Data"
    attr { key: "index" value { i: 1 } }
    attr { key: "_input_name_key" value { list { s: "x" } } } attr { key: "_input_name_value"
        value { list { i: 0 } } }
    attr { key: "_output_name_key" value { list { s: "y" } } } attr { key: "_output_name_value"
        value { list { i: 0 } } }
    input_desc { name: "x" dtype: DT_FLOAT shape { dim: 2 dim: 4 } layout: "ND" device_type: "NPU" }
    output_desc { name: "y" dtype: DT_FLOAT shape { dim: 2 dim: 4 } layout: "ND" device_type:
        "NPU" } }
  op { name: "Add" type: "Add" input: "arg2_1:0" input: "arg3_1:0"
    attr { key: "_input_name_key" value { list { s: "x1" s: "x2" } } } attr { key:
        "_input_name_value" value { list { i: 0 i: 1 } } }
    attr { key: "_output_name_key" value { list { s: "y" } } } attr { key: "_output_name_value"
        value { list { i: 0 } } }
    input_desc { name: "x1" dtype: DT_FLOAT shape { dim: 2 dim: 4 } layout: "ND" device_type:
        "NPU" }
    input_desc { name: "x2" dtype: DT_FLOAT shape { dim: 2 dim: 4 } layout: "ND" device_type:
        "NPU" }
    output_desc { name: "y" dtype: DT_FLOAT layout: "ND"
                  attr { key: "_fx_tensor_name" value { s: "add-aten.add.Tensor.OUTPUT.0" } }
                  attr { key: "_meta" value { s:
        "Tensor(dtype=torch.float32, shape=torch.Size([2, 4])" } } } }
  op { name: "Add_1" type: "Add" input: "Add:0" input: "arg0_1:0"
    attr { key: "_input_name_key" value { list { s: "x1" s: "x2" } } } attr { key:
        "_input_name_value" value { list { i: 0 i: 1 } } }
    attr { key: "_output_name_key" value { list { s: "y" } } } attr { key: "_output_name_value"
        value { list { i: 0 } } }
    input_desc { name: "x1" dtype: DT_FLOAT layout: "ND" }
    input_desc { name: "x2" dtype: DT_FLOAT shape { dim: 2 dim: 4 } layout: "ND" device_type:
        "NPU" }
    output_desc { name: "y" dtype: DT_FLOAT layout: "ND" } }
  op { name: "Add_2" type: "Add" input: "Add_1:0" input: "arg1_1:0"
    attr { key: "_input_name_key" value { list { s: "x1" s: "x2" } } } attr { key:
        "_input_name_value" value { list { i: 0 i: 1 } } }
    attr { key: "_output_name_key" value { list { s: "y" } } } attr { key: "_output_name_value"
        value { list { i: 0 } } }
    input_desc { name: "x1" dtype: DT_FLOAT layout: "ND" }
    input_desc { name: "x2" dtype: DT_FLOAT shape { dim: 2 dim: 4 } layout: "ND" device_type:
        "NPU" }
    output_desc { name: "y" dtype: DT_FLOAT layout: "ND" } }
  op { name: "NetOutput" type: "NetOutput" input: "Add_2:0"
    attr { key: "_input_name_key" value { list { s: "input0" } } } attr { key:
        "_input_name_value" value { list { i: 0 } } }
    attr { key: "_output_name_key" value { list { } } } attr { key: "_output_name_value" value {
        list { } } }
    input_desc { name: "input0" dtype: DT_FLOAT shape { dim: 2 dim: 4 } layout: "ND" } }
  attr { key: "_executor_type" value { i: 1 } }
  attr { key: "_input_placements" value { list { i: 1 i: 1 i: 1 i: 1 } } }
  attr { key: "_output_dtypes" value { list { i: 0 } } }
}
)text";

const std::string_view kGeExample = R"text(
graph {
  name: "graph_1"
  input: "arg2_1:0"
  op { name: "arg2_1" type: "Data" input: ""
    attr { key: "index" value { i: 0 } }
    attr { key: "_input_name_key" value { list { s: "x" } } } attr { key: "_input_name_value"
        value { list { i: 0 } } }
    attr { key: "_output_name_key" value { list { s: "y" } } } attr { key: "_output_name_value"
        value { list { i: 0 } } }
    input_desc { dtype: DT_FLOAT shape { dim: 2 dim: 4 } layout: "ND" device_type: "NPU"
      attr { key: "format_for_int" value { i: 2 } } attr { key: "origin_format" value { s: "ND" } }
      attr { key: "origin_format_for_int" value { i: 2 } } attr { key:
        "origin_shape_initialized" value { b: false } } }
    output_desc { dtype: DT_FLOAT shape { dim: 2 dim: 4 } layout: "ND" device_type: "NPU"
      attr { key: "_meta" value { s: "Tensor(dtype=torch.float32, shape=torch.Size([2, 4])" } }
      attr { key: "format_for_int" value { i: 2 } } attr { key: "origin_format" value { s: "ND" } }
      attr { key: "origin_format_for_int" value { i: 2 } } attr { key:
        "origin_shape_initialized" value { b: false } } } }
  op { name: "NetOutput" type: "NetOutput" input: "arg2_1:0"
    attr { key: "_input_name_key" value { list { s: "input0" } } }
    attr { key: "_input_name_value" value { list { i: 0 } } }
    input_desc { dtype: DT_FLOAT shape { dim: 2 dim: 4 } layout: "ND" device_type: "NPU"
      attr { key: "format_for_int" value { i: 2 } } attr { key: "origin_format" value { s: "ND" } }
      attr { key: "origin_format_for_int" value { i: 2 } }
      attr { key: "origin_shape_initialized" value { b: false } } } }
  attr { key: "_executor_type" value { i: 1 } }
}
attr { key: "target_type" value { s: "MINI" } } attr { key: "memory_size" value { i: 0 } }
attr { key: "p2p_memory_size" value { i: 0 } } attr { key: "weight_size" value { i: 0 } }
attr { key: "stream_num" value { i: 0 } } attr { key: "event_num" value { i: 0 } } attr { key:
        "label_num" value { i: 0 } }
)text";

const std::string_view kAllReduceExample = R"text(
graph {
  name: "graph_1"
  input: "arg2_1:0" input: "arg3_1:0"
  op { name: "arg0_1" type: "FileConstant"
    attr { key: "shape" value { list { i: 2 i: 2 val_type: VT_LIST_INT } } }
    attr { key: "dtype" value { dt: 0 } }
    attr { key: "file_path" value { s: "./mp/rank_0/p1" } }
    attr { key: "file_id" value { s: "" } }
    output_desc { dtype: DT_FLOAT layout: "ND" shape { } } }
  op { name: "arg1_1" type: "FileConstant"
    attr { key: "shape" value { list { i: 2 i: 2 val_type: VT_LIST_INT } } }
    attr { key: "dtype" value { dt: 0 } }
    attr { key: "file_path" value { s: "./mp/rank_0/p2" } }
    attr { key: "file_id" value { s: "" } }
    output_desc { dtype: DT_FLOAT layout: "ND" shape { } } }
  op { name: "arg2_1" type: "Data" input: ""
    attr { key: "index" value { i: 0 } }
    input_desc { dtype: DT_INT32 shape { dim: 2 dim: 2 } layout: "ND" }
    output_desc { dtype: DT_INT32 shape { dim: 2 dim: 2 } layout: "ND" } }
  op { name: "arg3_1" type: "Data" input: ""
    attr { key: "index" value { i: 1 } }
    input_desc { dtype: DT_INT32 shape { dim: 2 dim: 2 } layout: "ND" }
    output_desc { dtype: DT_INT32 shape { dim: 2 dim: 2 } layout: "ND" } }
  op { name: "Add" type: "Add" input: "arg2_1:0" input: "arg3_1:0"
    input_desc { dtype: DT_INT32 shape { dim: 2 dim: 2 } layout: "ND" }
    input_desc { dtype: DT_INT32 shape { dim: 2 dim: 2 } layout: "ND" }
    output_desc { dtype: DT_INT32 layout: "ND" } }
  op { name: "Cast" type: "Cast" input: "Add:0"
    attr { key: "dst_type" value { i: 0 } }
    input_desc { dtype: DT_INT32 layout: "ND" } output_desc { dtype: DT_FLOAT layout: "ND" } }
  op { name: "Add_1" type: "Add" input: "Cast:0" input: "arg0_1:0"
    input_desc { dtype: DT_FLOAT layout: "ND" } input_desc { dtype: DT_FLOAT shape { dim: 2 dim:
        2 } layout: "ND" }
    output_desc { dtype: DT_FLOAT layout: "ND" } }
  op { name: "Add_2" type: "Add" input: "Add_1:0" input: "arg1_1:0"
    input_desc { dtype: DT_FLOAT layout: "ND" } input_desc { dtype: DT_FLOAT shape { dim: 2 dim:
        2 } layout: "ND" }
    output_desc { dtype: DT_FLOAT layout: "ND" } }
  op { name: "HcomAllReduce" type: "HcomAllReduce" input: "Add_2:0"
    attr { key: "reduction" value { s: "sum" } }
    attr { key: "group" value { s: "tag=;rank_list=0,1" } }
    attr { key: "fusion" value { i: 0 } }
    attr { key: "fusion_id" value { i: -1 } }
    input_desc { dtype: DT_FLOAT layout: "ND" } output_desc { dtype: DT_FLOAT layout: "ND" } }
  op { name: "Identity" type: "Identity" input: "HcomAllReduce:0"
    input_desc { dtype: DT_FLOAT layout: "ND" } output_desc { dtype: DT_FLOAT layout: "ND" } }
  op { name: "NetOutput" type: "NetOutput" input: "Identity:0"
    input_desc { dtype: DT_FLOAT shape { dim: 2 dim: 2 } layout: "ND" } }
  attr { key: "_executor_type" value { i: 1 } }
}
)text";

}  // namespace npumesh::testing
