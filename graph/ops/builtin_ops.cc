#include "graph/ops/expert_families.h"
#include "graph/ops/fused_families.h"
#include "graph/ops/layer_families.h"
#include "graph/ops/op_families.h"
#include "graph/ops/op_registry.h"
#include "graph/ops/train_families.h"

namespace npumesh {
namespace {

OpRegistry MakeBuiltinOps() {
  OpRegistry registry;
  RegisterStructureOps(registry);
  RegisterControlFlowOps(registry);
  RegisterSelectionOps(registry);
  RegisterElementwiseOps(registry);
  RegisterActivationOps(registry);
  RegisterCompareOps(registry);
  RegisterReduceOps(registry);
  RegisterMatmulOps(registry);
  RegisterNormOps(registry);
  RegisterLayoutOps(registry);
  RegisterGatherOps(registry);
  RegisterCollectiveOps(registry);
  RegisterAttentionOps(registry);
  RegisterPointwiseMathOps(registry);
  RegisterPointwiseActivationOps(registry);
  RegisterPointwiseGradientOps(registry);
  RegisterBitwiseOps(registry);
  RegisterOptimizerOps(registry);
  RegisterQuantOps(registry);
  RegisterMoeOps(registry);
  RegisterFusedMatmulOps(registry);
  RegisterStatisticOps(registry);
  RegisterOrderOps(registry);
  RegisterSearchOps(registry);
  RegisterScatterOps(registry);
  RegisterIndexOps(registry);
  RegisterEmbeddingOps(registry);
  RegisterSelectOps(registry);
  RegisterChannelOps(registry);
  RegisterSoftmaxRowOps(registry);
  RegisterHalvesOps(registry);
  RegisterPoolOps(registry);
  RegisterResizeOps(registry);
  RegisterConvolutionOps(registry);
  RegisterRandomOps(registry);
  RegisterLayerNormOps(registry);
  RegisterGroupNormOps(registry);
  RegisterBatchNormOps(registry);
  RegisterPoolGradients(registry);
  RegisterVolumePoolOps(registry);
  RegisterGridSampleOps(registry);
  RegisterLossOps(registry);
  RegisterRotaryGradients(registry);
  RegisterAttentionGradients(registry);
  RegisterMultinomialOps(registry);
  RegisterSequenceOps(registry);
  RegisterForeachOps(registry);
  RegisterMoeInitRoutingOps(registry);
  RegisterGroupedSwigluOps(registry);
  RegisterGroupedFinalizeOps(registry);
  RegisterFfnOps(registry);
  RegisterTransposeMatmulOps(registry);
  RegisterFusedProductOps(registry);
  RegisterLoraOps(registry);
  RegisterActivationQuantOps(registry);
  RegisterBlockQuantOps(registry);
  RegisterNormQuantOps(registry);
  RegisterMxQuantOps(registry);
  RegisterSwigluMxOps(registry);
  RegisterGatedDeltaOps(registry);
  RegisterMlaPrologOps(registry);
  RegisterLightningIndexerOps(registry);
  RegisterSparseAttentionOps(registry);
  RegisterCausalConvOps(registry);
  RegisterScatterListOps(registry);
  return registry;
}

}  // namespace

const OpRegistry& BuiltinOps() {
  static const OpRegistry registry = MakeBuiltinOps();
  return registry;
}

}  // namespace npumesh
