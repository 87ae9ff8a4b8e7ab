// What `npumesh atc` was asked to do: the flags of the vendor's atc, as typed.
#ifndef NPUMESH_LAUNCH_ATC_ATC_OPTIONS_H_
#define NPUMESH_LAUNCH_ATC_ATC_OPTIONS_H_

#include <string>
#include <vector>

namespace npumesh {

struct AtcOptions {
  int mode = 0;        // 0 compile; 1, 3 or 5 a model as JSON
  int framework = -1;  // 1 AIR, 5 ONNX; -1: the file says it
  std::string model;   // a file, or a package of several ranks
  std::string output;  // without ".om"
  std::string soc_version;
  std::string om, json;  // of mode 1

  std::string input_shape, input_shape_range;
  std::string dynamic_batch_size, dynamic_image_size, dynamic_dims;
  std::string input_format;
  std::string input_fp16_nodes, output_type, out_nodes;

  std::string precision_mode, precision_mode_v2, modify_mixlist, keep_dtype;
  std::string op_select_implmode, optypelist_for_implmode;

  std::string external_weight = "0";
  std::string model_relation_config, cluster_config;
  std::string display_model_info = "0";
  std::string singleop;
  std::string log = "null";

  std::string command;                 // all of it, for the description in the file
  std::string version;                 // of npumesh
  std::vector<std::string> no_effect;  // flags that were typed and change nothing here
};

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_ATC_ATC_OPTIONS_H_
